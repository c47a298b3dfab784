/* Collections in C, used rightly and wrongly: each call says what the header says. Ends with 0 if all of it holds. */
#include <firn/containers.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, firn_last_message());               \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* A call fails with this status, and says why. */
#define FAILS(status, call)                                                                                            \
	do {                                                                                                           \
		firn_clear_status();                                                                                   \
		CHECK((call) == (status));                                                                             \
		CHECK(firn_last_status() == (status) && strlen(firn_last_message()) > 10);                             \
	} while (0)

/* A call that yields an object fails with this status. */
#define FAILS_NULL(status, call)                                                                                       \
	do {                                                                                                           \
		firn_clear_status();                                                                                   \
		CHECK((call) == NULL);                                                                                 \
		CHECK(firn_last_status() == (status) && strlen(firn_last_message()) > 10);                             \
	} while (0)

struct leaf {
	double weight;
};
FIRN_TYPE_WITHOUT_REFERENCES(leaf_type, struct leaf, "leaf", 1);

static firn_pool *pool;
static firn_session *session;

static int is(firn_span found, const char *text)
{
	return found.len == strlen(text) && memcmp(found.bytes, text, found.len) == 0;
}

static void begin(void)
{
	CHECK(firn_tx_begin(session) == FIRN_OK);
}

static void commit(void)
{
	CHECK(firn_tx_commit(session) == FIRN_OK);
}

/* The transaction ends so: with the failure of a call in it, if one failed. */
static void end_with(firn_status status)
{
	CHECK(firn_tx_commit(session) == status);
}

static void maps(void)
{
	firn_span value;
	int replaced = 7;
	begin();
	const void *map = firn_map_root(session, "map");
	CHECK(map != NULL && map == firn_map_root(session, "map") && firn_map_len(session, map) == 0);
	CHECK(firn_map_insert(session, map, "one", 3, "1", 1, &replaced) == FIRN_OK && replaced == 0);
	CHECK(firn_map_insert(session, map, "one", 3, "eins", 4, &replaced) == FIRN_OK && replaced == 1);
	CHECK(firn_map_insert(session, map, "two", 3, "2", 1, NULL) == FIRN_OK);
	CHECK(firn_map_insert(session, map, NULL, 0, NULL, 0, NULL) == FIRN_OK);
	/* What was found may be passed on. */
	CHECK(firn_map_get(session, map, "two", 3, &value) == FIRN_OK && is(value, "2"));
	CHECK(firn_map_insert(session, map, value.bytes, value.len, value.bytes, value.len, NULL) == FIRN_OK);
	CHECK(firn_map_get(session, map, value.bytes, value.len, &value) == FIRN_OK && is(value, "2"));
	CHECK(firn_map_remove(session, map, "2", 1) == FIRN_OK);
	firn_clear_status();
	CHECK(firn_map_remove(session, map, "2", 1) == FIRN_NOT_FOUND);
	CHECK(firn_map_get(session, map, "2", 1, NULL) == FIRN_NOT_FOUND);
	CHECK(firn_last_status() == FIRN_OK);
	commit();

	CHECK(firn_read_begin(session) == FIRN_OK);
	map = firn_map_root(session, "map");
	CHECK(firn_map_len(session, map) == 3);
	CHECK(firn_map_get(session, map, "", 0, &value) == FIRN_OK && value.len == 0);
	firn_entry entries[2];
	size_t count = 0, all = 0;
	for (firn_seek seek = FIRN_FIRST;; seek = FIRN_AFTER, all += count) {
		firn_span last = all > 0 ? entries[count - 1].key : (firn_span){NULL, 0};
		CHECK(firn_map_scan(session, map, seek, last.bytes, last.len, entries, 2, &count) == FIRN_OK);
		if (count == 0)
			break;
	}
	CHECK(all == 3);
	CHECK(firn_map_scan(session, map, FIRN_LAST, NULL, 0, entries, 2, &count) == FIRN_OK && count == 2);
	CHECK(is(entries[0].key, "two") && is(entries[1].key, "one") && is(entries[1].value, "eins"));
	CHECK(firn_map_scan(session, map, FIRN_FROM, "one", 3, entries, 1, &count) == FIRN_OK && count == 1);
	CHECK(is(entries[0].key, "one"));
	CHECK(firn_map_scan(session, map, FIRN_BEFORE, "one", 3, entries, 2, &count) == FIRN_OK && count == 1);
	CHECK(entries[0].key.len == 0);
	CHECK(firn_map_scan(session, map, FIRN_DOWN_FROM, "one", 3, entries, 2, &count) == FIRN_OK && count == 2);
	CHECK(firn_map_check(session, map, NULL, NULL, &count) == FIRN_OK && count == 0);

	FAILS(FIRN_INVALID, firn_map_scan(session, map, (firn_seek)6, "", 0, entries, 2, &count));
	FAILS(FIRN_INVALID, firn_map_scan(session, map, FIRN_FIRST, NULL, 0, NULL, 2, &count));
	FAILS(FIRN_INVALID, firn_map_scan(session, map, FIRN_FIRST, NULL, 0, entries, 0, &count));
	FAILS(FIRN_INVALID, firn_map_scan(session, map, FIRN_FROM, NULL, 3, entries, 2, &count));
	FAILS(FIRN_INVALID, firn_map_get(session, map, NULL, 3, &value));
	FAILS(FIRN_INVALID, firn_map_get(session, NULL, "one", 3, &value));
	FAILS(FIRN_NOT_ALLOCATED, firn_map_get(session, (const char *)map + 16, "one", 3, &value));
	FAILS(FIRN_NOT_ALLOCATED, firn_map_get(session, &value, "one", 3, &value));
	FAILS(FIRN_INVALID, firn_map_get(NULL, map, "one", 3, &value));
	FAILS(FIRN_WRONG_TYPE, firn_hash_get(session, map, "one", 3, &value));
	FAILS(FIRN_WRONG_TYPE, firn_vector_get(session, map, 0, &value));
	FAILS(FIRN_MISUSE, firn_map_insert(session, map, "one", 3, "1", 1, NULL));
	FAILS(FIRN_MISUSE, firn_map_remove(session, map, "one", 3));
	FAILS(FIRN_MISUSE, firn_map_clear(session, map));
	FAILS_NULL(FIRN_MISUSE, firn_map_new(session));
	FAILS_NULL(FIRN_NOT_FOUND, firn_map_root(session, "no such"));
	FAILS_NULL(FIRN_WRONG_TYPE, firn_vector_root(session, "map"));
	FAILS_NULL(FIRN_INVALID, firn_map_root(session, NULL));
	firn_clear_status();
	CHECK(firn_map_len(session, NULL) == 0 && firn_last_status() == FIRN_INVALID);
	/* What an operation has looked at once it need not look at again; another one does. */
	CHECK(firn_map_get(session, map, "one", 3, NULL) == FIRN_OK && firn_map_get(session, map, "one", 3, NULL) == FIRN_OK);
	CHECK(firn_read_end(session) == FIRN_OK);
	FAILS(FIRN_MISUSE, firn_map_get(session, map, "one", 3, &value));

	char *large = calloc(1, FIRN_MAX_KEY_BYTES + 1);
	begin();
	map = firn_map_root(session, "map");
	FAILS(FIRN_TOO_LARGE, firn_map_insert(session, map, large, FIRN_MAX_KEY_BYTES + 1, "", 0, NULL));
	end_with(FIRN_TOO_LARGE);
	begin();
	map = firn_map_root(session, "map");
	CHECK(firn_map_insert(session, map, large, FIRN_MAX_KEY_BYTES, "", 0, NULL) == FIRN_OK);
	CHECK(firn_map_len(session, map) == 4);
	CHECK(firn_tx_abort(session) == FIRN_OK);
	free(large);

	begin();
	map = firn_map_root(session, "map");
	CHECK(firn_map_len(session, map) == 3);
	FAILS(FIRN_WRONG_TYPE, firn_map_clear(session, firn_alloc(session, &leaf_type, NULL)));
	end_with(FIRN_WRONG_TYPE);
	begin();
	map = firn_map_root(session, "map");
	CHECK(firn_map_clear(session, map) == FIRN_OK && firn_map_len(session, map) == 0);
	CHECK(firn_set_root(session, "map", NULL) == FIRN_OK && firn_free(session, map) == FIRN_OK);
	commit();
	CHECK(firn_read_begin(session) == FIRN_OK);
	FAILS(FIRN_NOT_ALLOCATED, firn_map_get(session, map, "one", 3, NULL));
	CHECK(firn_read_end(session) == FIRN_OK);
}

static void hashes(void)
{
	enum { MANY = 1000 };
	begin();
	const void *hash = firn_hash_new(session);
	CHECK(firn_set_root(session, "hash", hash) == FIRN_OK && hash == firn_hash_root(session, "hash"));
	for (uint32_t i = 0; i < MANY; i++)
		CHECK(firn_hash_insert(session, hash, &i, sizeof i, "value", i % 6, NULL) == FIRN_OK);
	commit();
	CHECK(firn_read_begin(session) == FIRN_OK);
	hash = firn_hash_root(session, "hash");
	CHECK(firn_hash_len(session, hash) == MANY);
	unsigned char seen[MANY] = {0};
	uint64_t position = 0;
	firn_entry entries[7];
	size_t count;
	do {
		CHECK(firn_hash_scan(session, hash, &position, entries, 7, &count) == FIRN_OK);
		for (size_t i = 0; i < count; i++) {
			uint32_t key;
			CHECK(entries[i].key.len == sizeof key);
			memcpy(&key, entries[i].key.bytes, sizeof key);
			CHECK(key < MANY && seen[key]++ == 0 && entries[i].value.len == key % 6);
		}
	} while (count > 0);
	for (size_t i = 0; i < MANY; i++)
		CHECK(seen[i] == 1);
	uint32_t sought = 77;
	CHECK(firn_hash_position(session, hash, &sought, sizeof sought, &position) == FIRN_OK);
	CHECK(firn_hash_scan(session, hash, &position, entries, 1, &count) == FIRN_OK && count == 1);
	CHECK(memcmp(entries[0].key.bytes, &sought, sizeof sought) == 0);
	CHECK(firn_hash_position(session, hash, "no", 2, &position) == FIRN_NOT_FOUND);
	position = UINT64_MAX;
	CHECK(firn_hash_scan(session, hash, &position, entries, 7, &count) == FIRN_OK && count == 0);
	FAILS(FIRN_INVALID, firn_hash_scan(session, hash, NULL, entries, 7, &count));
	CHECK(firn_hash_check(session, hash, NULL, NULL, &count) == FIRN_OK && count == 0);
	CHECK(firn_read_end(session) == FIRN_OK);
	begin();
	hash = firn_hash_root(session, "hash");
	uint32_t key = 5;
	CHECK(firn_hash_remove(session, hash, &key, sizeof key) == FIRN_OK);
	CHECK(firn_hash_remove(session, hash, &key, sizeof key) == FIRN_NOT_FOUND);
	CHECK(firn_hash_clear(session, hash) == FIRN_OK && firn_hash_len(session, hash) == 0);
	commit();
}

static void vectors(void)
{
	firn_span value;
	begin();
	const void *vector = firn_vector_root(session, "vector");
	CHECK(firn_vector_pop(session, vector, &value) == FIRN_NOT_FOUND);
	CHECK(firn_vector_push(session, vector, "a", 1) == FIRN_OK);
	CHECK(firn_vector_push(session, vector, "c", 1) == FIRN_OK);
	CHECK(firn_vector_insert(session, vector, 1, "b", 1) == FIRN_OK);
	CHECK(firn_vector_set(session, vector, 0, "aa", 2) == FIRN_OK);
	CHECK(firn_vector_len(session, vector) == 3);
	CHECK(firn_vector_get(session, vector, 0, &value) == FIRN_OK && is(value, "aa"));
	CHECK(firn_vector_get(session, vector, 1, &value) == FIRN_OK && is(value, "b"));
	CHECK(firn_vector_get(session, vector, 3, &value) == FIRN_NOT_FOUND);
	CHECK(firn_vector_pop(session, vector, &value) == FIRN_OK && is(value, "c"));
	CHECK(firn_vector_remove(session, vector, 0) == FIRN_OK);
	CHECK(firn_vector_get(session, vector, 0, &value) == FIRN_OK && is(value, "b"));
	CHECK(firn_vector_truncate(session, vector, 5) == FIRN_OK && firn_vector_len(session, vector) == 1);
	commit();
	for (int i = 0; i < 3; i++) {
		begin();
		vector = firn_vector_root(session, "vector");
		if (i == 0)
			FAILS(FIRN_INVALID, firn_vector_set(session, vector, 1, "x", 1));
		else if (i == 1)
			FAILS(FIRN_INVALID, firn_vector_insert(session, vector, 2, "x", 1));
		else
			FAILS(FIRN_INVALID, firn_vector_remove(session, vector, 1));
		end_with(FIRN_INVALID);
	}
	begin();
	vector = firn_vector_root(session, "vector");
	CHECK(firn_vector_truncate(session, vector, 0) == FIRN_OK && firn_vector_len(session, vector) == 0);
	CHECK(firn_vector_push(session, vector, "z", 1) == FIRN_OK);
	CHECK(firn_vector_clear(session, vector) == FIRN_OK && firn_vector_len(session, vector) == 0);
	size_t count;
	CHECK(firn_vector_check(session, vector, NULL, NULL, &count) == FIRN_OK && count == 0);
	commit();
}

/* A name of a root that is kept says what the name says, whatever becomes of the root. */
static void kept_names(void)
{
	firn_root_name *map = firn_root_name_new("kept"), *leaf = firn_root_name_new("leaf");
	CHECK(map != NULL && leaf != NULL);
	CHECK(firn_read_begin(session) == FIRN_OK);
	FAILS_NULL(FIRN_NOT_FOUND, firn_map_named(session, map));
	FAILS_NULL(FIRN_NOT_FOUND, firn_root_named(session, leaf, &leaf_type));
	CHECK(firn_read_end(session) == FIRN_OK);
	for (int round = 0; round < 2; round++) {
		begin();
		const void *made = firn_map_named(session, map);
		CHECK(made != NULL && made == firn_map_named(session, map) && made == firn_map_root(session, "kept"));
		CHECK(firn_map_len(session, made) == 0);
		CHECK(firn_map_insert(session, made, "one", 3, "1", 1, NULL) == FIRN_OK);
		struct leaf value = {.weight = 2.5};
		CHECK(firn_set_root(session, "leaf", firn_alloc(session, &leaf_type, &value)) == FIRN_OK);
		commit();
		CHECK(firn_read_begin(session) == FIRN_OK);
		CHECK(firn_map_len(session, firn_map_named(session, map)) == 1);
		CHECK(firn_root_named(session, leaf, &leaf_type) == firn_root(session, "leaf", NULL));
		FAILS_NULL(FIRN_WRONG_TYPE, firn_map_named(session, leaf));
		FAILS_NULL(FIRN_WRONG_TYPE, firn_root_named(session, map, &leaf_type));
		CHECK(firn_read_end(session) == FIRN_OK);
		begin();
		CHECK(firn_set_root(session, "kept", NULL) == FIRN_OK);
		CHECK(firn_set_root(session, "leaf", NULL) == FIRN_OK);
		FAILS_NULL(FIRN_NOT_FOUND, firn_root_named(session, leaf, &leaf_type));
		commit();
	}
	firn_root_name_drop(leaf);
	firn_root_name_drop(NULL);
	CHECK(firn_read_begin(session) == FIRN_OK);
	FAILS_NULL(FIRN_INVALID, firn_map_named(session, NULL));
	FAILS_NULL(FIRN_MISUSE, firn_root_named(session, leaf, NULL));
	CHECK(firn_read_end(session) == FIRN_OK);
	firn_root_name_drop(map);
	FAILS_NULL(FIRN_INVALID, firn_root_name_new(""));
	FAILS_NULL(FIRN_INVALID, firn_root_name_new(NULL));
	FAILS_NULL(FIRN_INVALID, firn_root_name_new("a name of more than the forty bytes that are allowed"));
}

/* Two vectors that two threads change at once. */
struct crossing {
	const char *held;
	pthread_barrier_t is_held;
};

/* Changes one, and holds it for a moment. */
static void *hold(void *argument)
{
	struct crossing *crossing = argument;
	firn_session *other;
	CHECK(firn_session_open(pool, &other) == FIRN_OK);
	CHECK(firn_tx_begin(other) == FIRN_OK);
	CHECK(firn_vector_push(other, firn_vector_root(other, crossing->held), "x", 1) == FIRN_OK);
	pthread_barrier_wait(&crossing->is_held);
	nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
	CHECK(firn_tx_commit(other) == FIRN_OK);
	CHECK(firn_session_close(other) == FIRN_OK);
	return NULL;
}

static uint64_t len_of(const char *vector)
{
	CHECK(firn_read_begin(session) == FIRN_OK);
	uint64_t len = firn_vector_len(session, firn_vector_root(session, vector));
	CHECK(firn_read_end(session) == FIRN_OK);
	return len;
}

/* A transaction that could not wait for another's collection has not seen it, and cannot be committed, though nothing
 * that it changed failed. Which of two locks comes first is random: one of the orders has to start over. */
static void conflict(void)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	int conflicts = 0;
	begin();
	for (int i = 0; i < 4; i++)
		CHECK(firn_vector_root(session, names[i]) != NULL);
	commit();
	for (int i = 0; i < 16; i++) {
		const char *mine = names[i / 4];
		struct crossing crossing = {.held = names[i % 4]};
		if (mine == crossing.held)
			continue;
		uint64_t before = len_of(mine);
		CHECK(pthread_barrier_init(&crossing.is_held, NULL, 2) == 0);
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, hold, &crossing) == 0);
		pthread_barrier_wait(&crossing.is_held);
		begin();
		firn_clear_status();
		/* Where both share a lock this one fails already. */
		firn_status got = firn_vector_push(session, firn_vector_root(session, mine), "y", 1);
		if (got == FIRN_OK)
			got = firn_vector_get(session, firn_vector_root(session, crossing.held), 0, NULL);
		int conflicted = got == FIRN_CONFLICT;
		CHECK(conflicted ? firn_last_status() == FIRN_CONFLICT : got == FIRN_OK);
		end_with(got);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(pthread_barrier_destroy(&crossing.is_held) == 0);
		CHECK(len_of(mine) == before + (conflicted ? 0 : 1));
		conflicts += conflicted;
	}
	CHECK(conflicts > 0);
}

int main(void)
{
	for (int kind = FIRN_TRACED; kind <= FIRN_EXPLICIT; kind++) {
		firn_options options = {.kind = (firn_kind)kind};
		CHECK(firn_create(NULL, &options, &pool) == FIRN_OK);
		CHECK(firn_session_open(pool, &session) == FIRN_OK);
		maps();
		hashes();
		vectors();
		kept_names();
		conflict();
		CHECK(firn_session_close(session) == FIRN_OK);
		size_t findings;
		CHECK(firn_check(pool, NULL, NULL, &findings) == FIRN_OK && findings == 0);
		CHECK(firn_close(pool) == FIRN_OK);
	}
	printf("done\n");
	return 0;
}
