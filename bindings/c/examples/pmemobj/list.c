/*
 * A list of numbers for libpmemobj's interface: it builds against that library and against this one.
 *
 *   list POOL push VALUE... | pop | print | abort
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

POBJ_LAYOUT_BEGIN(list);
POBJ_LAYOUT_ROOT(list, struct root);
POBJ_LAYOUT_TOID(list, struct node);
POBJ_LAYOUT_END(list);

struct node {
	TOID(struct node) next;
	int64_t value;
};

struct root {
	TOID(struct node) head;
	uint64_t length;
};

/* What a program keeps in a variable of its own. */
static TOID(struct node) last_seen;

static int push(PMEMobjpool *pop, TOID(struct root) root, int64_t value)
{
	int failed = 0;
	TX_BEGIN(pop)
	{
		TOID(struct node) node = TX_NEW(struct node);
		D_RW(node)->value = value;
		D_RW(node)->next = D_RO(root)->head;
		TX_ADD(root);
		D_RW(root)->head = node;
		D_RW(root)->length += 1;
	}
	TX_ONABORT
	{
		fprintf(stderr, "list: %s\n", pmemobj_errormsg());
		failed = 1;
	}
	TX_END
	return failed;
}

static int pop_one(PMEMobjpool *pop, TOID(struct root) root)
{
	int failed = 0;
	if (TOID_IS_NULL(D_RO(root)->head))
		return 0;
	TX_BEGIN(pop)
	{
		TOID(struct node) first = D_RO(root)->head;
		TX_ADD(root);
		D_RW(root)->head = D_RO(first)->next;
		D_RW(root)->length -= 1;
		TX_FREE(first);
	}
	TX_ONABORT
	{
		failed = 1;
	}
	TX_END
	return failed;
}

static void print(TOID(struct root) root)
{
	printf("%llu:", (unsigned long long)D_RO(root)->length);
	for (TOID(struct node) node = D_RO(root)->head; !TOID_IS_NULL(node); node = D_RO(node)->next) {
		printf(" %lld", (long long)D_RO(node)->value);
		last_seen = node;
	}
	printf("\n");
}

int main(int count, char **arguments)
{
	if (count < 3) {
		fprintf(stderr, "usage: %s POOL push VALUE... | pop | print | abort\n", arguments[0]);
		return 2;
	}
	const char *path = arguments[1];
	PMEMobjpool *pop = access(path, F_OK) == 0
				   ? pmemobj_open(path, POBJ_LAYOUT_NAME(list))
				   : pmemobj_create(path, POBJ_LAYOUT_NAME(list), 64 << 20, 0666);
	if (pop == NULL) {
		fprintf(stderr, "list: %s\n", pmemobj_errormsg());
		return 1;
	}
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	int failed = 0;
	if (strcmp(arguments[2], "push") == 0) {
		for (int i = 3; i < count; i++)
			failed |= push(pop, root, strtoll(arguments[i], NULL, 10));
	} else if (strcmp(arguments[2], "pop") == 0) {
		failed = pop_one(pop, root);
	} else if (strcmp(arguments[2], "abort") == 0) {
		TX_BEGIN(pop)
		{
			TX_ADD(root);
			D_RW(root)->head = TOID_NULL(struct node);
			D_RW(root)->length = 0;
			pmemobj_tx_abort(ECANCELED);
		}
		TX_ONABORT
		{
			printf("aborted: %s\n", strerror(errno));
		}
		TX_FINALLY
		{
			printf("finally\n");
		}
		TX_END
	}
	print(root);
	uint64_t nodes = 0;
	TOID(struct node) each;
	POBJ_FOREACH_TYPE(pop, each)
		nodes++;
	printf("%llu nodes\n", (unsigned long long)nodes);
	pmemobj_close(pop);
	return failed;
}
