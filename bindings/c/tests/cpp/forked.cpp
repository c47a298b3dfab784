// A forked child has a pool, a session, a handle and a collector of its parent's, and ends: with an exception that runs
// destructors, or by exit.
//
//   forked POOL
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <firn.hpp>

#define HOLDS(condition) \
	do { \
		if (!(condition)) { \
			std::fprintf(stderr, "%d, line %d: %s; %s\n", getpid(), __LINE__, #condition, firn_last_message()); \
			_exit(1); \
		} \
	} while (0)

struct number {
	static constexpr auto firn_name = "number";
	std::int64_t value = 0;
};

template <class Body> static bool refused(Body body)
{
	try {
		body();
	} catch (const firn::error &error) {
		return std::strstr(error.what(), "forked") != nullptr;
	}
	return false;
}

struct ended {
};

static void in_child(firn::pool &pool, firn::session &session)
{
	HOLDS(refused([&] { session.transaction([](firn::transaction &tx) { tx.make(number{1}); }); }));
	HOLDS(refused([&] { firn::reading reading(session); }));
	HOLDS(refused([&] { firn::session another(pool); }));
	HOLDS(refused([&] { pool.stop_collecting(); }));
	HOLDS(refused([&] { pool.start_collecting(); }));
	HOLDS(refused([&] { pool.close(); }));
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	firn_options options{};
	options.layout = "forked";
	for (int way = 0; way < 2; way++) {
		firn::pool pool = firn::pool::open_or_create(arguments[1], options);
		firn_collecting how{};
		how.trigger = 1.06;
		how.target = 1.02;
		how.pages = FIRN_SMALL_PAGES;
		how.least_bytes = 1;
		how.interval_us = 100;
		pool.start_collecting(how);
		firn::session session(pool);
		session.transaction([](firn::transaction &tx) { tx.set_root("number", tx.make(number{1})); });
		pid_t child = fork();
		if (child == 0) {
			try {
				in_child(pool, session);
				if (way == 0)
					std::exit(0);
				throw ended();
			} catch (const ended &) {
				return 0;
			}
		}
		int status = 0;
		HOLDS(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
		session.transaction([](firn::transaction &tx) { tx.set(tx.root<number>("number"), &number::value, 2); });
		pool.stop_collecting();
	}
	std::printf("forked\n");
	return 0;
}
