/*
 * Every call for locks, in strict ISO C: what they return, what is left of them when the pool is opened again, and that
 * locks of freed objects cost nothing. The same with libpmemobj.
 *
 *   locks POOL
 */
#include <errno.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

POBJ_LAYOUT_BEGIN(locks);
POBJ_LAYOUT_ROOT(locks, struct root);
POBJ_LAYOUT_TOID(locks, struct guarded);
POBJ_LAYOUT_END(locks);

struct root {
	PMEMmutex mutex;
	PMEMrwlock rwlock;
	PMEMcond cond;
	uint64_t turns;
	TOID(struct guarded) kept;
};

struct guarded {
	PMEMmutex mutex;
	PMEMcond cond;
	PMEMrwlock rwlock;
	uint64_t number;
};

/* So many that their memory would be seen; a smaller number is for sanitizers, which keep memory of their own. */
enum { MANY = 50000 };
#ifndef FREED
#define FREED MANY
#endif

enum { WAITERS = 2 };

static PMEMobjpool *pop;
static struct root *root;

static void fail(int line, const char *what, int result)
{
	fprintf(stderr, "line %d: %s: %d; %s\n", line, what, result, pmemobj_errormsg());
	exit(1);
}

#define HOLDS(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what))                                                                                           \
			fail(__LINE__, #what, errno);                                                                  \
	} while (0)

#define RETURNS(wanted, call)                                                                                          \
	do {                                                                                                           \
		int result_ = (call);                                                                                  \
		if (result_ != (wanted))                                                                               \
			fail(__LINE__, #call, result_);                                                                \
	} while (0)

static void opened(PMEMobjpool *with)
{
	pop = with;
	HOLDS(pop != NULL);
	TOID(struct root) it = POBJ_ROOT(pop, struct root);
	root = D_RW(it);
}

/* ------------------------------------------------------------------------------------------------ two threads */

static void *asked_elsewhere(void *ask)
{
	int (*question)(void) = *(int (**)(void))ask;
	int *answer = malloc(sizeof *answer);
	if (answer != NULL)
		*answer = question();
	return answer;
}

/* What another thread is told. */
static int elsewhere(int (*question)(void))
{
	pthread_t thread;
	void *answer;
	HOLDS(pthread_create(&thread, NULL, asked_elsewhere, &question) == 0);
	HOLDS(pthread_join(thread, &answer) == 0 && answer != NULL);
	int result = *(int *)answer;
	free(answer);
	return result;
}

static int try_mutex(void)
{
	return pmemobj_mutex_trylock(pop, &root->mutex);
}

static int read_rwlock(void)
{
	int taken = pmemobj_rwlock_tryrdlock(pop, &root->rwlock);
	if (taken == 0)
		taken = pmemobj_rwlock_unlock(pop, &root->rwlock);
	return taken;
}

static int write_rwlock(void)
{
	return pmemobj_rwlock_trywrlock(pop, &root->rwlock);
}

static void *wait_for_turn(void *arg)
{
	(void)arg;
	RETURNS(0, pmemobj_mutex_lock(pop, &root->mutex));
	root->turns += 1;
	while (root->turns < WAITERS + 1)
		RETURNS(0, pmemobj_cond_wait(pop, &root->cond, &root->mutex));
	RETURNS(0, pmemobj_mutex_unlock(pop, &root->mutex));
	return NULL;
}

/* Waits until all wait. */
static void all_wait(void)
{
	for (;;) {
		RETURNS(0, pmemobj_mutex_lock(pop, &root->mutex));
		if (root->turns == WAITERS)
			return;
		RETURNS(0, pmemobj_mutex_unlock(pop, &root->mutex));
	}
}

/* --------------------------------------------------------------------------------------------------- the calls */

static void mutexes(void)
{
	RETURNS(0, pmemobj_mutex_lock(pop, &root->mutex));
	RETURNS(EBUSY, pmemobj_mutex_trylock(pop, &root->mutex));
	RETURNS(EBUSY, elsewhere(try_mutex));
	RETURNS(0, pmemobj_mutex_unlock(pop, &root->mutex));
	RETURNS(0, pmemobj_mutex_trylock(pop, &root->mutex));
	/* As if it were new. */
	pmemobj_mutex_zero(pop, &root->mutex);
	RETURNS(0, pmemobj_mutex_trylock(pop, &root->mutex));
	RETURNS(0, pmemobj_mutex_unlock(pop, &root->mutex));
}

static void rwlocks(void)
{
	RETURNS(0, pmemobj_rwlock_rdlock(pop, &root->rwlock));
	RETURNS(0, pmemobj_rwlock_tryrdlock(pop, &root->rwlock));
	RETURNS(0, elsewhere(read_rwlock));
	RETURNS(EBUSY, elsewhere(write_rwlock));
	RETURNS(0, pmemobj_rwlock_unlock(pop, &root->rwlock));
	RETURNS(0, pmemobj_rwlock_unlock(pop, &root->rwlock));
	RETURNS(0, pmemobj_rwlock_wrlock(pop, &root->rwlock));
	RETURNS(EBUSY, elsewhere(read_rwlock));
	RETURNS(EBUSY, elsewhere(write_rwlock));
	RETURNS(0, pmemobj_rwlock_unlock(pop, &root->rwlock));
	RETURNS(0, pmemobj_rwlock_trywrlock(pop, &root->rwlock));
	pmemobj_rwlock_zero(pop, &root->rwlock);
	RETURNS(0, elsewhere(read_rwlock));
}

static void conditions(void)
{
	pthread_t threads[WAITERS];
	root->turns = 0;
	pmemobj_cond_zero(pop, &root->cond);
	RETURNS(0, pmemobj_cond_signal(pop, &root->cond));
	for (int i = 0; i < WAITERS; i++)
		HOLDS(pthread_create(&threads[i], NULL, wait_for_turn, NULL) == 0);
	all_wait();
	RETURNS(0, pmemobj_cond_signal(pop, &root->cond));
	root->turns += 1;
	RETURNS(0, pmemobj_cond_broadcast(pop, &root->cond));
	RETURNS(0, pmemobj_mutex_unlock(pop, &root->mutex));
	for (int i = 0; i < WAITERS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
}

#if __STDC_VERSION__ >= 201112L
static struct timespec soon(void)
{
	struct timespec until;
	HOLDS(timespec_get(&until, TIME_UTC) == TIME_UTC);
	until.tv_nsec += 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec += 1;
	}
	return until;
}

static int await_mutex(void)
{
	struct timespec until = soon();
	return pmemobj_mutex_timedlock(pop, &root->mutex, &until);
}

static int await_reading(void)
{
	struct timespec until = soon();
	return pmemobj_rwlock_timedrdlock(pop, &root->rwlock, &until);
}

static int await_writing(void)
{
	struct timespec until = soon();
	return pmemobj_rwlock_timedwrlock(pop, &root->rwlock, &until);
}

static void limits(void)
{
	struct timespec until = soon();
	RETURNS(0, pmemobj_mutex_timedlock(pop, &root->mutex, &until));
	RETURNS(ETIMEDOUT, elsewhere(await_mutex));
	until = soon();
	RETURNS(ETIMEDOUT, pmemobj_cond_timedwait(pop, &root->cond, &root->mutex, &until));
	RETURNS(0, pmemobj_mutex_unlock(pop, &root->mutex));
	until = soon();
	RETURNS(0, pmemobj_rwlock_timedrdlock(pop, &root->rwlock, &until));
	RETURNS(ETIMEDOUT, elsewhere(await_writing));
	RETURNS(0, pmemobj_rwlock_unlock(pop, &root->rwlock));
	until = soon();
	RETURNS(0, pmemobj_rwlock_timedwrlock(pop, &root->rwlock, &until));
	RETURNS(ETIMEDOUT, elsewhere(await_reading));
	RETURNS(0, pmemobj_rwlock_unlock(pop, &root->rwlock));
}
#else
/* ISO C knows no moments yet. */
static void limits(void) {}
#endif

/* ------------------------------------------------------------------------------------------------ the process */

/* Pages of memory of the process's own. */
static long pages_of_memory(void)
{
	long all, resident, shared;
	FILE *file = fopen("/proc/self/statm", "r");
	HOLDS(file != NULL);
	HOLDS(fscanf(file, "%ld %ld %ld", &all, &resident, &shared) == 3);
	(void)fclose(file);
	return resident - shared;
}

/* An object with locks that are used is allocated and freed. */
static void use_and_free(uint64_t number)
{
	TX_BEGIN(pop)
	{
		TOID(struct guarded) it = TX_ZNEW(struct guarded);
		RETURNS(0, pmemobj_tx_lock(TX_PARAM_MUTEX, &D_RW(it)->mutex));
		RETURNS(0, pmemobj_rwlock_rdlock(pop, &D_RW(it)->rwlock));
		RETURNS(0, pmemobj_rwlock_unlock(pop, &D_RW(it)->rwlock));
		RETURNS(0, pmemobj_cond_signal(pop, &D_RW(it)->cond));
		D_RW(it)->number = number;
		if (number % 2 == 0)
			TX_FREE(it);
		else
			TX_SET(POBJ_ROOT(pop, struct root), kept, it);
	}
	TX_ONABORT
	{
		fail(__LINE__, "a transaction", errno);
	}
	TX_END
	if (number % 2 == 0)
		return;
	root = D_RW(POBJ_ROOT(pop, struct root));
	RETURNS(0, pmemobj_mutex_trylock(pop, &D_RW(root->kept)->mutex));
	RETURNS(0, pmemobj_mutex_unlock(pop, &D_RW(root->kept)->mutex));
	if (number % 4 == 1) {
		POBJ_FREE(&root->kept);
		return;
	}
	TX_BEGIN(pop)
	{
		TX_FREE(root->kept);
		TX_SET(POBJ_ROOT(pop, struct root), kept, TOID_NULL(struct guarded));
	}
	TX_ONABORT
	{
		fail(__LINE__, "a transaction", errno);
	}
	TX_END
	root = D_RW(POBJ_ROOT(pop, struct root));
}

/* What an aborted transaction has freed is locked as before. */
static void abort_a_free(void)
{
	volatile int aborted = 0;
	TOID(struct guarded) it;
	HOLDS(POBJ_ZNEW(pop, &it, struct guarded) == 0);
	RETURNS(0, pmemobj_mutex_lock(pop, &D_RW(it)->mutex));
	TX_BEGIN(pop)
	{
		TX_FREE(it);
		pmemobj_tx_abort(ECANCELED);
	}
	TX_ONABORT
	{
		aborted = 1;
	}
	TX_END
	HOLDS(aborted);
	RETURNS(EBUSY, pmemobj_mutex_trylock(pop, &D_RW(it)->mutex));
	RETURNS(0, pmemobj_mutex_unlock(pop, &D_RW(it)->mutex));
	POBJ_FREE(&it);
}

int main(int count, char **arguments)
{
	HOLDS(count == 2);
	opened(pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(locks), PMEMOBJ_MIN_POOL, 0600));
	mutexes();
	rwlocks();
	conditions();
	limits();
	abort_a_free();
	use_and_free(0);
	long before = pages_of_memory();
	for (uint64_t number = 1; number < FREED; number++)
		use_and_free(number);
	long grown = pages_of_memory() - before;
	if (FREED == MANY && grown >= 1024)
		fail(__LINE__, "pages of memory that locks of freed objects take", (int)grown);
	/* Locks are the process's, and end with the pool. */
	RETURNS(0, pmemobj_mutex_lock(pop, &root->mutex));
	RETURNS(0, pmemobj_rwlock_wrlock(pop, &root->rwlock));
	pmemobj_close(pop);
	opened(pmemobj_open(arguments[1], POBJ_LAYOUT_NAME(locks)));
	mutexes();
	rwlocks();
	pmemobj_close(pop);
	puts("locked and unlocked");
	return 0;
}
