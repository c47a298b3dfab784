/*
 * Everything that a program for libpmemobj may do wrong: each is refused with a number and a message, and the pool is
 * what it was.
 *
 *   misuse FOLDER
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(misuse);
POBJ_LAYOUT_ROOT(misuse, struct root);
POBJ_LAYOUT_TOID(misuse, struct item);
POBJ_LAYOUT_END(misuse);

struct item {
	uint64_t words[8];
};

struct root {
	TOID(struct item) item;
	PMEMoid spare;
	uint64_t number;
};

static const char *folder;

static const char *path(const char *name)
{
	static char paths[4][512];
	static int next;
	char *to = paths[next++ % 4];
	snprintf(to, sizeof paths[0], "%s/%s", folder, name);
	return to;
}

/* That a call was refused, with an errno, and a message with a word. */
#define REFUSED(is_refused, number, word)                                                                              \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		int is_refused_ = (is_refused);                                                                        \
		if (!is_refused_ || errno != (number) || strstr(pmemobj_errormsg(), (word)) == NULL) {                 \
			fprintf(stderr, "line %d: %s, errno %d, '%s'\n", __LINE__,                                     \
				is_refused_ ? "refused" : "not refused", errno, pmemobj_errormsg());                   \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define HOLDS(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "line %d: not so: %s; '%s'\n", __LINE__, #what, pmemobj_errormsg());           \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static PMEMobjpool *created(const char *name)
{
	PMEMobjpool *pop = pmemobj_create(path(name), POBJ_LAYOUT_NAME(misuse), PMEMOBJ_MIN_POOL, 0600);
	HOLDS(pop != NULL);
	return pop;
}

/* What a transaction's abort says, if `work` is all that it does. */
static int aborted_by(PMEMobjpool *pop, void (*work)(void *), void *argument)
{
	volatile int aborted = 0;
	TX_BEGIN(pop)
	{
		work(argument);
	}
	TX_ONABORT
	{
		aborted = errno;
	}
	TX_END
	HOLDS(pmemobj_tx_stage() == TX_STAGE_NONE);
	return aborted;
}

static void files(void)
{
	REFUSED(pmemobj_open(path("nothing"), NULL) == NULL, ENOENT, "nothing");
	REFUSED(pmemobj_create(path("none/pool"), "", PMEMOBJ_MIN_POOL, 0600) == NULL, ENOENT, "none");
	REFUSED(pmemobj_create(path("pool"), "", 0, 0600) == NULL, EINVAL, "PMEMOBJ_MIN_POOL");
	REFUSED(pmemobj_create(NULL, "", PMEMOBJ_MIN_POOL, 0600) == NULL, EINVAL, "null");
	FILE *text = fopen(path("text"), "w");
	for (int i = 0; i < 100000; i++)
		fprintf(text, "this is no pool\n");
	fclose(text);
	REFUSED(pmemobj_open(path("text"), NULL) == NULL, EINVAL, "text");
	REFUSED(pmemobj_check(path("text"), NULL) != 1, EINVAL, "text");
	PMEMobjpool *pop = created("taken");
	REFUSED(pmemobj_create(path("taken"), "", PMEMOBJ_MIN_POOL, 0600) == NULL, EEXIST, "taken");
	REFUSED(pmemobj_open(path("taken"), NULL) == NULL, EAGAIN, "taken");
	pmemobj_close(pop);
	REFUSED(pmemobj_open(path("taken"), "another layout") == NULL, EINVAL, "another layout");
}

static void nothing(void *argument)
{
	(void)argument;
}

static void null_pools(void)
{
	PMEMoid oid = OID_NULL;
	REFUSED(OID_IS_NULL(pmemobj_root(NULL, 8)), EINVAL, "null");
	REFUSED(pmemobj_alloc(NULL, &oid, 8, 0, NULL, NULL) == -1, EINVAL, "null");
	REFUSED(aborted_by(NULL, nothing, NULL) == EINVAL, EINVAL, "null");
	REFUSED(pmemobj_defrag(NULL, NULL, 0, NULL) == -1, EINVAL, "null");
	HOLDS(OID_IS_NULL(pmemobj_first(NULL)) && firn_safepoint(NULL) == FIRN_INVALID);
	HOLDS(pmemobj_direct(OID_NULL) == NULL && pmemobj_alloc_usable_size(OID_NULL) == 0);
	pmemobj_persist(NULL, &oid, sizeof oid);
	pmemobj_close(NULL);
}

static void closed_pools(void)
{
	PMEMobjpool *pop = created("closed");
	TOID(struct item) item;
	HOLDS(POBJ_ZNEW(pop, &item, struct item) == 0);
	const struct item *it = D_RO(item);
	HOLDS(it != NULL);
	pmemobj_close(pop);
	HOLDS(D_RW(item) == NULL && strstr(pmemobj_errormsg(), "closed") != NULL);
	HOLDS(pmemobj_type_num(item.oid) == 0 && pmemobj_pool_by_oid(item.oid) == NULL);
	TOID(struct item) same = item;
	REFUSED((POBJ_FREE(&same), errno != 0), EINVAL, "closed");
	HOLDS(TOID_EQUALS(same, item) || !TOID_IS_NULL(same));
	REFUSED(OID_IS_NULL(pmemobj_root(pop, 8)), EINVAL, "closed");
	REFUSED(aborted_by(pop, nothing, NULL) == EINVAL, EINVAL, "closed");
	pmemobj_close(pop);
}

static void objects(PMEMobjpool *pop)
{
	PMEMoid oid = OID_NULL;
	REFUSED(pmemobj_alloc(pop, &oid, 0, 0, NULL, NULL) == -1, EINVAL, "byte");
	REFUSED(pmemobj_alloc(pop, &oid, SIZE_MAX / 2, 0, NULL, NULL) == -1, ENOMEM, "bytes");
	HOLDS(OID_IS_NULL(oid));
	HOLDS(pmemobj_alloc(pop, &oid, 100, 7, NULL, NULL) == 0);
	PMEMoid copy = oid, inside = oid, nowhere = oid;
	inside.off += 32;
	nowhere.off = (uint64_t)1 << 50;
	REFUSED((pmemobj_free(&inside), errno != 0), EINVAL, "no object");
	REFUSED((pmemobj_free(&nowhere), errno != 0), EINVAL, "object");
	/* Also while the inline functions know where the pool is. */
	HOLDS(pmemobj_direct(oid) != NULL);
	HOLDS(pmemobj_direct(nowhere) == NULL && strstr(pmemobj_errormsg(), "no object") != NULL);
	HOLDS(pmemobj_type_num(oid) == 7 && pmemobj_alloc_usable_size(inside) == 0);
	pmemobj_free(&oid);
	HOLDS(OID_IS_NULL(oid));
	REFUSED((pmemobj_free(&copy), errno != 0), EINVAL, "freed");
	REFUSED(pmemobj_realloc(pop, &copy, 200, 7) == -1, EINVAL, "freed");
	PMEMoid foreign = {0x1234567890, 4096};
	REFUSED((pmemobj_free(&foreign), errno != 0), EINVAL, "no open pool");
	REFUSED(pmemobj_strdup(pop, &oid, NULL, 0) == -1, EINVAL, "");
}

static void adds_a_variable(void *argument)
{
	uint64_t variable = 0;
	(void)argument;
	TX_ADD_DIRECT(&variable);
}

static void adds_too_much(void *argument)
{
	PMEMoid *oid = argument;
	pmemobj_tx_add_range(*oid, 0, (size_t)1 << 50);
}

static void frees_twice(void *argument)
{
	PMEMoid oid = pmemobj_tx_alloc(64, 1);
	(void)argument;
	pmemobj_tx_free(oid);
	pmemobj_tx_free(oid);
}

static void begins_elsewhere(void *argument)
{
	TX_BEGIN((PMEMobjpool *)argument)
	{
	}
	TX_END
}

static void stops(void *argument)
{
	PMEMobjpool *pop = argument;
	HOLDS(firn_safepoint(pop) == FIRN_BUSY);
	PMEMoid none = OID_NULL, *list = &none;
	REFUSED(pmemobj_defrag(pop, &list, 1, NULL) == -1, EBUSY, "open");
	REFUSED(pmemobj_defrag(pop, NULL, 1, NULL) == -1, EINVAL, "table of OIDs");
	HOLDS(firn_collect_pool(pop, NULL, NULL) == EBUSY && strstr(pmemobj_errormsg(), "open") != NULL);
	pmemobj_close(pop);
	HOLDS(strstr(pmemobj_errormsg(), "transaction is open") != NULL);
}

static void within_transactions(PMEMobjpool *pop, TOID(struct root) root)
{
	PMEMobjpool *other = created("other");
	TOID(struct root) others = POBJ_ROOT(other, struct root);
	HOLDS(aborted_by(pop, adds_a_variable, NULL) == EINVAL);
	HOLDS(strstr(pmemobj_errormsg(), "do not lie in the pool") != NULL);
	HOLDS(aborted_by(pop, adds_too_much, &root.oid) == EINVAL);
	HOLDS(aborted_by(pop, adds_too_much, &others.oid) == EINVAL);
	HOLDS(aborted_by(pop, frees_twice, NULL) == EINVAL);
	HOLDS(aborted_by(pop, begins_elsewhere, other) == EINVAL);
	HOLDS(aborted_by(pop, begins_elsewhere, NULL) == EINVAL);
	HOLDS(aborted_by(pop, stops, pop) == 0);
	pmemobj_close(other);
}

struct shared {
	PMEMobjpool *pop;
	TOID(struct root) root;
	pthread_barrier_t barrier;
};

static void *another_thread(void *argument)
{
	struct shared *shared = argument;
	pthread_barrier_wait(&shared->barrier);
	/* The first thread's transaction is not this one's. */
	HOLDS(pmemobj_tx_stage() == TX_STAGE_NONE);
	pmemobj_close(shared->pop);
	HOLDS(strstr(pmemobj_errormsg(), "transaction is open") != NULL);
	HOLDS(D_RO(shared->root)->number == 17);
	HOLDS(firn_safepoint(shared->pop) == FIRN_OK);
	pthread_barrier_wait(&shared->barrier);
	return NULL;
}

static void threads(PMEMobjpool *pop, TOID(struct root) root)
{
	static struct shared shared;
	pthread_t thread;
	shared.pop = pop;
	shared.root = root;
	HOLDS(pthread_barrier_init(&shared.barrier, NULL, 2) == 0);
	HOLDS(pthread_create(&thread, NULL, another_thread, &shared) == 0);
	TX_BEGIN(pop)
	{
		TX_SET(root, number, 17);
		pthread_barrier_wait(&shared.barrier);
		pthread_barrier_wait(&shared.barrier);
	}
	TX_ONABORT
	{
		HOLDS(0);
	}
	TX_END
	HOLDS(pthread_join(thread, NULL) == 0);
	pthread_barrier_destroy(&shared.barrier);
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	folder = arguments[1];
	files();
	null_pools();
	closed_pools();
	PMEMobjpool *pop = created("pool");
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	TX_BEGIN(pop)
	{
		TX_SET(root, number, 5);
		TX_SET(root, item, TX_ZNEW(struct item));
	}
	TX_END
	objects(pop);
	within_transactions(pop, root);
	HOLDS(D_RO(root)->number == 5 && TOID_VALID(D_RO(root)->item));
	threads(pop, root);
	uint64_t items = 0;
	PMEMoid each;
	POBJ_FOREACH(pop, each)
		items++;
	HOLDS(items == 1 && D_RO(root)->number == 17);
	pmemobj_close(pop);
	HOLDS(pmemobj_check(path("pool"), POBJ_LAYOUT_NAME(misuse)) == 1);
	printf("refused\n");
	return 0;
}
