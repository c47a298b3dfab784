/*
 * One thread has objects and gives them up; another is given their memory. Nothing but the library orders the two.
 *
 *   handed_on POOL free|abort
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(handed_on);
POBJ_LAYOUT_ROOT(handed_on, struct root);
POBJ_LAYOUT_TOID(handed_on, struct item);
POBJ_LAYOUT_END(handed_on);

enum { ITEMS = 4000 };

struct root {
	uint64_t unused;
};

struct item {
	uint64_t words[16];
};

static PMEMobjpool *pop;
static __thread TOID(struct item) items[ITEMS];
static int aborts;
static int is_done;

static void fill(uint64_t number)
{
	TX_BEGIN(pop)
	{
		for (int i = 0; i < ITEMS; i++) {
			items[i] = TX_ZNEW(struct item);
			for (int word = 0; word < 16; word++)
				D_RW(items[i])->words[word] = number;
		}
		if (aborts && number == 1)
			pmemobj_tx_abort(ECANCELED);
	}
	TX_END
}

static void *first(void *unused)
{
	fill(1);
	for (int i = 0; i < ITEMS && !aborts; i++)
		POBJ_FREE(&items[i]);
	firn_safepoint(pop);
	/* Orders nothing. */
	__atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
	return unused;
}

int main(int count, char **arguments)
{
	if (count != 3)
		return 2;
	aborts = strcmp(arguments[2], "abort") == 0;
	pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(handed_on), (size_t)64 << 20, 0600);
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 1;
	}
	pthread_t thread;
	if (pthread_create(&thread, NULL, first, NULL) != 0)
		return 1;
	while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED))
		continue;
	fill(2);
	pthread_join(thread, NULL);
	pmemobj_close(pop);
	printf("handed on\n");
	return 0;
}
