/* How long a dereference takes: a ring of objects in random order is followed. Prints nanoseconds of processor time for
 * each. */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

POBJ_LAYOUT_BEGIN(chase);
POBJ_LAYOUT_ROOT(chase, struct root);
POBJ_LAYOUT_TOID(chase, struct node);
POBJ_LAYOUT_END(chase);

struct node {
	TOID(struct node) next;
	uint64_t number;
	uint64_t rest[4];
};

struct root {
	TOID(struct node) first;
};

enum { NODES = 256, LAPS = 20000 };

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	PMEMobjpool *pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(chase), (size_t)64 << 20, 0600);
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 1;
	}
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	TOID(struct node) nodes[NODES];
	for (int i = 0; i < NODES; i++) {
		TX_BEGIN(pop)
		{
			nodes[i] = TX_ZNEW(struct node);
			D_RW(nodes[i])->number = (uint64_t)i;
		}
		TX_END
	}
	/* 97 and the number of nodes have no common divisor. */
	for (int i = 0; i < NODES; i++) {
		TX_BEGIN(pop) { TX_SET(nodes[i * 97 % NODES], next, nodes[(i + 1) * 97 % NODES]); } TX_END
	}
	TX_BEGIN(pop) { TX_SET(root, first, nodes[0]); } TX_END
	struct timespec begin, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	TOID(struct node) node = D_RO(root)->first;
	uint64_t sum = 0;
	for (long i = 0; i < (long)NODES * LAPS; i++) {
		struct node *it = D_RW(node);
		sum += it->number;
		node = it->next;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	if (sum != (uint64_t)LAPS * NODES * (NODES - 1) / 2)
		return 1;
	double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
	printf("follow %.3f\n", ns / ((double)NODES * LAPS));
	pmemobj_close(pop);
	return 0;
}
