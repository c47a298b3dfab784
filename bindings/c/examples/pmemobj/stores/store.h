/*
 * What the stores of this folder are to their driver: entries with a number for a key and a value, kept in a pool. They
 * are written for libpmemobj's interface, and build from the same source against that library and against this one.
 */
#ifndef STORE_H
#define STORE_H

#include <libpmemobj.h>
#include <stddef.h>
#include <stdint.h>

enum { VALUE_BYTES = 128 };

/* Keys are below this, a power of two. */
#ifndef STORE_KEYS
#define STORE_KEYS ((uint64_t)1 << 16)
#endif

struct value {
	uint8_t bytes[VALUE_BYTES];
};

struct store;
struct root;

POBJ_LAYOUT_BEGIN(store);
POBJ_LAYOUT_ROOT(store, struct root);
POBJ_LAYOUT_TOID(store, struct store);
POBJ_LAYOUT_END(store);

/* The numbers of a store's own types begin here. */
#define STORE_TYPE(n) (16 + (n))

/* How many changes there were, counted in the transaction of each; and the store. */
struct root {
	uint64_t changes;
	TOID(struct store) store;
};

/* What each store has. All of them are called outside transactions and inside; those that change something abort the
 * transaction when they fail. */

/* A new store. Inside a transaction. */
TOID(struct store) store_new(void);
/* 1 if the key is new, 0 if its value was replaced. */
int store_put(PMEMobjpool *pop, TOID(struct store) store, uint64_t key, const struct value *value);
/* 1 if the key was there. */
int store_remove(PMEMobjpool *pop, TOID(struct store) store, uint64_t key);
/* 1, and the value, if the key is there. */
int store_get(TOID(struct store) store, uint64_t key, struct value *value);
/* Calls `visit` with each entry, always in the same order for the same content. */
typedef void store_visit(void *argument, uint64_t key, const struct value *value);
void store_each(TOID(struct store) store, store_visit *visit, void *argument);
/* Calls `visit` with each place in the pool where the store has an OID. Only libpmemobj's defragmentation needs that. */
typedef void oid_visit(void *argument, PMEMoid *oid);
void store_each_oid(TOID(struct store) store, oid_visit *visit, void *argument);
/* Whether the store's own rules hold. */
int store_is_sound(TOID(struct store) store);

#endif
