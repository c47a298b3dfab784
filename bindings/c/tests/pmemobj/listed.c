/*
 * A pool is filled to a share of what fits, a random half of its objects is freed, and those that are left are
 * defragmented: all OIDs listed, some hundred a call, from the last one back. Then objects of another length until it is
 * full.
 *
 *   listed POOL BYTES PERCENT
 *
 * prints how many bytes of these fit, in per cent of those that were freed.
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { POOL_BYTES = 48 << 20, TOGETHER = 500 };

#define HOLDS(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, pmemobj_errormsg()); \
			exit(1); \
		} \
	} while (0)

struct object {
	PMEMoid next;
	uint64_t number;
};

static PMEMobjpool *fresh(const char *path)
{
	unlink(path);
	PMEMobjpool *pop = pmemobj_create(path, "listed", POOL_BYTES, 0600);
	HOLDS(pop != NULL);
	return pop;
}

static long fill(PMEMobjpool *pop, size_t bytes)
{
	long count = 0;
	PMEMoid oid;
	while (pmemobj_alloc(pop, &oid, bytes, 2, NULL, NULL) == 0)
		count++;
	return count;
}

static struct object *object(PMEMoid oid)
{
	return pmemobj_direct(oid);
}

int main(int count, char **arguments)
{
	HOLDS(count == 4);
	size_t bytes = strtoul(arguments[2], NULL, 10);
	PMEMobjpool *pop = fresh(arguments[1]);
	pmemobj_root(pop, sizeof(PMEMoid));
	long wanted = fill(pop, bytes) * atol(arguments[3]) / 100;
	pmemobj_close(pop);

	pop = fresh(arguments[1]);
	PMEMoid *first = pmemobj_direct(pmemobj_root(pop, sizeof(PMEMoid))), oid;
	long made = 0, freed = 0, left = 0;
	for (; made < wanted && pmemobj_alloc(pop, &oid, bytes, 1, NULL, NULL) == 0; made++) {
		*object(oid) = (struct object){*first, (uint64_t)made};
		pmemobj_persist(pop, object(oid), sizeof(struct object));
		*first = oid;
		pmemobj_persist(pop, first, sizeof(*first));
	}
	uint64_t sum = 0;
	for (PMEMoid *at = first; !OID_IS_NULL(*at);) {
		if (rand() % 2) {
			oid = *at;
			*at = object(oid)->next;
			pmemobj_persist(pop, at, sizeof(*at));
			pmemobj_free(&oid);
			freed++;
		} else {
			sum += object(*at)->number;
			at = &object(*at)->next;
			left++;
		}
	}
	PMEMoid **list = malloc(sizeof(*list) * (size_t)(left + 1));
	long listed = 0;
	for (PMEMoid *at = first; !OID_IS_NULL(*at); at = &object(*at)->next)
		list[listed++] = at;
	for (long end = listed; end > 0; end -= TOGETHER) {
		long begin = end > TOGETHER ? end - TOGETHER : 0;
		HOLDS(pmemobj_defrag(pop, list + begin, (size_t)(end - begin), NULL) == 0);
	}
	free(list);
	first = pmemobj_direct(pmemobj_root(pop, sizeof(PMEMoid)));
	long found = 0;
	for (oid = *first; !OID_IS_NULL(oid); oid = object(oid)->next) {
		sum -= object(oid)->number;
		found++;
	}
	HOLDS(found == made - freed && sum == 0);
	size_t other = 3 * bytes + 100;
	printf("%zu\n", (size_t)fill(pop, other) * other * 100 / ((size_t)freed * bytes));
	pmemobj_close(pop);
	return 0;
}
