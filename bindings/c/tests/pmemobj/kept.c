/*
 * Does what no program may: stores through a pointer from before a transaction. Prints whether the store is found.
 *
 *   kept POOL
 */
#include <libpmemobj.h>
#include <stdio.h>

POBJ_LAYOUT_BEGIN(kept);
POBJ_LAYOUT_ROOT(kept, struct root);
POBJ_LAYOUT_TOID(kept, struct item);
POBJ_LAYOUT_END(kept);

/* Of another size than the root, beside which objects stay. */
struct item {
	uint64_t number;
	uint64_t rest[30];
};

struct root {
	TOID(struct item) item;
};

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	PMEMobjpool *pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(kept), PMEMOBJ_MIN_POOL, 0600);
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 1;
	}
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	TX_BEGIN(pop) { TX_SET(root, item, TX_ZNEW(struct item)); } TX_END
	struct item *item = D_RW(D_RO(root)->item);
	TX_BEGIN(pop) { TX_SET(D_RO(root)->item, number, 1); } TX_END
	item->number = 2;
	printf("%s\n", D_RO(D_RO(root)->item)->number == 2 ? "found" : "lost");
	pmemobj_close(pop);
	return 0;
}
