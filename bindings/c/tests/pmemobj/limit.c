/*
 * A pool is full at the same number of objects when it was closed and opened again as when it was made.
 *
 *   limit POOL
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_BYTES = 40 << 20, OBJECT_BYTES = 100000 };

static unsigned fill(PMEMobjpool *pop)
{
	PMEMoid oid;
	unsigned objects = 0;
	while (objects < 100000 && pmemobj_alloc(pop, &oid, OBJECT_BYTES, 0, NULL, NULL) == 0)
		objects++;
	return objects;
}

static PMEMobjpool *opened(PMEMobjpool *pop)
{
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		exit(1);
	}
	return pop;
}

int main(int argc, char **argv)
{
	PMEMobjpool *pop = opened(pmemobj_create(argv[argc - 1], "limit", POOL_BYTES, 0600));
	unsigned objects = fill(pop);
	for (PMEMoid oid = pmemobj_first(pop); !OID_IS_NULL(oid); oid = pmemobj_first(pop))
		pmemobj_free(&oid);
	pmemobj_close(pop);
	pop = opened(pmemobj_open(argv[argc - 1], "limit"));
	unsigned again = fill(pop);
	pmemobj_close(pop);
	pop = opened(pmemobj_open(argv[argc - 1], "limit"));
	unsigned more = fill(pop);
	pmemobj_close(pop);
	int fits = objects > 0 && (unsigned long)objects * OBJECT_BYTES < POOL_BYTES;
	printf("%s, %u more, %u more\n", fits ? "full" : "not full", objects - again, more);
	return 0;
}
