/*
 * What PMDK's example programs want of a header that Debian's package has not: made for them here.
 */
#ifndef EX_COMMON_H
#define EX_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define CREATE_MODE_RW (S_IRUSR | S_IWUSR)

/* Zero if it does. */
static inline int file_exists(const char *path)
{
	return access(path, F_OK);
}

/* The number of the highest bit that is set; -1 if none is. */
static inline int find_last_set_64(uint64_t bits)
{
	return bits == 0 ? -1 : 63 - __builtin_clzll(bits);
}

#endif
