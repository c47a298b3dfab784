/*
 * A pool is filled, emptied but for a fifth, and defragmented, over and over: it never is full, however many addresses
 * from before are kept. The same with libpmemobj.
 *
 *   phases POOL PHASES
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

POBJ_LAYOUT_BEGIN(phases);
POBJ_LAYOUT_ROOT(phases, struct root);
POBJ_LAYOUT_TOID(phases, struct node);
POBJ_LAYOUT_END(phases);

enum { NODES = 150000, KEPT = 1000 };

struct node {
	uint64_t number;
	char rest[100];
};

struct root {
	TOID(struct node) nodes[NODES];
};

static void fail(int line)
{
	fprintf(stderr, "line %d: %s\n", line, pmemobj_errormsg());
	exit(1);
}

#define HOLDS(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what))                                                                                           \
			fail(__LINE__);                                                                                \
	} while (0)

static void fill(PMEMobjpool *pop, TOID(struct root) root)
{
	for (uint64_t i = 0; i < NODES; i++) {
		if (!TOID_IS_NULL(D_RO(root)->nodes[i]))
			continue;
		TX_BEGIN(pop)
		{
			TOID(struct node) node = TX_NEW(struct node);
			D_RW(node)->number = i;
			TX_SET(root, nodes[i], node);
		}
		TX_ONABORT
		{
			fail(__LINE__);
		}
		TX_END
	}
}

static void thin_out(PMEMobjpool *pop, TOID(struct root) root)
{
	for (uint64_t i = 0; i < NODES; i++) {
		if (rand() % 5 == 0)
			continue;
		TX_BEGIN(pop)
		{
			TX_FREE(D_RO(root)->nodes[i]);
			TX_SET(root, nodes[i], TOID_NULL(struct node));
		}
		TX_ONABORT
		{
			fail(__LINE__);
		}
		TX_END
	}
}

int main(int count, char **arguments)
{
	/* From the first phase on, for as long as their nodes live. */
	static TOID(struct node) kept[KEPT];
	HOLDS(count == 3);
	PMEMobjpool *pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(phases), (size_t)64 << 20, 0600);
	HOLDS(pop != NULL);
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	long moved = 0;
	for (int phase = 0; phase < atoi(arguments[2]); phase++) {
		fill(pop, root);
		for (uint64_t i = 0; phase == 0 && i < KEPT; i++)
			kept[i] = D_RO(root)->nodes[i];
		thin_out(pop, root);
		firn_collecting how = {.target = 1.05};
		HOLDS(firn_collect_pool(pop, &how, NULL) == 0);
		for (uint64_t i = 0; i < KEPT; i++) {
			if (TOID_IS_NULL(D_RO(root)->nodes[i]))
				kept[i] = D_RO(root)->nodes[i];
			else if (!TOID_IS_NULL(kept[i]))
				HOLDS(D_RO(kept[i])->number == i && TOID_EQUALS(kept[i], D_RO(root)->nodes[i]));
		}
		moved += firn_pool_ratio(pop, FIRN_HUGE_PAGES) < 1.5;
	}
	pmemobj_close(pop);
	printf("%ld phases ended compact\n", moved);
	return 0;
}
