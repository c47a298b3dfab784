/*
 * A program for libpmemobj that keeps OIDs in variables of its own, in arrays, and pairs of them in objects, while
 * its pool is defragmented again and again.
 *
 *   variables POOL ROUNDS
 *
 * prints the number of each round that is done. Stop it at any moment, with `kill -9` if you like: the next run
 * finds all that was durable, and goes on with it.
 */
#undef NDEBUG
#include <assert.h>
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

POBJ_LAYOUT_BEGIN(variables);
POBJ_LAYOUT_ROOT(variables, struct root);
POBJ_LAYOUT_TOID(variables, struct item);
POBJ_LAYOUT_TOID(variables, char);
POBJ_LAYOUT_END(variables);

#ifndef ITEMS
#define ITEMS 3000
#endif

enum { WORDS = 12 };

struct item {
	uint64_t number;
	TOID(struct item) twin;
	TOID(char) name;
	/* The middle of the object, by its OID. */
	PMEMoid inner;
	uint64_t words[WORDS];
};

struct root {
	PMEMmutex lock;
	TOID(struct item) items[ITEMS];
	uint64_t rounds;
};

/* Nobody heals these. */
static TOID(struct item) known[ITEMS];
static PMEMoid inner[ITEMS];
static uint64_t numbers[ITEMS];
/* A word of each that is stored without a transaction. */
static uint64_t persisted[ITEMS];
/* Which item is an item's twin; none if minus one. */
static int twins[ITEMS];

static void check(PMEMobjpool *pop, TOID(struct root) root)
{
	for (int i = 0; i < ITEMS; i++) {
		TOID(struct item) item = D_RO(root)->items[i];
		assert(TOID_IS_NULL(item) == TOID_IS_NULL(known[i]));
		if (TOID_IS_NULL(item))
			continue;
		assert(TOID_EQUALS(item, known[i]));
		assert(D_RO(item) == D_RO(known[i]));
		assert(TOID_VALID(item));
		assert(D_RO(item)->number == numbers[i]);
		assert(D_RO(item)->words[i % WORDS] == ~numbers[i]);
		assert(D_RO(item)->words[(i + 1) % WORDS] == persisted[i]);
		assert(pmemobj_direct(inner[i]) == &D_RW(item)->words[3]);
		assert(pmemobj_direct(D_RO(item)->inner) == &D_RW(item)->words[3]);
		char name[32];
		snprintf(name, sizeof name, "item %d", i);
		assert(strcmp(D_RO(D_RO(item)->name), name) == 0);
		TOID(struct item) twin = D_RO(item)->twin;
		assert(TOID_IS_NULL(twin) == (twins[i] < 0));
		if (twins[i] >= 0)
			assert(D_RO(twin) == D_RO(known[twins[i]]));
	}
	uint64_t found = 0, wanted = 0;
	TOID(struct item) each;
	POBJ_FOREACH_TYPE(pop, each)
		found++;
	for (int i = 0; i < ITEMS; i++)
		wanted += !TOID_IS_NULL(known[i]);
	assert(found == wanted);
}

static void add(PMEMobjpool *pop, TOID(struct root) root, int i, uint64_t number)
{
	TX_BEGIN(pop)
	{
		TOID(struct item) item = TX_ZNEW(struct item);
		char name[32];
		snprintf(name, sizeof name, "item %d", i);
		D_RW(item)->number = number;
		D_RW(item)->words[i % WORDS] = ~number;
		D_RW(item)->inner = pmemobj_oid(&D_RW(item)->words[3]);
		TOID_ASSIGN(D_RW(item)->name, TX_STRDUP(name, TOID_TYPE_NUM(char)));
		TX_ADD_FIELD(root, items[i]);
		D_RW(root)->items[i] = item;
	}
	TX_ONABORT
	{
		fprintf(stderr, "variables: %s\n", pmemobj_errormsg());
		abort();
	}
	TX_END
	known[i] = D_RO(root)->items[i];
	inner[i] = D_RO(known[i])->inner;
	numbers[i] = number;
	persisted[i] = 0;
	twins[i] = -1;
}

static void take_away(PMEMobjpool *pop, TOID(struct root) root, int i)
{
	for (int j = 0; j < ITEMS; j++)
		if (!TOID_IS_NULL(known[j]) && twins[j] == i) {
			TX_BEGIN(pop) { TX_SET(known[j], twin, TOID_NULL(struct item)); } TX_END
			twins[j] = -1;
		}
	TX_BEGIN(pop)
	{
		TX_ADD_FIELD(root, items[i]);
		TX_FREE(D_RO(known[i])->name);
		TX_FREE(known[i]);
		D_RW(root)->items[i] = TOID_NULL(struct item);
	}
	TX_ONABORT
	{
		abort();
	}
	TX_END
	known[i] = TOID_NULL(struct item);
}

static void change(PMEMobjpool *pop, int i, int how, uint64_t number)
{
	int other = (int)(number % ITEMS);
	switch (how) {
	case 0:
		TX_BEGIN(pop)
		{
			TX_ADD_FIELD(known[i], number);
			D_RW(known[i])->number = number;
			TX_SET(known[i], words[i % WORDS], ~number);
			TX_ADD_FIELD(known[i], twin);
			D_RW(known[i])->twin = TOID_NULL(struct item);
		}
		TX_END
		numbers[i] = number;
		twins[i] = -1;
		break;
	case 1: {
		uint64_t *word = &D_RW(known[i])->words[(i + 1) % WORDS];
		*word = number;
		pmemobj_persist(pop, word, sizeof *word);
		persisted[i] = number;
		break;
	}
	case 2:
		TX_BEGIN(pop)
		{
			TX_ADD(known[i]);
			memset(D_RW(known[i]), 0x55, sizeof(struct item));
			pmemobj_tx_abort(ECANCELED);
		}
		TX_END
		break;
	default:
		if (!TOID_IS_NULL(known[other])) {
			TX_BEGIN(pop) { TX_SET(known[i], twin, known[other]); } TX_END
			twins[i] = other;
		}
	}
}

/* Fills the variables with the OIDs of a pool that was opened. */
static void find(TOID(struct root) root)
{
	for (int i = 0; i < ITEMS; i++) {
		known[i] = D_RO(root)->items[i];
		if (!TOID_IS_NULL(known[i]))
			inner[i] = D_RO(known[i])->inner;
	}
}

/* And those that say what the items hold. */
static void learn(void)
{
	for (int i = 0; i < ITEMS; i++) {
		if (TOID_IS_NULL(known[i]))
			continue;
		const struct item *item = D_RO(known[i]);
		numbers[i] = item->number;
		persisted[i] = item->words[(i + 1) % WORDS];
		twins[i] = TOID_IS_NULL(item->twin) ? -1 : atoi(D_RO(D_RO(item->twin)->name) + strlen("item "));
	}
}

static PMEMobjpool *opened(const char *path)
{
	PMEMobjpool *pop = access(path, F_OK) == 0
				   ? pmemobj_open(path, POBJ_LAYOUT_NAME(variables))
				   : pmemobj_create(path, POBJ_LAYOUT_NAME(variables), 256 << 20, 0600);
	if (pop == NULL) {
		fprintf(stderr, "variables: %s\n", pmemobj_errormsg());
		exit(1);
	}
	return pop;
}

/* OIDs in objects are changed; those in variables go on to lead to their objects. */
static uint64_t move_everything(PMEMobjpool *pop)
{
	firn_collecting how = {.target = 1.05, .pages = FIRN_SMALL_PAGES};
	int failed = firn_collect_pool(pop, &how, NULL);
	assert(failed == 0);
	uint64_t moved = 0;
	for (int i = 0; i < ITEMS; i++)
		if (!TOID_IS_NULL(known[i]))
			moved += pmemobj_oid(D_RO(known[i])).off != known[i].oid.off;
	return moved;
}

int main(int count, char **arguments)
{
	if (count != 3)
		return 2;
	int rounds = atoi(arguments[2]);
	PMEMobjpool *pop = opened(arguments[1]);
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	find(root);
	learn();
	check(pop, root);
	const struct root *where = D_RO(root);
	unsigned seed = (unsigned)D_RO(root)->rounds + 1;
	uint64_t relocated = 0;
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < ITEMS; i++)
			if (TOID_IS_NULL(known[i]))
				add(pop, root, i, (uint64_t)rand_r(&seed));
		for (int i = 0; i < ITEMS; i++)
			if (i % 8 != round % 8)
				take_away(pop, root, i);
		check(pop, root);
		relocated += move_everything(pop);
		check(pop, root);
		for (int i = 0; i < ITEMS; i++)
			if (!TOID_IS_NULL(known[i]))
				change(pop, i, rand_r(&seed) % 4, (uint64_t)rand_r(&seed));
		check(pop, root);
		assert(D_RO(root) == where);
		TX_BEGIN(pop) { TX_SET(root, rounds, D_RO(root)->rounds + 1); } TX_END
		printf("%llu\n", (unsigned long long)D_RO(root)->rounds);
		fflush(stdout);
	}
	pmemobj_close(pop);
	pop = opened(arguments[1]);
	root = POBJ_ROOT(pop, struct root);
	find(root);
	check(pop, root);
	uint64_t done = D_RO(root)->rounds;
	pmemobj_close(pop);
	printf("%llu rounds, %s\n", (unsigned long long)done, relocated > 0 ? "moved" : "nothing moved");
	return 0;
}
