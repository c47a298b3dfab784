/*
 * A pool's file is copied, open or closed, and the copy is opened beside it in one process: that is refused, with both
 * names, and changes neither. One after the other they are two pools.
 *
 *   beside POOL open|closed
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, pmemobj_errormsg());                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { OBJECTS = 1000 };

static char *content(const char *path, long *len)
{
	FILE *file = fopen(path, "rb");
	char *bytes;
	CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
	*len = ftell(file);
	rewind(file);
	bytes = malloc((size_t)*len);
	CHECK(bytes != NULL && fread(bytes, 1, (size_t)*len, file) == (size_t)*len);
	fclose(file);
	return bytes;
}

static void copy(const char *from, const char *to)
{
	long len;
	char *bytes = content(from, &len);
	FILE *file = fopen(to, "wb");
	CHECK(file != NULL && fwrite(bytes, 1, (size_t)len, file) == (size_t)len && fclose(file) == 0);
	free(bytes);
}

static PMEMobjpool *opened(const char *path, const char *expected)
{
	PMEMobjpool *pop = pmemobj_open(path, "beside");
	PMEMoid oid;
	int count = 0;
	CHECK(pop != NULL);
	CHECK(strcmp(pmemobj_direct(pmemobj_root(pop, 64)), expected) == 0);
	POBJ_FOREACH(pop, oid)
		count++;
	CHECK(count == OBJECTS);
	return pop;
}

static void store(PMEMobjpool *pop, const char *text)
{
	pmemobj_memcpy_persist(pop, pmemobj_direct(pmemobj_root(pop, 64)), text, strlen(text) + 1);
}

int main(int argc, char **argv)
{
	char twin[4096];
	PMEMobjpool *pop, *other;
	char *before, *after;
	long len, len_after;
	int i;
	CHECK(argc == 3);
	snprintf(twin, sizeof twin, "%s.copy", argv[1]);
	pop = pmemobj_create(argv[1], "beside", 32 << 20, 0600);
	CHECK(pop != NULL);
	for (i = 0; i < OBJECTS; i++)
		CHECK(pmemobj_alloc(pop, NULL, 500, 1, NULL, NULL) == 0);
	store(pop, "first");
	if (strcmp(argv[2], "closed") == 0) {
		pmemobj_close(pop);
		copy(argv[1], twin);
		pop = opened(argv[1], "first");
	} else {
		copy(argv[1], twin);
	}
	before = content(twin, &len);
	for (i = 0; i < 3; i++) {
		errno = 0;
		CHECK(pmemobj_open(twin, "beside") == NULL);
		CHECK(errno == EAGAIN);
		CHECK(strstr(pmemobj_errormsg(), twin) != NULL);
		CHECK(strstr(pmemobj_errormsg(), argv[1]) != NULL && strstr(pmemobj_errormsg(), "--new-id") != NULL);
	}
	after = content(twin, &len_after);
	CHECK(len == len_after && memcmp(before, after, (size_t)len) == 0);
	free(before);
	free(after);
	/* The original goes on. */
	store(pop, "second");
	CHECK(pmemobj_pool_by_ptr(pmemobj_direct(pmemobj_root(pop, 64))) == pop);
	pmemobj_close(pop);
	other = opened(twin, "first");
	store(other, "third");
	CHECK(pmemobj_open(argv[1], "beside") == NULL);
	pmemobj_close(other);
	pmemobj_close(opened(argv[1], "second"));
	pmemobj_close(opened(twin, "third"));
	CHECK(pmemobj_check(argv[1], "beside") == 1 && pmemobj_check(twin, "beside") == 1);
	printf("refused\n");
	return 0;
}
