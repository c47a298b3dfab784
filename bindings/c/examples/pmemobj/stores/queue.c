/* A queue: what is put goes to its end, what is removed is at its front, and a key gets one of the first entries. */
#include "store.h"

#include <string.h>

TOID_DECLARE(struct entry, STORE_TYPE(0));

struct entry {
	TOID(struct entry) next;
	uint64_t key;
	struct value value;
};

struct store {
	TOID(struct entry) first;
	TOID(struct entry) last;
	uint64_t length;
};

enum { NEAR = 32 };

TOID(struct store) store_new(void)
{
	return TX_ZNEW(struct store);
}

int store_put(PMEMobjpool *pop, TOID(struct store) store, uint64_t key, const struct value *value)
{
	TX_BEGIN(pop)
	{
		TOID(struct entry) entry = TX_NEW(struct entry);
		D_RW(entry)->next = TOID_NULL(struct entry);
		D_RW(entry)->key = key;
		D_RW(entry)->value = *value;
		TX_ADD(store);
		struct store *it = D_RW(store);
		if (it->length == 0)
			it->first = entry;
		else
			TX_SET(it->last, next, entry);
		it->last = entry;
		it->length += 1;
	}
	TX_END
	return 1;
}

int store_remove(PMEMobjpool *pop, TOID(struct store) store, uint64_t key)
{
	(void)key;
	if (D_RO(store)->length == 0)
		return 0;
	TX_BEGIN(pop)
	{
		TX_ADD(store);
		struct store *it = D_RW(store);
		TOID(struct entry) entry = it->first;
		it->first = D_RO(entry)->next;
		it->length -= 1;
		if (it->length == 0)
			it->last = TOID_NULL(struct entry);
		TX_FREE(entry);
	}
	TX_END
	return 1;
}

int store_get(TOID(struct store) store, uint64_t key, struct value *value)
{
	TOID(struct entry) entry = D_RO(store)->first;
	for (uint64_t i = key % NEAR; i > 0 && !TOID_IS_NULL(entry); i--)
		entry = D_RO(entry)->next;
	if (TOID_IS_NULL(entry))
		return 0;
	*value = D_RO(entry)->value;
	return 1;
}

void store_each(TOID(struct store) store, store_visit *visit, void *argument)
{
	for (TOID(struct entry) entry = D_RO(store)->first; !TOID_IS_NULL(entry); entry = D_RO(entry)->next)
		visit(argument, D_RO(entry)->key, &D_RO(entry)->value);
}

void store_each_oid(TOID(struct store) store, oid_visit *visit, void *argument)
{
	visit(argument, &D_RW(store)->first.oid);
	visit(argument, &D_RW(store)->last.oid);
	for (TOID(struct entry) entry = D_RO(store)->first; !TOID_IS_NULL(entry); entry = D_RO(entry)->next)
		visit(argument, &D_RW(entry)->next.oid);
}

int store_is_sound(TOID(struct store) store)
{
	TOID(struct entry) last = TOID_NULL(struct entry);
	uint64_t found = 0;
	for (TOID(struct entry) entry = D_RO(store)->first; !TOID_IS_NULL(entry); entry = D_RO(entry)->next) {
		last = entry;
		found++;
	}
	return found == D_RO(store)->length && TOID_EQUALS(last, D_RO(store)->last);
}
