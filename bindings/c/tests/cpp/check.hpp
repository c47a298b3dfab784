// What the programs here are tested with: ends them where something does not hold.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                   \
			std::exit(1);                                                                                  \
		}                                                                                                      \
	} while (false)

#endif
