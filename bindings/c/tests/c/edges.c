/*
 * Lengths, offsets and positions at the edges of what numbers hold, in every call that takes one: each is refused, with
 * nothing stored, nothing read that is not there, and the pool as it was.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <firn.h>
#include <firn/containers.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s, with %#zx; %s: %s\n", __LINE__, #condition, edge,                \
				firn_status_name(firn_last_status()), firn_last_message());                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

struct item {
	firn_ref next;
	uint64_t words[6];
};
FIRN_TYPE(item_type, struct item, "item", 1, next);
enum { ITEM = sizeof(struct item), BYTES = 100, REFS = 5, ELEMENTS = 300 };

#define MAX_OBJECT ((size_t)1004 << 20)
#define WORD ((size_t)1 << 32)
#define HALF ((size_t)1 << 63)

/* More than any object has, and than a file may take here. */
static const size_t edges[] = {
	MAX_OBJECT - 8, MAX_OBJECT - 7, MAX_OBJECT, MAX_OBJECT + 1, ((size_t)1 << 30) - 1, (size_t)1 << 30,
	((size_t)1 << 30) + 1, WORD / 2 - 1, WORD / 2, WORD - 16, WORD - 8, WORD - 1, WORD, WORD + 1, WORD + 8,
	((size_t)1 << 48) - 1, (size_t)1 << 48, HALF / 2, HALF - 9, HALF - 8, HALF - 1, HALF, HALF + 1, SIZE_MAX - 4096,
	SIZE_MAX - 17, SIZE_MAX - 16, SIZE_MAX - 15, SIZE_MAX - 14, SIZE_MAX - 13, SIZE_MAX - 12, SIZE_MAX - 11,
	SIZE_MAX - 10, SIZE_MAX - 9, SIZE_MAX - 8, SIZE_MAX - 7, SIZE_MAX - 6, SIZE_MAX - 5, SIZE_MAX - 4, SIZE_MAX - 3,
	SIZE_MAX - 2, SIZE_MAX - 1, SIZE_MAX,
};
enum { EDGES = sizeof edges / sizeof edges[0] };

static firn_pool *pool;
static firn_session *session;
static size_t edge;
static unsigned char some[64], hundred[BYTES];

static int refused(firn_status status)
{
	return status == FIRN_INVALID || status == FIRN_TOO_LARGE || status == FIRN_NO_SPACE;
}

/* Each call in a transaction of its own, which its failure rolls back. */
#define REFUSED(call)                                                                                                  \
	do {                                                                                                           \
		CHECK(firn_tx_begin(session) == FIRN_OK);                                                              \
		const struct item *item = firn_root(session, "item", &item_type);                                      \
		const void *bytes = firn_root(session, "bytes", NULL), *refs = firn_root(session, "refs", NULL);       \
		const void *vector = firn_vector_root(session, "vector"), *map = firn_map_root(session, "map");        \
		const void *hash = firn_hash_root(session, "hash");                                                    \
		(void)item, (void)bytes, (void)refs, (void)vector, (void)map, (void)hash;                              \
		CHECK(refused(call));                                                                                  \
		CHECK(refused(firn_tx_commit(session)));                                                               \
	} while (0)

static firn_status made(const void *object)
{
	return object == NULL ? firn_last_status() : FIRN_OK;
}

static void objects(void)
{
	REFUSED(made(firn_alloc_sized(session, &item_type, some, ITEM, edge)));
	REFUSED(made(firn_alloc_sized(session, &item_type, NULL, 0, edge)));
	REFUSED(made(firn_alloc_sized(session, &item_type, some, edge, ITEM)));
	REFUSED(made(firn_alloc_refs(session, edge)));
	if (edge > MAX_OBJECT) {
		REFUSED(made(firn_alloc_bytes(session, some, edge)));
	}
	REFUSED(firn_store(session, item, edge, some, 8));
	REFUSED(firn_store(session, item, edge, some, 1));
	REFUSED(firn_store(session, item, 8, some, edge));
	REFUSED(firn_store(session, item, ITEM, some, edge));
	REFUSED(firn_link(session, item, edge, item));
	REFUSED(firn_bytes_store(session, bytes, edge, some, 1));
	REFUSED(firn_bytes_store(session, bytes, 0, some, edge));
	REFUSED(firn_bytes_store(session, bytes, BYTES, some, edge));
	REFUSED(firn_refs_set(session, refs, edge, item));
}

/* Reading fails by itself, and leaves the room for what is read as it was. */
static void reading(void)
{
	unsigned char into[64], before[64];
	uint64_t expected = 0;
	CHECK(firn_read_begin(session) == FIRN_OK);
	const struct item *item = firn_root(session, "item", &item_type);
	const void *bytes = firn_root(session, "bytes", NULL), *refs = firn_root(session, "refs", NULL);
	memset(into, 7, sizeof into);
	memset(before, 7, sizeof before);
	CHECK(firn_load(session, item, edge, into, 8) == FIRN_INVALID);
	CHECK(firn_load(session, item, 0, into, edge) == FIRN_INVALID);
	CHECK(firn_load(session, item, ITEM, into, edge) == FIRN_INVALID);
	CHECK(firn_load(session, item, edge, into, edge) == FIRN_INVALID);
	CHECK(firn_bytes_copy(session, bytes, edge, into, 1) == FIRN_INVALID);
	CHECK(firn_bytes_copy(session, bytes, 0, into, edge) == FIRN_INVALID);
	CHECK(firn_bytes_copy(session, bytes, BYTES, into, edge) == FIRN_INVALID);
	CHECK(memcmp(into, before, sizeof into) == 0);
	CHECK(firn_refs_get(session, refs, edge) == NULL && firn_last_status() == FIRN_INVALID);
	CHECK(firn_compare_exchange(session, item, edge, &expected, 1) == FIRN_INVALID);
	CHECK(firn_persist(session, item, edge) == FIRN_INVALID);
	CHECK(firn_read_end(session) == FIRN_OK);
}

static void collections(void)
{
	firn_span value;
	firn_entry entries[2];
	size_t count;
	uint64_t position = edge;
	REFUSED(firn_vector_set(session, vector, edge, some, 1));
	REFUSED(firn_vector_insert(session, vector, edge, some, 1));
	REFUSED(firn_vector_remove(session, vector, edge));
	if (edge > FIRN_MAX_VALUE_BYTES) {
		REFUSED(firn_vector_push(session, vector, some, edge));
		REFUSED(firn_vector_set(session, vector, 0, some, edge));
		REFUSED(firn_vector_insert(session, vector, 0, some, edge));
		REFUSED(firn_map_insert(session, map, "k", 1, some, edge, NULL));
		REFUSED(firn_hash_insert(session, hash, "k", 1, some, edge, NULL));
	}
	REFUSED(firn_map_insert(session, map, some, edge, some, 1, NULL));
	REFUSED(firn_hash_insert(session, hash, some, edge, some, 1, NULL));
	CHECK(firn_tx_begin(session) == FIRN_OK);
	CHECK(firn_vector_truncate(session, firn_vector_root(session, "vector"), edge) == FIRN_OK);
	CHECK(firn_tx_commit(session) == FIRN_OK);
	CHECK(firn_read_begin(session) == FIRN_OK);
	const void *vector = firn_vector_root(session, "vector"), *map = firn_map_root(session, "map");
	const void *hash = firn_hash_root(session, "hash");
	CHECK(firn_vector_get(session, vector, edge, &value) == FIRN_NOT_FOUND);
	/* A key that is too long is not there, or is no key. */
	CHECK(firn_map_get(session, map, some, edge, &value) != FIRN_OK);
	CHECK(firn_hash_get(session, hash, some, edge, &value) != FIRN_OK);
	CHECK(firn_hash_position(session, hash, some, edge, &position) != FIRN_OK);
	(void)firn_map_scan(session, map, FIRN_FROM, some, edge, entries, 2, &count);
	position = edge;
	(void)firn_hash_scan(session, hash, &position, entries, 2, &count);
	CHECK(firn_vector_len(session, vector) == ELEMENTS);
	CHECK(firn_map_len(session, map) == 1 && firn_hash_len(session, hash) == 1);
	CHECK(firn_read_end(session) == FIRN_OK);
	CHECK(firn_tx_begin(session) == FIRN_OK);
	CHECK(firn_map_remove(session, firn_map_root(session, "map"), some, edge) != FIRN_OK);
	(void)firn_tx_abort(session);
}

/* The last that are there, and the first that are not. */
static void ends(void)
{
	unsigned char into[BYTES + 8];
	CHECK(firn_read_begin(session) == FIRN_OK);
	const struct item *item = firn_root(session, "item", &item_type);
	const void *bytes = firn_root(session, "bytes", NULL), *refs = firn_root(session, "refs", NULL);
	CHECK(firn_size(session, item) == ITEM && firn_bytes_len(session, bytes) == BYTES);
	CHECK(firn_load(session, item, ITEM - 1, into, 1) == FIRN_OK);
	CHECK(firn_load(session, item, ITEM, into, 0) == FIRN_OK);
	CHECK(firn_load(session, item, ITEM, into, 1) == FIRN_INVALID);
	CHECK(firn_load(session, item, 0, into, ITEM) == FIRN_OK);
	CHECK(firn_load(session, item, 0, into, ITEM + 1) == FIRN_INVALID);
	CHECK(firn_load(session, item, 1, into, ITEM) == FIRN_INVALID);
	CHECK(firn_bytes_copy(session, bytes, BYTES - 1, into, 1) == FIRN_OK);
	CHECK(firn_bytes_copy(session, bytes, BYTES, into, 0) == FIRN_OK);
	CHECK(firn_bytes_copy(session, bytes, BYTES, into, 1) == FIRN_INVALID);
	CHECK(firn_bytes_copy(session, bytes, 0, into, BYTES + 1) == FIRN_INVALID);
	CHECK(firn_refs_get(session, refs, REFS - 1) == item);
	CHECK(firn_refs_get(session, refs, REFS) == NULL && firn_last_status() == FIRN_INVALID);
	CHECK(firn_persist(session, item, ITEM - 8) == FIRN_OK);
	CHECK(firn_persist(session, item, ITEM - 7) == FIRN_INVALID);
	CHECK(firn_persist(session, item, ITEM) == FIRN_INVALID);
	CHECK(firn_vector_get(session, firn_vector_root(session, "vector"), ELEMENTS - 1, NULL) == FIRN_OK);
	CHECK(firn_vector_get(session, firn_vector_root(session, "vector"), ELEMENTS, NULL) == FIRN_NOT_FOUND);
	CHECK(firn_read_end(session) == FIRN_OK);
}

/* Changes across those ends. */
static void beyond(void)
{
	REFUSED(firn_store(session, item, ITEM, some, 1));
	REFUSED(firn_store(session, item, ITEM - 7, some, 8));
	REFUSED(firn_bytes_store(session, bytes, BYTES - 7, some, 8));
	REFUSED(firn_refs_set(session, refs, REFS, item));
	REFUSED(firn_vector_set(session, vector, ELEMENTS, some, 1));
	REFUSED(firn_vector_insert(session, vector, ELEMENTS + 1, some, 1));
	REFUSED(firn_vector_remove(session, vector, ELEMENTS));
	REFUSED(made(firn_alloc_sized(session, &item_type, some, ITEM, ITEM - 1)));
	REFUSED(made(firn_alloc_sized(session, &item_type, some, ITEM + 1, ITEM)));
}

static firn_status fill(firn_session *in, void *unused)
{
	(void)unused;
	size_t i;
	const void *item = firn_alloc(in, &item_type, NULL), *refs = firn_alloc_refs(in, REFS);
	const void *vector = firn_vector_root(in, "vector");
	for (i = 0; i < REFS; i++)
		CHECK(firn_refs_set(in, refs, i, item) == FIRN_OK);
	for (i = 0; i < ELEMENTS; i++)
		CHECK(firn_vector_push(in, vector, some, i % 9) == FIRN_OK);
	CHECK(firn_map_insert(in, firn_map_root(in, "map"), "key", 3, some, 4, NULL) == FIRN_OK);
	CHECK(firn_hash_insert(in, firn_hash_root(in, "hash"), "key", 3, some, 4, NULL) == FIRN_OK);
	CHECK(firn_set_root(in, "refs", refs) == FIRN_OK);
	CHECK(firn_set_root(in, "bytes", firn_alloc_bytes(in, hundred, BYTES)) == FIRN_OK);
	return firn_set_root(in, "item", item);
}

/* A pool's sizes. */
static void pools(void)
{
	size_t i;
	for (i = 0; i < EDGES; i++) {
		firn_options options = {.max_bytes = edges[i], .capacity = edges[i]};
		firn_pool *made = NULL;
		edge = edges[i];
		firn_status status = firn_create(NULL, &options, &made);
		CHECK(status == FIRN_OK || (status == FIRN_INVALID && made == NULL));
		if (status == FIRN_OK)
			CHECK(firn_close(made) == FIRN_OK);
	}
	for (edge = 1; edge < 70; edge += edge < 64 ? 21 : 1) {
		firn_options options = {.max_bytes = edge};
		firn_pool *made = NULL;
		CHECK(firn_create(NULL, &options, &made) == FIRN_INVALID && made == NULL);
		options.max_bytes = 0;
		options.sessions = (uint32_t)edge;
		CHECK(firn_create(NULL, &options, &made) == (edge <= 64 ? FIRN_OK : FIRN_INVALID));
		CHECK(firn_close(made) == FIRN_OK);
	}
	firn_options options = {.sessions = UINT32_MAX};
	firn_pool *made = NULL;
	CHECK(firn_create(NULL, &options, &made) == FIRN_INVALID);
}

int main(void)
{
	firn_options options = {.max_bytes = (uint64_t)64 << 20};
	size_t findings, i;
	CHECK(firn_create(NULL, &options, &pool) == FIRN_OK);
	CHECK(firn_session_open(pool, &session) == FIRN_OK);
	CHECK(firn_transaction(session, fill, NULL) == FIRN_OK);
	ends();
	beyond();
	for (i = 0; i < EDGES; i++) {
		edge = edges[i];
		objects();
		reading();
		collections();
	}
	ends();
	beyond();
	CHECK(firn_check(pool, NULL, NULL, &findings) == FIRN_OK && findings == 0);
	CHECK(firn_session_close(session) == FIRN_OK);
	CHECK(firn_close(pool) == FIRN_OK);
	pools();
	printf("done\n");
	return 0;
}
