/*
 * Fields that share a word, each changed under a lock of its own: what is done with one of them leaves the others as
 * they are, no matter which thread stored them. One line for each, the same with libpmemobj.
 *
 *   neighbours POOL
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>

struct fields {
	uint32_t a, b;
	uint8_t bytes[24];
};

static PMEMobjpool *pop;
static PMEMoid root;

static struct fields *fields(void)
{
	return pmemobj_direct(root);
}

/* In threads of their own, while the main thread's transaction is open. */

static void *commit_b(void *arg)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(&fields()->b, 4);
		fields()->b = 22;
	}
	TX_END
	return arg;
}

static void *abort_b(void *arg)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(&fields()->b, 4);
		fields()->b = 33;
		pmemobj_tx_abort(ECANCELED);
	}
	TX_END
	return arg;
}

static void *persist_b(void *arg)
{
	uint32_t b = 44;
	pmemobj_memcpy_persist(pop, &fields()->b, &b, 4);
	return arg;
}

static void *add_bytes(void *arg)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range(root, offsetof(struct fields, bytes), 5);
		memset(fields()->bytes, 7, 5);
	}
	TX_END
	return arg;
}

static void *set_bytes(void *arg)
{
	pmemobj_memset_persist(pop, fields()->bytes, 8, 5);
	pmemobj_memmove(pop, fields()->bytes + 20, fields()->bytes, 4, 0);
	return arg;
}

static void meanwhile(void *(*other)(void *))
{
	pthread_t thread;
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
}

static void reset(void)
{
	memset(fields(), 0, sizeof(struct fields));
	pmemobj_persist(pop, fields(), sizeof(struct fields));
}

static void show(const char *what)
{
	printf("%s: %u %u", what, fields()->a, fields()->b);
	for (int i = 0; i < 24; i++)
		printf("%s%u", i % 8 ? "," : " ", fields()->bytes[i]);
	printf("\n");
	reset();
}

static void one(const char *what, void *(*other)(void *), int aborts)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(&fields()->a, 4);
		fields()->a = 11;
		meanwhile(other);
		if (aborts)
			pmemobj_tx_abort(ECANCELED);
	}
	TX_END
	show(what);
}

static void bytes(const char *what, void *(*other)(void *), int aborts)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range(root, offsetof(struct fields, bytes) + 5, 15);
		memset(fields()->bytes + 5, 1, 15);
		meanwhile(other);
		if (aborts)
			pmemobj_tx_abort(ECANCELED);
	}
	TX_END
	show(what);
}

/* What is taken in without a snapshot is not restored, and its neighbour is all the same. */
static void without_snapshot(void)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_xadd_range_direct(&fields()->b, 4, POBJ_XADD_NO_SNAPSHOT);
		fields()->b = 55;
		pmemobj_tx_add_range_direct(&fields()->a, 4);
		fields()->a = 66;
		pmemobj_tx_abort(ECANCELED);
	}
	TX_END
	show("without a snapshot");
}

/* Nor is what the same thread has stored and made durable beside what was added. */
static void inside_one_thread(void)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(&fields()->a, 4);
		fields()->b = 77;
		pmemobj_persist(pop, &fields()->b, 4);
		fields()->a = 1;
		pmemobj_tx_abort(ECANCELED);
	}
	TX_END
	show("beside a snapshot");
}

int main(int argc, char **argv)
{
	pop = argc > 1 ? pmemobj_create(argv[1], "neighbours", 16 << 20, 0600) : NULL;
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 1;
	}
	root = pmemobj_root(pop, sizeof(struct fields));
	reset();
	for (int aborts = 0; aborts < 2; aborts++) {
		one("a commit", commit_b, aborts);
		one("an abort", abort_b, aborts);
		one("a copy", persist_b, aborts);
		bytes("bytes added", add_bytes, aborts);
		bytes("bytes set", set_bytes, aborts);
	}
	without_snapshot();
	inside_one_thread();
	pmemobj_close(pop);
	return 0;
}
