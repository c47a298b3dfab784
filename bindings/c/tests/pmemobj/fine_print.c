/*
 * What libpmemobj does where its manual is short. The lines are the same with either library.
 *
 *   fine_print FOLDER
 */
#include <libpmemobj/base.h>
#include <libpmemobj/pool.h>
#include <libpmemobj/types.h>
#include <libpmemobj/iterator.h>
#include <libpmemobj/thread.h>
#include <libpmemobj/atomic.h>
#include <libpmemobj/tx.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TOID_DECLARE(struct thing, 7);

struct thing {
	char bytes[100];
};

struct guarded {
	PMEMmutex mutex;
	PMEMrwlock rwlock;
	uint64_t number;
};

static const char *const stages[] = {"NONE", "WORK", "ONCOMMIT", "ONABORT", "FINALLY"};
static PMEMobjpool *pop;
static char path[512];

static void told(PMEMobjpool *of, enum pobj_tx_stage stage, void *arg)
{
	printf("%s%s%s ", (const char *)arg, stages[stage], of == pop ? "" : of == NULL ? "(no pool)" : "(another)");
	if (stage != pmemobj_tx_stage())
		printf("(in %s) ", stages[pmemobj_tx_stage()]);
}

static void callbacks(void)
{
	printf("commit: ");
	TX_BEGIN_CB(pop, told, "")
	{
	}
	TX_END
	printf("\nabort: ");
	TX_BEGIN_CB(pop, told, "")
	{
		pmemobj_tx_abort(ECANCELED);
	}
	TX_FINALLY
	{
		printf("[finally] ");
	}
	TX_END
	printf("\nan inner one aborts: ");
	TX_BEGIN_CB(pop, told, "")
	{
		TX_BEGIN(pop)
		{
			pmemobj_tx_abort(ECANCELED);
		}
		TX_ONABORT
		{
			printf("[inner abort] ");
		}
		TX_FINALLY
		{
			printf("[inner finally] ");
		}
		TX_END
	}
	TX_ONABORT
	{
		printf("[abort] ");
	}
	TX_END
	printf("\ngiven to an inner one: ");
	TX_BEGIN(pop)
	{
		TX_BEGIN_CB(pop, told, "i:")
		{
		}
		TX_END
		printf("[back] ");
	}
	TX_END
	printf("\nwithout stages: ");
	jmp_buf nowhere;
	memset(&nowhere, 0, sizeof nowhere);
	int failed = pmemobj_tx_begin(pop, nowhere, TX_PARAM_CB, told, (void *)"", TX_PARAM_NONE);
	pmemobj_tx_commit();
	failed |= pmemobj_tx_end();
	printf("%d\n", failed);
}

static void of_fresh(const char *when, TOID(struct thing) t, size_t least)
{
	size_t size = pmemobj_alloc_usable_size(t.oid);
	printf("%s: as long as asked %d, type %d, valid %d\n", when, size >= least, (int)pmemobj_type_num(t.oid),
	       TOID_VALID(t));
}

static void fresh_objects(void)
{
	TOID(struct thing) t = TOID_NULL(struct thing);
	TX_BEGIN(pop)
	{
		t = TX_NEW(struct thing);
		of_fresh("new", t, 100);
		t = TX_REALLOC(t, 500);
		of_fresh("longer", t, 500);
		t = TX_REALLOC(t, 2 * pmemobj_alloc_usable_size(t.oid));
		of_fresh("twice as long", t, 1000);
	}
	TX_END
	of_fresh("afterwards", t, 1000);
	pmemobj_free(&t.oid);
}

static void said(const char *what, int failed)
{
	printf("%s: %d, errno %d\n", what, failed, failed ? errno : 0);
	errno = 0;
}

#define UNKNOWN ((uint64_t)1 << 20)

static void flags(void)
{
	PMEMoid oid;
	TX_BEGIN(pop)
	{
		PMEMoid mine = pmemobj_tx_zalloc(64, 1);
		oid = pmemobj_tx_xalloc(64, 1, UNKNOWN | POBJ_XALLOC_NO_ABORT);
		said("tx_xalloc", OID_IS_NULL(oid));
		oid = pmemobj_tx_xalloc(0, 1, POBJ_XALLOC_NO_ABORT);
		said("tx_xalloc of nothing", OID_IS_NULL(oid));
		oid = pmemobj_tx_xalloc(PMEMOBJ_MAX_ALLOC_SIZE + 1, 1, POBJ_XALLOC_NO_ABORT);
		said("tx_xalloc of too much", OID_IS_NULL(oid));
		oid = pmemobj_tx_xalloc((size_t)100 << 20, 1, POBJ_XALLOC_NO_ABORT);
		said("tx_xalloc of more than there is", OID_IS_NULL(oid));
		said("tx_xadd_range", pmemobj_tx_xadd_range(mine, 0, 8, UNKNOWN | POBJ_XADD_NO_ABORT));
		said("tx_xfree", pmemobj_tx_xfree(mine, UNKNOWN | POBJ_XFREE_NO_ABORT));
		said("tx_xlock",
		     pmemobj_tx_xlock(TX_PARAM_MUTEX, pmemobj_direct(mine), UNKNOWN | POBJ_XLOCK_NO_ABORT));
		said("tx_lock", pmemobj_tx_lock(TX_PARAM_MUTEX, pmemobj_direct(mine)));
		said("tx_lock again", pmemobj_tx_lock(TX_PARAM_MUTEX, pmemobj_direct(mine)));
		said("add of a variable", pmemobj_tx_xadd_range_direct(&oid, 8, POBJ_XADD_NO_ABORT));
		oid = pmemobj_tx_xalloc(64, 1, POBJ_XALLOC_ZERO | POBJ_XALLOC_NO_FLUSH);
		said("known flags", OID_IS_NULL(oid));
	}
	TX_ONABORT
	{
		printf("aborted\n");
	}
	TX_END
	said("xalloc", pmemobj_xalloc(pop, &oid, 64, 1, UNKNOWN, NULL, NULL));
	said("xalloc of a class", pmemobj_xalloc(pop, &oid, 64, 1, POBJ_CLASS_ID(77), NULL, NULL));
	said("alloc of nothing", pmemobj_alloc(pop, &oid, 0, 1, NULL, NULL));
	TX_BEGIN(pop)
	{
		pmemobj_tx_abort(0);
	}
	TX_ONABORT
	{
		printf("abort with 0: %d %d\n", errno, pmemobj_tx_errno());
	}
	TX_END
}

static void settings(void)
{
	int word = 0;
	volatile int reached = 0;
	TX_BEGIN(pop)
	{
		printf("the word is null %d, a failure aborts %d\n", pmemobj_tx_get_user_data() == NULL,
		       pmemobj_tx_get_failure_behavior() == POBJ_TX_FAILURE_ABORT);
		pmemobj_tx_set_user_data(&word);
		pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_RETURN);
		said("alloc that returns its failure", OID_IS_NULL(pmemobj_tx_alloc(0, 1)));
		said("add that returns its failure", pmemobj_tx_add_range_direct(&word, sizeof word));
		TX_BEGIN(pop)
		{
			printf("within: the same word %d, returned too %d\n", pmemobj_tx_get_user_data() == &word,
			       pmemobj_tx_get_failure_behavior() == POBJ_TX_FAILURE_RETURN);
			pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_ABORT);
		}
		TX_END
		printf("around: returned still %d\n", pmemobj_tx_get_failure_behavior() == POBJ_TX_FAILURE_RETURN);
		pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_ABORT);
		reached = 1;
		pmemobj_tx_alloc(0, 1);
		reached = 2;
	}
	TX_ONABORT
	{
		printf("aborted with %d at %d\n", errno, reached);
	}
	TX_END
	TX_BEGIN(pop)
	{
		printf("the next one's word is null %d\n", pmemobj_tx_get_user_data() == NULL);
	}
	TX_END
}

static void names(void)
{
	PMEMoid root = pmemobj_root(pop, sizeof(struct guarded));
	PMEMoid none = {root.pool_uuid_lo, 0}, strange = {5, 0};
	printf("the pool by an OID without an object %d, of no pool %d\n", pmemobj_pool_by_oid(none) == pop,
	       pmemobj_pool_by_oid(strange) != NULL);
	printf("an offset from the handle leads to the object %d\n", (char *)pop + root.off == pmemobj_direct(root));
}

static void *takes(void *mutex)
{
	int free = pmemobj_mutex_trylock(pop, mutex) == 0;
	if (free)
		pmemobj_mutex_unlock(pop, mutex);
	return free ? mutex : NULL;
}

static int is_free(PMEMmutex *mutex)
{
	pthread_t thread;
	void *taken;
	if (pthread_create(&thread, NULL, takes, mutex) != 0 || pthread_join(thread, &taken) != 0)
		exit(1);
	return taken != NULL;
}

/* A structure with an unlocked lock is copied; then one of the locks is taken. */
static void copied_locks(void)
{
	struct guarded *of = pmemobj_direct(pmemobj_root(pop, sizeof(struct guarded)));
	PMEMoid oid;
	if (pmemobj_zalloc(pop, &oid, sizeof(struct guarded), 2) != 0)
		exit(1);
	struct guarded *copy = pmemobj_direct(oid);
	pmemobj_mutex_lock(pop, &of->mutex);
	pmemobj_mutex_unlock(pop, &of->mutex);
	pmemobj_memcpy_persist(pop, copy, of, sizeof *of);
	pmemobj_mutex_lock(pop, &of->mutex);
	printf("the copy of a lock is free %d, and the lock is not %d\n", is_free(&copy->mutex), is_free(&of->mutex));
	pmemobj_mutex_lock(pop, &copy->mutex);
	pmemobj_mutex_unlock(pop, &of->mutex);
	printf("the other way round %d %d\n", is_free(&copy->mutex), is_free(&of->mutex));
	pmemobj_mutex_unlock(pop, &copy->mutex);
}

#define THREADS 150

static pthread_barrier_t barrier;

static void *uses(void *barrier_of_all)
{
	void *volatile arg = barrier_of_all;
	volatile int failed = 0;
	TX_BEGIN(pop)
	{
		pmemobj_tx_free(pmemobj_tx_alloc(64, 3));
	}
	TX_ONABORT
	{
		failed = 1;
	}
	TX_END
	/* All of them are there at once. */
	pthread_barrier_wait(arg);
	PMEMoid oid;
	if (pmemobj_zalloc(pop, &oid, 64, 3) != 0)
		failed = 1;
	else
		pmemobj_free(&oid);
	return failed ? arg : NULL;
}

static void many_threads(void)
{
	static pthread_t threads[THREADS];
	int failed = 0;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, uses, &barrier) != 0)
			exit(1);
	for (int i = 0; i < THREADS; i++) {
		void *what;
		pthread_join(threads[i], &what);
		failed += what != NULL;
	}
	printf("%d of %d threads failed\n", failed, THREADS);
}

static void sizes(void)
{
	const size_t all[] = {1 << 20, PMEMOBJ_MIN_POOL - 1, PMEMOBJ_MIN_POOL, (size_t)1 << 62};
	const char *other = strcat(strcpy((char[600]){0}, path), ".other");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		PMEMobjpool *made = pmemobj_create(other, "x", all[i], 0600);
		printf("a pool of %zu bytes %d\n", all[i], made != NULL);
		if (made != NULL)
			pmemobj_close(made);
		remove(other);
	}
	const char *layouts[] = {"x", "y", "", NULL};
	for (int i = 0; i < 4; i++) {
		PMEMobjpool *opened = pmemobj_open(path, layouts[i]);
		printf("opened as '%s' %d\n", layouts[i] ? layouts[i] : "(null)", opened != NULL);
		if (opened != NULL)
			pmemobj_close(opened);
	}
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	snprintf(path, sizeof path, "%s/pool", arguments[1]);
	pop = pmemobj_create(path, "x", 64 << 20, 0600);
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 1;
	}
	callbacks();
	fresh_objects();
	flags();
	settings();
	names();
	copied_locks();
	many_threads();
	pmemobj_close(pop);
	sizes();
	return 0;
}
