/*
 * Threads share a list under a lock in the pool, hand numbers over by a condition variable, and keep OIDs of their own,
 * while objects move.
 *
 *   threads POOL ROUNDS
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(threads);
POBJ_LAYOUT_ROOT(threads, struct root);
POBJ_LAYOUT_TOID(threads, struct node);
POBJ_LAYOUT_END(threads);

enum { THREADS = 3, KEPT = 16 };

struct node {
	TOID(struct node) next;
	uint64_t number;
	uint64_t rest[10];
};

struct root {
	PMEMmutex lock;
	PMEMcond is_filled;
	TOID(struct node) first;
	uint64_t length;
	uint64_t pushed;
	uint64_t popped;
	PMEMrwlock kept_lock;
	TOID(struct node) kept[THREADS][KEPT];
};

static PMEMobjpool *pop;
static TOID(struct root) root;
static uint64_t rounds;

static _Noreturn void fail(int line)
{
	fprintf(stderr, "line %d: %s\n", line, pmemobj_errormsg());
	exit(1);
}

#define HOLDS(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what))                                                                                           \
			fail(__LINE__);                                                                                \
	} while (0)

static void push(uint64_t number)
{
	TX_BEGIN_PARAM(pop, TX_PARAM_MUTEX, &D_RW(root)->lock, TX_PARAM_NONE)
	{
		TOID(struct node) node = TX_ZNEW(struct node);
		D_RW(node)->number = number;
		D_RW(node)->rest[9] = ~number;
		D_RW(node)->next = D_RO(root)->first;
		TX_ADD_FIELD(root, first);
		TX_ADD_FIELD(root, length);
		TX_ADD_FIELD(root, pushed);
		D_RW(root)->first = node;
		D_RW(root)->length += 1;
		D_RW(root)->pushed += number;
	}
	TX_ONABORT
	{
		fail(__LINE__);
	}
	TX_END
	pmemobj_cond_signal(pop, &D_RW(root)->is_filled);
	firn_safepoint(pop);
}

static void pull(void)
{
	struct root *it = D_RW(root);
	HOLDS(pmemobj_mutex_lock(pop, &it->lock) == 0);
	while (it->length == 0)
		HOLDS(pmemobj_cond_wait(pop, &it->is_filled, &it->lock) == 0);
	TX_BEGIN(pop)
	{
		TOID(struct node) node = it->first;
		HOLDS(D_RO(node)->rest[9] == ~D_RO(node)->number);
		TX_ADD_FIELD(root, first);
		TX_ADD_FIELD(root, length);
		TX_ADD_FIELD(root, popped);
		it->first = D_RO(node)->next;
		it->length -= 1;
		it->popped += D_RO(node)->number;
		TX_FREE(node);
	}
	TX_ONABORT
	{
		fail(__LINE__);
	}
	TX_END
	/* The root does not move, so its locks may be named by the pointer from before. */
	HOLDS(pmemobj_mutex_unlock(pop, &it->lock) == 0);
}

/* Objects of one thread that the others read. */
static void keep(uint64_t thread, uint64_t round, TOID(struct node) mine[KEPT])
{
	uint64_t place = round % KEPT;
	TX_BEGIN_PARAM(pop, TX_PARAM_RWLOCK, &D_RW(root)->kept_lock, TX_PARAM_NONE)
	{
		TOID(struct node) node = TX_ZNEW(struct node);
		D_RW(node)->number = round;
		if (!TOID_IS_NULL(mine[place]))
			TX_FREE(mine[place]);
		TX_SET(root, kept[thread][place], node);
		mine[place] = node;
	}
	TX_ONABORT
	{
		fail(__LINE__);
	}
	TX_END
	uint64_t other = (thread + 1) % THREADS;
	HOLDS(pmemobj_rwlock_rdlock(pop, &D_RW(root)->kept_lock) == 0);
	for (uint64_t i = 0; i < KEPT; i++) {
		TOID(struct node) node = D_RO(root)->kept[other][i];
		HOLDS(TOID_IS_NULL(node) || D_RO(node)->number % KEPT == i);
		HOLDS(TOID_IS_NULL(mine[i]) || TOID_EQUALS(mine[i], D_RO(root)->kept[thread][i]));
		HOLDS(TOID_IS_NULL(mine[i]) || D_RO(mine[i])->number % KEPT == i);
	}
	HOLDS(pmemobj_rwlock_unlock(pop, &D_RW(root)->kept_lock) == 0);
	HOLDS(firn_safepoint(pop) == FIRN_OK);
}

static void *work(void *argument)
{
	uint64_t thread = (uint64_t)(uintptr_t)argument;
	TOID(struct node) mine[KEPT];
	memset(mine, 0, sizeof mine);
	for (uint64_t round = 0; round < rounds; round++) {
		push(thread * rounds + round);
		keep(thread, round, mine);
		pull();
	}
	return NULL;
}

int main(int count, char **arguments)
{
	if (count != 3)
		return 2;
	rounds = strtoull(arguments[2], NULL, 10);
	pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(threads), (size_t)512 << 20, 0600);
	HOLDS(pop != NULL);
	root = POBJ_ROOT(pop, struct root);
	HOLDS(firn_safepoint(pop) == FIRN_OK);
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	uint64_t all = THREADS * rounds;
	HOLDS(D_RO(root)->length == 0 && D_RO(root)->pushed == all * (all - 1) / 2);
	HOLDS(D_RO(root)->popped == D_RO(root)->pushed);
	pmemobj_close(pop);
	HOLDS(pmemobj_check(arguments[1], POBJ_LAYOUT_NAME(threads)) == 1);
	printf("%llu numbers handed over\n", (unsigned long long)all);
	return 0;
}
