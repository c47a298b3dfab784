/*
 * A program that forks while its threads are in the middle of transactions and a collector moves objects. Children use
 * everything that they have of the pool, open other pools, and end by exit.
 *
 *   forked FOLDER
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

POBJ_LAYOUT_BEGIN(forked);
POBJ_LAYOUT_ROOT(forked, struct root);
POBJ_LAYOUT_END(forked);

enum { CHILDREN = 24, COUNTERS = 3, PARTS = 40 };

struct root {
	uint64_t counters[COUNTERS][64];
	PMEMmutex lock;
	uint64_t forks;
};

#define HOLDS(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%d, line %d: %s; %s\n", getpid(), __LINE__, #condition, pmemobj_errormsg()); \
			_exit(1); \
		} \
	} while (0)
#define REFUSED(condition) HOLDS((condition) && strstr(pmemobj_errormsg(), "forked") != NULL)

static PMEMobjpool *pop;
static PMEMoid root;
static int is_over;
static char path[3][512];
/* Closed when the child that lives on is to end. */
static int lives[2];
extern char **environ;

/* What the destructors of a program do. */
static void at_exit(void)
{
	if (pop != NULL)
		pmemobj_close(pop);
}

static void *work(void *argument)
{
	uint64_t *counter = argument;
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		PMEMoid parts[PARTS];
		TX_BEGIN(pop)
		{
			for (int i = 0; i < PARTS; i++)
				parts[i] = pmemobj_tx_zalloc(100 + 8 * (size_t)i, 1);
			pmemobj_tx_add_range_direct(counter, 8);
			++*counter;
		}
		TX_ONABORT
		{
			HOLDS(0);
		}
		TX_END
		for (int i = 0; i < PARTS; i++)
			pmemobj_free(&parts[i]);
	}
	return NULL;
}

static void use_another(const char *at)
{
	PMEMobjpool *other = pmemobj_create(at, "other", PMEMOBJ_MIN_POOL, 0600);
	HOLDS(other != NULL);
	PMEMoid mine = pmemobj_root(other, 64);
	uint64_t *number = pmemobj_direct(mine);
	HOLDS(number != NULL);
	TX_BEGIN(other)
	{
		pmemobj_tx_add_range(mine, 0, 8);
		*number = 7;
		HOLDS(!OID_IS_NULL(pmemobj_tx_alloc(10000, 1)));
	}
	TX_ONABORT
	{
		HOLDS(0);
	}
	TX_END
	HOLDS(*(uint64_t *)pmemobj_direct(mine) == 7);
	pmemobj_close(other);
	HOLDS(pmemobj_check(at, "other") == 1 && unlink(at) == 0);
}

static void in_child(struct root *held, uint64_t forks)
{
	/* What was reached before is there, and what is stored there stays here. */
	HOLDS(held->forks == forks);
	held->forks = 1u << 30;
	pmemobj_persist(pop, &held->forks, 8);
	REFUSED(pmemobj_direct(root) == NULL);
	int stages = 0;
	TX_BEGIN(pop)
	{
		stages = 1;
	}
	TX_ONABORT
	{
		stages += 2;
	}
	TX_FINALLY
	{
		stages += 4;
	}
	TX_END
	REFUSED(stages == 6);
	PMEMoid oid = root;
	REFUSED(pmemobj_alloc(pop, &oid, 100, 1, NULL, NULL) == -1);
	REFUSED(pmemobj_zalloc(pop, &oid, 100, 1) == -1 && OID_EQUALS(oid, root));
	REFUSED(pmemobj_realloc(pop, &oid, 1000, 1) == -1);
	pmemobj_free(&oid);
	REFUSED(OID_EQUALS(oid, root));
	REFUSED(OID_IS_NULL(pmemobj_root(pop, 64)) && pmemobj_root_size(pop) == 0);
	REFUSED(OID_IS_NULL(pmemobj_first(pop)));
	REFUSED(OID_IS_NULL(pmemobj_next(root)));
	REFUSED(pmemobj_alloc_usable_size(root) == 0 && pmemobj_type_num(root) == 0);
	PMEMoid *list = &oid;
	REFUSED(pmemobj_defrag(pop, &list, 1, NULL) == -1);
	REFUSED(firn_collect_pool(pop, NULL, NULL) != 0);
	REFUSED(firn_collecting_pool(pop, NULL) != 0);
	REFUSED(firn_forget_oids(pop) != 0 && firn_pin_type(pop, 9) != 0 && firn_safepoint(pop) != FIRN_OK);
	REFUSED(pmemobj_mutex_lock(pop, &held->lock) != 0);
	pmemobj_close(pop);
	REFUSED(1);
	/* The parent has it. */
	HOLDS(pmemobj_open(path[0], POBJ_LAYOUT_NAME(forked)) == NULL);
	use_another(path[1]);
}

static void wait_for(pid_t child)
{
	int status;
	HOLDS(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void count_in_transaction(struct root *held)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(&held->forks, 8);
		held->forks++;
	}
	TX_ONABORT
	{
		HOLDS(0);
	}
	TX_END
}

/* In the middle of a transaction, which the child cannot end. */
static void fork_inside(void)
{
	struct root *held = pmemobj_direct(root);
	pid_t child = -1;
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(&held->forks, 8);
		held->forks++;
		child = fork();
		if (child == 0)
			REFUSED(pmemobj_direct(root) == NULL && pmemobj_tx_stage() == TX_STAGE_WORK);
	}
	TX_ONABORT
	{
		REFUSED(child == 0);
		exit(0);
	}
	TX_END
	HOLDS(child != 0);
	wait_for(child);
}

/* A child that lives on does not keep the pool of a parent that was killed. */
static void fork_and_die(void)
{
	int pipes[2];
	char byte = 0;
	HOLDS(pipe(pipes) == 0 && pipe(lives) == 0);
	pid_t dying = fork();
	if (dying == 0) {
		pop = pmemobj_create(path[2], "died", PMEMOBJ_MIN_POOL, 0600);
		HOLDS(pop != NULL && !OID_IS_NULL(pmemobj_root(pop, 64)));
		if (fork() == 0) {
			close(lives[1]);
			HOLDS(write(pipes[1], &byte, 1) == 1);
			HOLDS(read(lives[0], &byte, 1) == 0);
			_exit(0);
		}
		pause();
	}
	HOLDS(read(pipes[0], &byte, 1) == 1);
	HOLDS(kill(dying, SIGKILL) == 0 && waitpid(dying, NULL, 0) == dying);
	PMEMobjpool *died = pmemobj_open(path[2], "died");
	HOLDS(died != NULL && pmemobj_root_size(died) == 64);
	pmemobj_close(died);
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	for (int i = 0; i < 3; i++)
		snprintf(path[i], sizeof path[i], "%s/%d", arguments[1], i);
	atexit(at_exit);
	fork_and_die();
	pop = pmemobj_create(path[0], POBJ_LAYOUT_NAME(forked), (size_t)256 << 20, 0600);
	HOLDS(pop != NULL);
	root = pmemobj_root(pop, sizeof(struct root));
	firn_collecting how = {.trigger = 1.06, .target = 1.02, .pages = FIRN_SMALL_PAGES, .least_bytes = 1, .interval_us = 100};
	HOLDS(firn_collecting_pool(pop, &how) == 0);
	struct root *held = pmemobj_direct(root);
	pthread_t threads[COUNTERS];
	for (int i = 0; i < COUNTERS; i++)
		HOLDS(pthread_create(&threads[i], NULL, work, held->counters[i]) == 0);
	for (uint64_t i = 0; i < CHILDREN; i++) {
		count_in_transaction(held);
		held = pmemobj_direct(root);
		if (i % 2 == 0)
			firn_safepoint(pop);
		pid_t child = fork();
		if (child == 0) {
			in_child(held, i + 1);
			exit(0);
		}
		wait_for(child);
		pid_t spawned;
		char *nothing[] = {"true", NULL};
		HOLDS(posix_spawnp(&spawned, "true", NULL, NULL, nothing, environ) == 0);
		wait_for(spawned);
	}
	fork_inside();
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < COUNTERS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	held = pmemobj_direct(root);
	HOLDS(held->forks == CHILDREN + 1);
	for (int i = 0; i < COUNTERS; i++)
		HOLDS(held->counters[i][0] > 0);
	pmemobj_close(pop);
	pop = NULL;
	HOLDS(pmemobj_check(path[0], POBJ_LAYOUT_NAME(forked)) == 1);
	/* Now it may be the child's. */
	pid_t child = fork();
	if (child == 0) {
		pop = pmemobj_open(path[0], POBJ_LAYOUT_NAME(forked));
		HOLDS(pop != NULL);
		root = pmemobj_root(pop, sizeof(struct root));
		count_in_transaction(pmemobj_direct(root));
		exit(0);
	}
	wait_for(child);
	pop = pmemobj_open(path[0], POBJ_LAYOUT_NAME(forked));
	HOLDS(pop != NULL && ((struct root *)pmemobj_direct(pmemobj_root(pop, sizeof(struct root))))->forks == CHILDREN + 2);
	pmemobj_close(pop);
	pop = NULL;
	printf("forked\n");
	return 0;
}
