/*
 * Collections in a pool, over firn.h: the structures that programs in Rust have.
 *
 *   firn_map      ordered: byte strings to byte strings, a B+tree that logs few lines
 *   firn_hash     the same unordered: a hash table that grows without a stop
 *   firn_vector   byte strings by position, growing at the end
 *
 * A collection is an object: it is a root, or a reference of another object names it (firn_link), and a pointer to it
 * is good for the operation in which it was obtained. It is reclaimed, with all that it holds, when nothing leads to
 * it in a traced pool; in an explicit one it is emptied (firn_map_clear and its like) and then freed (firn_free).
 *
 * A call that changes a collection belongs to the transaction that is open, and keeps the collection's lock for
 * writing to the end of it. A call that looks something up works in any operation, sees what its transaction has done,
 * and holds the lock for reading: in a transaction to its end, in an operation that reads during the call. So several
 * calls of a transaction see one moment, those of an operation that reads each their own.
 *
 * What is found is copied into the session's memory, and valid until the next call of the session that finds
 * something, whichever collection it is for; to that call it may be passed. That a thing is not there a call says with
 * FIRN_NOT_FOUND; it is no failure: firn_last_status stays as it was, and the transaction may be committed.
 *
 * All calls fail with FIRN_INVALID, FIRN_NOT_ALLOCATED or FIRN_WRONG_TYPE for what is no such collection, FIRN_MISUSE
 * outside an operation, FIRN_CONFLICT in a transaction that would have to wait against the order of locks,
 * FIRN_DAMAGED. Those that change something fail with FIRN_MISUSE outside a transaction, FIRN_NO_SPACE,
 * FIRN_TOO_LARGE; the transaction cannot be committed then. Other threads wait for them only where they use the same
 * collection, or one of those that share its lock: a pool has 256.
 */
#ifndef FIRN_CONTAINERS_H
#define FIRN_CONTAINERS_H

#include "../firn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest key of a map, in bytes, and longest value or element. */
#define FIRN_MAX_KEY_BYTES ((size_t)16 << 10)
#define FIRN_MAX_VALUE_BYTES ((size_t)1 << 30)

/* Bytes that a call found. */
typedef struct firn_span {
	const void *bytes;
	size_t len;
} firn_span;

/* A key and its value. */
typedef struct firn_entry {
	firn_span key;
	firn_span value;
} firn_entry;

/* ---------------------------------------------------------------------------------------------- ordered map */

/* Makes an empty map, which nothing names yet: link it, or make it a root, in the same transaction.
 * Fails (null): as said above. */
const void *firn_map_new(firn_session *session);

/* The map of the root `name`; in a transaction it is made if there is no such root.
 * Fails (null): FIRN_NOT_FOUND in an operation that reads, FIRN_WRONG_TYPE if the root is something else. */
const void *firn_map_root(firn_session *session, const char *name);

/* The same of a name that is kept. */
const void *firn_map_named(firn_session *session, const firn_root_name *name);

/* How many entries it has, in constant time; 0 if it is none. */
uint64_t firn_map_len(firn_session *session, const void *map);

/* Finds the value of a key; `*value`, which may be null, says where it is. In logarithmic time.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_map_get(firn_session *session, const void *map, const void *key, size_t key_len, firn_span *value);

/* Inserts, or replaces the value of a key that is there; `*replaced`, which may be null, says which.
 * Fails: FIRN_TOO_LARGE. */
firn_status firn_map_insert(firn_session *session, const void *map, const void *key, size_t key_len, const void *value,
			    size_t value_len, int *replaced);

/* Removes a key. Works in a full pool too.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_map_remove(firn_session *session, const void *map, const void *key, size_t key_len);

/* Removes all entries, in time linear in their number. */
firn_status firn_map_clear(firn_session *session, const void *map);

/* Where firn_map_scan begins, and which way it goes. */
typedef enum firn_seek {
	/* From the least key up; the key that is given does not matter. */
	FIRN_FIRST = 0,
	/* From the greatest key down. */
	FIRN_LAST = 1,
	/* From the given key up, from the next one if it is not there. */
	FIRN_FROM = 2,
	/* From behind the given key up. */
	FIRN_AFTER = 3,
	/* From the given key down. */
	FIRN_DOWN_FROM = 4,
	/* From in front of the given key down. */
	FIRN_BEFORE = 5
} firn_seek;

/* Finds entries in the order of their keys, bytes compared as numbers: at most `room`, fewer where they come to more
 * than 64 KiB. `*count` is their number, 0 at the end. To go on, seek behind the last one. */
firn_status firn_map_scan(firn_session *session, const void *map, firn_seek seek, const void *key, size_t key_len,
			  firn_entry *entries, size_t room, size_t *count);

/* Tells `finding`, which may be null, of each invariant that does not hold; `*findings`, which may be null, is their
 * number. In linear time. `at` is where the map lies. */
firn_status firn_map_check(firn_session *session, const void *map, firn_finding finding, void *argument,
			   size_t *findings);

/* -------------------------------------------------------------------------------------------- unordered map */

/* As the functions of a map. Looking up, inserting and removing take constant time. */
const void *firn_hash_new(firn_session *session);
const void *firn_hash_root(firn_session *session, const char *name);

/* The same of a name that is kept. */
const void *firn_hash_named(firn_session *session, const firn_root_name *name);
uint64_t firn_hash_len(firn_session *session, const void *hash);
firn_status firn_hash_get(firn_session *session, const void *hash, const void *key, size_t key_len, firn_span *value);
firn_status firn_hash_insert(firn_session *session, const void *hash, const void *key, size_t key_len,
			     const void *value, size_t value_len, int *replaced);
firn_status firn_hash_remove(firn_session *session, const void *hash, const void *key, size_t key_len);
firn_status firn_hash_clear(firn_session *session, const void *hash);
firn_status firn_hash_check(firn_session *session, const void *hash, firn_finding finding, void *argument,
			    size_t *findings);

/* Finds entries in no order: at most `room`, fewer where they come to more than 64 KiB. `*position` is 0 at first and
 * says afterwards where to go on; `*count` is 0 at the end. While the map stays as it is each entry comes once;
 * inserting or removing in between may hide some, or show some twice. */
firn_status firn_hash_scan(firn_session *session, const void *hash, uint64_t *position, firn_entry *entries,
			   size_t room, size_t *count);

/* Finds where a scan comes to a key first; `position` may be null.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_hash_position(firn_session *session, const void *hash, const void *key, size_t key_len,
			       uint64_t *position);

/* --------------------------------------------------------------------------------------------------- vector */

/* As the functions of a map of these names. */
const void *firn_vector_new(firn_session *session);
const void *firn_vector_root(firn_session *session, const char *name);

/* The same of a name that is kept. */
const void *firn_vector_named(firn_session *session, const firn_root_name *name);
uint64_t firn_vector_len(firn_session *session, const void *vector);
firn_status firn_vector_clear(firn_session *session, const void *vector);
firn_status firn_vector_check(firn_session *session, const void *vector, firn_finding finding, void *argument,
			      size_t *findings);

/* Finds the element at `index`, in constant time. `value` may be null.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_vector_get(firn_session *session, const void *vector, uint64_t index, firn_span *value);

/* Appends an element. */
firn_status firn_vector_push(firn_session *session, const void *vector, const void *bytes, size_t len);

/* Removes the last element; `*value`, which may be null, is what it was.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_vector_pop(firn_session *session, const void *vector, firn_span *value);

/* Replaces the element at `index`.
 * Fails: FIRN_INVALID beyond the end. */
firn_status firn_vector_set(firn_session *session, const void *vector, uint64_t index, const void *bytes, size_t len);

/* Inserts an element at `index`, which may be the end; what is behind moves on. In time linear in what is behind.
 * Fails: FIRN_INVALID beyond the end. */
firn_status firn_vector_insert(firn_session *session, const void *vector, uint64_t index, const void *bytes,
			       size_t len);

/* Removes the element at `index`; what is behind moves back. In time linear in what is behind.
 * Fails: FIRN_INVALID beyond the end. */
firn_status firn_vector_remove(firn_session *session, const void *vector, uint64_t index);

/* Shortens the vector to `len` elements if it is longer, in time linear in how many go. */
firn_status firn_vector_truncate(firn_session *session, const void *vector, uint64_t len);

#ifdef __cplusplus
}
#endif

#endif /* FIRN_CONTAINERS_H */
