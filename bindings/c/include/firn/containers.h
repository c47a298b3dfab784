/*
 * Collections in a pool, on top of firn.h: the data structures that Rust programs have.
 *
 *   firn_map      ordered: byte strings to byte strings, a B+tree that logs few lines
 *   firn_hash     the same, unordered: a hash table that grows incrementally
 *   firn_vector   byte strings by position, growing at the end
 *
 * A collection is an object: it is a root, or a reference of another object names it (firn_link). A pointer to it is
 * valid for the operation in which it was obtained. In a traced pool it is reclaimed with its whole content when nothing
 * leads to it; in an explicit pool it must be emptied (firn_map_clear and similar calls) and then freed (firn_free).
 *
 * A call that changes a collection belongs to the open transaction, and holds the collection's write lock to its end. A
 * lookup works in any operation and sees the changes of its own transaction. It holds the read lock: in a transaction
 * until the end, in a reading operation during the call. So several calls of a transaction see one state, those of a
 * reading operation each their own.
 *
 * A result is copied into the session's memory. It is valid until the session's next call that finds something, in
 * whichever collection; it may be passed to that call. A call returns FIRN_NOT_FOUND if a thing is not there. That is
 * not a failure: firn_last_status does not change, and the transaction may be committed.
 *
 * All calls fail with FIRN_INVALID, FIRN_NOT_ALLOCATED or FIRN_WRONG_TYPE if the object is not such a collection, with
 * FIRN_MISUSE outside an operation, FIRN_CONFLICT in a transaction that would have to wait against the order of locks,
 * and FIRN_DAMAGED. Calls that change something also fail with FIRN_MISUSE outside a transaction, FIRN_NO_SPACE and
 * FIRN_TOO_LARGE; the transaction then cannot be committed. Other threads wait for them only if they use the same
 * collection, or one that shares its lock: a pool has 256.
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

/* Creates an empty map, which nothing names yet: link it, or make it a root, in the same transaction.
 * Fails (null): as described above. */
const void *firn_map_new(firn_session *session);

/* The map of the root `name`; a transaction creates it if there is no such root.
 * Fails (null): FIRN_NOT_FOUND in a reading operation, FIRN_WRONG_TYPE if the root is something else. */
const void *firn_map_root(firn_session *session, const char *name);

/* As above, for a firn_root_name. */
const void *firn_map_named(firn_session *session, const firn_root_name *name);

/* Number of entries, in constant time; 0 if it is not a map. */
uint64_t firn_map_len(firn_session *session, const void *map);

/* Finds the value of a key and stores it in `*value`, which may be null. In logarithmic time.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_map_get(firn_session *session, const void *map, const void *key, size_t key_len, firn_span *value);

/* Inserts a key, or replaces its value; `*replaced`, which may be null, says which.
 * Fails: FIRN_TOO_LARGE. */
firn_status firn_map_insert(firn_session *session, const void *map, const void *key, size_t key_len, const void *value,
			    size_t value_len, int *replaced);

/* Removes a key. Also works in a full pool.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_map_remove(firn_session *session, const void *map, const void *key, size_t key_len);

/* Removes all entries, in time linear in their number. */
firn_status firn_map_clear(firn_session *session, const void *map);

/* Start and direction of firn_map_scan. */
typedef enum firn_seek {
	/* From the smallest key up; the given key is ignored. */
	FIRN_FIRST = 0,
	/* From the greatest key down. */
	FIRN_LAST = 1,
	/* From the given key up, or from the next one if it is missing. */
	FIRN_FROM = 2,
	/* From behind the given key up. */
	FIRN_AFTER = 3,
	/* From the given key down. */
	FIRN_DOWN_FROM = 4,
	/* From in front of the given key down. */
	FIRN_BEFORE = 5
} firn_seek;

/* Finds entries in the order of their keys, compared as unsigned bytes: at most `room`, or fewer if they exceed 64
 * KiB. `*count` is their number, 0 at the end. To continue, seek behind the last one. */
firn_status firn_map_scan(firn_session *session, const void *map, firn_seek seek, const void *key, size_t key_len,
			  firn_entry *entries, size_t room, size_t *count);

/* Calls `finding`, which may be null, for each violated invariant; `*findings`, which may be null, receives their
 * number. In linear time. `at` is the address of the map. */
firn_status firn_map_check(firn_session *session, const void *map, firn_finding finding, void *argument,
			   size_t *findings);

/* -------------------------------------------------------------------------------------------- unordered map */

/* As for a map. Looking up, inserting and removing take constant time. */
const void *firn_hash_new(firn_session *session);
const void *firn_hash_root(firn_session *session, const char *name);

/* As above, for a firn_root_name. */
const void *firn_hash_named(firn_session *session, const firn_root_name *name);
uint64_t firn_hash_len(firn_session *session, const void *hash);
firn_status firn_hash_get(firn_session *session, const void *hash, const void *key, size_t key_len, firn_span *value);
firn_status firn_hash_insert(firn_session *session, const void *hash, const void *key, size_t key_len,
			     const void *value, size_t value_len, int *replaced);
firn_status firn_hash_remove(firn_session *session, const void *hash, const void *key, size_t key_len);
firn_status firn_hash_clear(firn_session *session, const void *hash);
firn_status firn_hash_check(firn_session *session, const void *hash, firn_finding finding, void *argument,
			    size_t *findings);

/* Finds entries in no particular order: at most `room`, or fewer if they exceed 64 KiB. `*position` is 0 at first and
 * afterwards says where to continue; `*count` is 0 at the end. If the map does not change, each entry comes once;
 * inserting or removing in between may hide some, or show some twice. */
firn_status firn_hash_scan(firn_session *session, const void *hash, uint64_t *position, firn_entry *entries,
			   size_t room, size_t *count);

/* Finds the position at which a scan meets a key; `position` may be null.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_hash_position(firn_session *session, const void *hash, const void *key, size_t key_len,
			       uint64_t *position);

/* --------------------------------------------------------------------------------------------------- vector */

/* As for a map. */
const void *firn_vector_new(firn_session *session);
const void *firn_vector_root(firn_session *session, const char *name);

/* As above, for a firn_root_name. */
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

/* Removes the last element and stores it in `*value`, which may be null.
 * Not there: FIRN_NOT_FOUND. */
firn_status firn_vector_pop(firn_session *session, const void *vector, firn_span *value);

/* Replaces the element at `index`.
 * Fails: FIRN_INVALID beyond the end. */
firn_status firn_vector_set(firn_session *session, const void *vector, uint64_t index, const void *bytes, size_t len);

/* Inserts an element at `index`, which may be the end, and shifts those behind it. In time linear in their number.
 * Fails: FIRN_INVALID beyond the end. */
firn_status firn_vector_insert(firn_session *session, const void *vector, uint64_t index, const void *bytes,
			       size_t len);

/* Removes the element at `index` and shifts those behind it. In time linear in their number.
 * Fails: FIRN_INVALID beyond the end. */
firn_status firn_vector_remove(firn_session *session, const void *vector, uint64_t index);

/* Shortens the vector to `len` elements if it is longer, in time linear in the number removed. */
firn_status firn_vector_truncate(firn_session *session, const void *vector, uint64_t len);

#ifdef __cplusplus
}
#endif

#endif /* FIRN_CONTAINERS_H */
