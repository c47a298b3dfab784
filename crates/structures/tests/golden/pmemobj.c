/*
 * pmemobj.c -- writes the golden pools of a program of libpmemobj's interface
 *
 * cc -I<prefix>/include/firn/compat pmemobj.c -L<prefix>/lib -lfirn -o pmemobj
 * FIRN_ASSUME_PERSISTENT=adr FIRN_COLLECT=0 ./pmemobj pmemobj-closed.img
 * FIRN_ASSUME_PERSISTENT=adr FIRN_COLLECT=0 ./pmemobj pmemobj-unclean.img dies
 *
 * A list of items of three types, some of them freed again, and a buffer. With a second argument it ends in the
 * middle of two transactions: one has changed a count, freed an item and stamped the buffer, in more batches than a
 * lane holds; the other has allocated and published an item.
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITEMS 300
#define BUFFER 48000

struct item {
	PMEMoid next;
	uint64_t number;
	char text[48];
};

struct root {
	PMEMoid head;
	PMEMoid buffer;
	PMEMoid extra;
	uint64_t count;
};

static PMEMobjpool *pop;

static struct root *
the_root(void)
{
	return pmemobj_direct(pmemobj_root(pop, sizeof(struct root)));
}

static void
check(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "%s: %s\n", what, pmemobj_errormsg());
		exit(1);
	}
}

static void
push(uint64_t number)
{
	TX_BEGIN(pop) {
		struct root *root = the_root();
		PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct item) + number % 5 * 64, 1 + number % 3);
		struct item *item = pmemobj_direct(oid);
		item->next = root->head;
		item->number = number;
		snprintf(item->text, sizeof(item->text), "item %llu", (unsigned long long)number);
		pmemobj_tx_add_range_direct(root, sizeof(*root));
		root->head = oid;
		root->count++;
	} TX_ONABORT {
		check(1, "pushing");
	} TX_END
}

/* Frees every second item behind the first. */
static void
thin(void)
{
	struct item *item = pmemobj_direct(the_root()->head);
	while (item != NULL && !OID_IS_NULL(item->next)) {
		TX_BEGIN(pop) {
			struct root *root = the_root();
			struct item *next = pmemobj_direct(item->next);
			PMEMoid gone = item->next;
			pmemobj_tx_add_range_direct(&item->next, sizeof(PMEMoid));
			pmemobj_tx_add_range_direct(&root->count, sizeof(root->count));
			item->next = next->next;
			root->count--;
			pmemobj_tx_free(gone);
		} TX_ONABORT {
			check(1, "freeing");
		} TX_END
		item = pmemobj_direct(item->next);
	}
}

static pthread_barrier_t halfway;

static void *
publish(void *unused)
{
	(void)unused;
	TX_BEGIN(pop) {
		struct root *root = the_root();
		PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct item), 2);
		((struct item *)pmemobj_direct(oid))->number = 4711;
		pmemobj_tx_add_range_direct(&root->extra, sizeof(PMEMoid));
		root->extra = oid;
		pthread_barrier_wait(&halfway);
		pause();
	} TX_END
	return NULL;
}

static void
die_in_transactions(void)
{
	pthread_t thread;
	pthread_barrier_init(&halfway, NULL, 2);
	check(pthread_create(&thread, NULL, publish, NULL), "a thread");
	TX_BEGIN(pop) {
		struct root *root = the_root();
		struct item *first = pmemobj_direct(root->head);
		pmemobj_tx_add_range_direct(&root->count, sizeof(root->count));
		root->count = 0;
		pmemobj_tx_add_range_direct(&first->next, sizeof(PMEMoid));
		PMEMoid gone = first->next;
		first->next = OID_NULL;
		pmemobj_tx_free(gone);
		char *buffer = pmemobj_direct(root->buffer);
		for (size_t at = 0; at < BUFFER; at += 3000) {
			pmemobj_tx_add_range_direct(buffer + at, 3000);
			memset(buffer + at, 'x', 3000);
		}
		pthread_barrier_wait(&halfway);
		_exit(0);
	} TX_END
}

int
main(int argc, char *argv[])
{
	check(argc < 2, "usage: pmemobj FILE [dies]");
	pop = pmemobj_create(argv[1], "golden", 32 << 20, 0644);
	check(pop == NULL, argv[1]);
	TX_BEGIN(pop) {
		struct root *root = the_root();
		pmemobj_tx_add_range_direct(root, sizeof(*root));
		root->buffer = pmemobj_tx_zalloc(BUFFER, 9);
		char *buffer = pmemobj_direct(root->buffer);
		for (size_t at = 0; at < BUFFER; at++)
			buffer[at] = (char)('a' + at % 26);
	} TX_ONABORT {
		check(1, "the buffer");
	} TX_END
	for (uint64_t number = 0; number < ITEMS; number++)
		push(number);
	thin();
	if (argc > 2)
		die_in_transactions();
	pmemobj_close(pop);
	return 0;
}
