/*
 * A list of numbers with libpmemobj's macros in C++, where an OID becomes a typed one by a constructor.
 *
 *   cplusplus POOL
 */
#include <libpmemobj.h>

#include <cstdio>

/* Some programs leave out the semicolons that are the macros' own. */
POBJ_LAYOUT_BEGIN(cplusplus);
POBJ_LAYOUT_ROOT(cplusplus, struct root)
POBJ_LAYOUT_TOID(cplusplus, struct node)
POBJ_LAYOUT_END(cplusplus)

struct node {
	TOID(struct node) next;
	uint64_t number;
};

struct root {
	TOID(struct node) first;
	uint64_t count;
	PMEMmutex lock;
};

static int fill(PMEMobjpool *, void *object, void *number)
{
	static_cast<node *>(object)->number = *static_cast<uint64_t *>(number);
	return 0;
}

static void push(PMEMobjpool *pop, TOID(struct root) root, uint64_t number)
{
	TX_BEGIN_LOCK(pop, TX_LOCK_MUTEX, &D_RW(root)->lock, TX_LOCK_NONE)
	{
		TOID(struct node) node = TX_NEW(struct node);
		D_RW(node)->next = D_RO(root)->first;
		TX_MEMCPY(&D_RW(node)->number, &number, sizeof number);
		TX_ADD_FIELD(root, first);
		D_RW(root)->first = node;
		TX_SET(root, count, D_RO(root)->count + 1);
		if (number == 3)
			pmemobj_tx_abort(ECANCELED);
	}
	TX_ONABORT
	{
		std::printf("aborted %lu\n", static_cast<unsigned long>(number));
	}
	TX_FINALLY
	{
		std::puts("done");
	}
	TX_END
}

int main(int, char **arguments)
{
	PMEMobjpool *pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(cplusplus), PMEMOBJ_MIN_POOL, 0600);
	if (pop == nullptr) {
		std::puts(pmemobj_errormsg());
		return 1;
	}
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	for (uint64_t number = 0; number < 5; number++)
		push(pop, root, number);
	uint64_t other = 77;
	TOID(struct node) made, zeroed;
	POBJ_NEW(pop, &made, struct node, fill, &other);
	POBJ_ZNEW(pop, &zeroed, struct node);
	std::printf("%lu %lu\n", static_cast<unsigned long>(D_RO(made)->number),
		    static_cast<unsigned long>(D_RO(zeroed)->number));
	PMEMoid freed = zeroed.oid;
	TOID_ASSIGN(zeroed, made.oid);
	std::printf("%d %d %d\n", TOID_EQUALS(made, zeroed) ? 1 : 0, TOID_IS_NULL(made) ? 1 : 0,
		    OID_INSTANCEOF(made.oid, struct node) ? 1 : 0);
	pmemobj_free(&freed);
	int nodes = 0;
	TOID(struct node) each;
	POBJ_FOREACH_TYPE(pop, each)
	nodes++;
	std::printf("%d nodes, %lu in the list:", nodes, static_cast<unsigned long>(D_RO(root)->count));
	for (each = D_RO(root)->first; !TOID_IS_NULL(each); each = D_RO(each)->next)
		std::printf(" %lu", static_cast<unsigned long>(D_RO(each)->number));
	std::puts("");
	pmemobj_close(pop);
	return 0;
}
