/* A hash map with chains, whose table is doubled when there are more entries than chains. */
#include "store.h"

TOID_DECLARE(struct entry, STORE_TYPE(0));
TOID_DECLARE(struct table, STORE_TYPE(1));

struct entry {
	TOID(struct entry) next;
	uint64_t key;
	struct value value;
};

struct table {
	uint64_t chains;
	TOID(struct entry) first[];
};

struct store {
	TOID(struct table) table;
	uint64_t entries;
};

enum { FEWEST_CHAINS = 16 };

static TOID(struct table) new_table(uint64_t chains)
{
	TOID(struct table) table = TX_ZALLOC(struct table, sizeof(struct table) + chains * sizeof(PMEMoid));
	D_RW(table)->chains = chains;
	return table;
}

static uint64_t chain_of(TOID(struct table) table, uint64_t key)
{
	return ((key * 0x9e3779b97f4a7c15u) >> 32) & (D_RO(table)->chains - 1);
}

TOID(struct store) store_new(void)
{
	TOID(struct store) store = TX_ZNEW(struct store);
	TOID(struct table) table = new_table(FEWEST_CHAINS);
	D_RW(store)->table = table;
	return store;
}

/* All entries hang in a table of twice as many chains afterwards. */
static void grow(TOID(struct store) store)
{
	TOID(struct table) old = D_RO(store)->table;
	TOID(struct table) new = new_table(2 * D_RO(old)->chains);
	for (uint64_t chain = 0; chain < D_RO(old)->chains; chain++) {
		TOID(struct entry) entry = D_RO(old)->first[chain];
		while (!TOID_IS_NULL(entry)) {
			TOID(struct entry) next = D_RO(entry)->next;
			TOID(struct entry) *first = &D_RW(new)->first[chain_of(new, D_RO(entry)->key)];
			TX_SET(entry, next, *first);
			*first = entry;
			entry = next;
		}
	}
	TX_SET(store, table, new);
	TX_FREE(old);
}

static TOID(struct entry) found(TOID(struct store) store, uint64_t key)
{
	TOID(struct table) table = D_RO(store)->table;
	TOID(struct entry) entry = D_RO(table)->first[chain_of(table, key)];
	while (!TOID_IS_NULL(entry) && D_RO(entry)->key != key)
		entry = D_RO(entry)->next;
	return entry;
}

int store_put(PMEMobjpool *pop, TOID(struct store) store, uint64_t key, const struct value *value)
{
	TOID(struct entry) there = found(store, key);
	TX_BEGIN(pop)
	{
		if (!TOID_IS_NULL(there)) {
			TX_SET(there, value, *value);
		} else {
			if (D_RO(store)->entries >= D_RO(D_RO(store)->table)->chains)
				grow(store);
			TOID(struct table) table = D_RO(store)->table;
			uint64_t chain = chain_of(table, key);
			TOID(struct entry) entry = TX_NEW(struct entry);
			D_RW(entry)->next = D_RO(table)->first[chain];
			D_RW(entry)->key = key;
			D_RW(entry)->value = *value;
			TX_SET(table, first[chain], entry);
			TX_SET(store, entries, D_RO(store)->entries + 1);
		}
	}
	TX_END
	return TOID_IS_NULL(there);
}

int store_remove(PMEMobjpool *pop, TOID(struct store) store, uint64_t key)
{
	TOID(struct table) table = D_RO(store)->table;
	uint64_t chain = chain_of(table, key);
	TOID(struct entry) before = TOID_NULL(struct entry);
	TOID(struct entry) entry = D_RO(table)->first[chain];
	while (!TOID_IS_NULL(entry) && D_RO(entry)->key != key) {
		before = entry;
		entry = D_RO(entry)->next;
	}
	if (TOID_IS_NULL(entry))
		return 0;
	TX_BEGIN(pop)
	{
		if (TOID_IS_NULL(before))
			TX_SET(table, first[chain], D_RO(entry)->next);
		else
			TX_SET(before, next, D_RO(entry)->next);
		TX_SET(store, entries, D_RO(store)->entries - 1);
		TX_FREE(entry);
	}
	TX_END
	return 1;
}

int store_get(TOID(struct store) store, uint64_t key, struct value *value)
{
	TOID(struct entry) entry = found(store, key);
	if (TOID_IS_NULL(entry))
		return 0;
	*value = D_RO(entry)->value;
	return 1;
}

void store_each(TOID(struct store) store, store_visit *visit, void *argument)
{
	TOID(struct table) table = D_RO(store)->table;
	for (uint64_t chain = 0; chain < D_RO(table)->chains; chain++)
		for (TOID(struct entry) entry = D_RO(table)->first[chain]; !TOID_IS_NULL(entry);
		     entry = D_RO(entry)->next)
			visit(argument, D_RO(entry)->key, &D_RO(entry)->value);
}

void store_each_oid(TOID(struct store) store, oid_visit *visit, void *argument)
{
	visit(argument, &D_RW(store)->table.oid);
	TOID(struct table) table = D_RO(store)->table;
	for (uint64_t chain = 0; chain < D_RO(table)->chains; chain++) {
		visit(argument, &D_RW(table)->first[chain].oid);
		for (TOID(struct entry) entry = D_RO(table)->first[chain]; !TOID_IS_NULL(entry);
		     entry = D_RO(entry)->next)
			visit(argument, &D_RW(entry)->next.oid);
	}
}

int store_is_sound(TOID(struct store) store)
{
	TOID(struct table) table = D_RO(store)->table;
	uint64_t entries = 0;
	for (uint64_t chain = 0; chain < D_RO(table)->chains; chain++)
		for (TOID(struct entry) entry = D_RO(table)->first[chain]; !TOID_IS_NULL(entry);
		     entry = D_RO(entry)->next) {
			if (chain_of(table, D_RO(entry)->key) != chain)
				return 0;
			entries++;
		}
	return entries == D_RO(store)->entries;
}
