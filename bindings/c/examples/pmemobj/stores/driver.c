/*
 * Drives a store.
 *
 *   PROGRAM POOL random SEED COUNT   changes and readings in a new pool; prints what they answered, and the content
 *   PROGRAM POOL run SEED            changes until it is killed; prints how many are durable after each
 *   PROGRAM POOL content             prints how many changes there were, and the content
 *   PROGRAM POOL course COUNT        inserts, reads, deletes four fifths, defragments; prints what each took
 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, pmemobj_errormsg());
	exit(1);
}

/* ------------------------------------------------------------------------------------------------- numbers */

/* The nth number of a seed. */
static uint64_t drawn(uint64_t seed, uint64_t n)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + (n + 1) * 0xd1342543de82ef95u;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

static struct value value_of(uint64_t number)
{
	struct value value;
	for (size_t i = 0; i < VALUE_BYTES; i += sizeof number) {
		uint64_t word = drawn(number, i);
		memcpy(value.bytes + i, &word, sizeof word);
	}
	return value;
}

struct digest {
	uint64_t sum;
	uint64_t entries;
};

static void digest_bytes(struct digest *digest, const void *from, size_t len)
{
	const uint8_t *bytes = from;
	for (size_t i = 0; i < len; i++)
		digest->sum = (digest->sum ^ bytes[i]) * 0x100000001b3u;
}

static void digest_entry(void *argument, uint64_t key, const struct value *value)
{
	struct digest *digest = argument;
	digest_bytes(digest, &key, sizeof key);
	digest_bytes(digest, value, sizeof *value);
	digest->entries++;
}

/* ------------------------------------------------------------------------------------------------- changes */

enum { RANDOM_KEYS = 700 };

/* The nth change of a seed, with its number in one transaction, or one that is aborted. */
static int change(PMEMobjpool *pop, TOID(struct root) root, uint64_t seed, uint64_t n)
{
	uint64_t random = drawn(seed, n);
	uint64_t key = (random >> 8) % RANDOM_KEYS;
	struct value value = value_of(random);
	TOID(struct store) store = D_RO(root)->store;
	volatile int answer = 0;
	if (random % 16 == 0) {
		TX_BEGIN(pop)
		{
			store_put(pop, store, key, &value);
			store_remove(pop, store, (key + 1) % RANDOM_KEYS);
			store_put(pop, store, (key + 2) % RANDOM_KEYS, &value);
			pmemobj_tx_abort(ECANCELED);
		}
		TX_ONABORT
		{
			answer = errno == ECANCELED ? 2 : 3;
		}
		TX_END
	}
	TX_BEGIN(pop)
	{
		if (random % 5 < 3)
			answer += 4 * store_put(pop, store, key, &value);
		else
			answer += 8 * store_remove(pop, store, key);
		TX_SET(root, changes, D_RO(root)->changes + 1);
	}
	TX_ONABORT
	{
		give_up("change");
	}
	TX_END
	return answer;
}

static void print_content(TOID(struct root) root)
{
	struct digest digest = {0xcbf29ce484222325u, 0};
	store_each(D_RO(root)->store, digest_entry, &digest);
	printf("%llu changes, %llu entries, %016llx, %s\n", (unsigned long long)D_RO(root)->changes,
	       (unsigned long long)digest.entries, (unsigned long long)digest.sum,
	       store_is_sound(D_RO(root)->store) ? "sound" : "NOT SOUND");
}

static void randomly(PMEMobjpool *pop, TOID(struct root) root, uint64_t seed, uint64_t count)
{
	struct digest answers = {0xcbf29ce484222325u, 0};
	for (uint64_t n = 0; n < count; n++) {
		int answer = change(pop, root, seed, n);
		digest_bytes(&answers, &answer, sizeof answer);
		for (uint64_t i = 0; i < 2; i++) {
			struct value found = {{0}};
			uint64_t key = (drawn(~seed, n) >> (16 * i)) % RANDOM_KEYS;
			answer = store_get(D_RO(root)->store, key, &found);
			digest_bytes(&answers, &answer, sizeof answer);
			digest_bytes(&answers, &found, sizeof found);
		}
	}
	printf("answers %016llx\n", (unsigned long long)answers.sum);
	print_content(root);
}

/* -------------------------------------------------------------------------------------------------- course */

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Different numbers below STORE_KEYS for different numbers. */
static uint64_t scattered(uint64_t i)
{
	return (i * 0x9e3779b1u + 12345) % STORE_KEYS;
}

/* What both libraries keep in front of an object: its size or type and the program's number of its type. */
enum { HEADER_BYTES = 16 };

/* Bytes of the 2 MiB pages that hold objects, over those of objects; header_bytes of each are counted with it. */
static double ratio(PMEMobjpool *pop, uint64_t header_bytes)
{
	enum { PAGES = 1 << 16 };
	static uint8_t is_used[PAGES];
	uint64_t used = 0, bytes = 0;
	memset(is_used, 0, sizeof is_used);
	for (PMEMoid oid = pmemobj_first(pop); !OID_IS_NULL(oid); oid = pmemobj_next(oid)) {
		uint64_t len = pmemobj_alloc_usable_size(oid);
		bytes += len + header_bytes;
		for (uint64_t page = oid.off >> 21; page <= (oid.off + len - 1) >> 21; page++) {
			used += !is_used[page % PAGES];
			is_used[page % PAGES] = 1;
		}
	}
	return (double)(used << 21) / (double)bytes;
}

static void told_ratio(const char *when, PMEMobjpool *pop)
{
	printf("ratio_after_%s %.3f\n", when, ratio(pop, 0));
	printf("ratio_with_headers_after_%s %.3f\n", when, ratio(pop, HEADER_BYTES));
}

static void told(const char *what, double since, uint64_t count)
{
	printf("%s %.1f\n", what, (now() - since) / (double)count);
}

static uint64_t read_all(TOID(struct store) store, uint64_t count)
{
	struct value value;
	uint64_t found = 0;
	for (uint64_t i = 0; i < count; i++)
		if (store_get(store, scattered(i * 7919 % count), &value))
			found += 1 + (value.bytes[0] & 0);
	return found;
}

/* Places of OIDs. */
struct places {
	PMEMoid **oids;
	size_t count;
	size_t room;
};

static void note_place(void *argument, PMEMoid *oid)
{
	struct places *places = argument;
	if (OID_IS_NULL(*oid))
		return;
	if (places->count == places->room) {
		places->room = 2 * places->room + 1024;
		places->oids = realloc(places->oids, places->room * sizeof places->oids[0]);
		if (places->oids == NULL)
			abort();
	}
	places->oids[places->count++] = oid;
}

/* Moves objects together: those that the libraries are told of. */
static void defragment(PMEMobjpool *pop, TOID(struct root) root)
{
	struct places places = {NULL, 0, 0};
	note_place(&places, &D_RW(root)->store.oid);
	store_each_oid(D_RO(root)->store, note_place, &places);
	struct pobj_defrag_result moved;
	double since = now();
	if (pmemobj_defrag(pop, places.oids, places.count, &moved) != 0)
		give_up("defrag");
	told("defrag", since, 1);
	free(places.oids);
}

static void course(PMEMobjpool *pop, TOID(struct root) root, uint64_t count)
{
	TOID(struct store) store = D_RO(root)->store;
	struct value value = value_of(count);
	double since = now();
	for (uint64_t i = 0; i < count; i++) {
		TX_BEGIN(pop)
		{
			store_put(pop, store, scattered(i), &value);
		}
		TX_ONABORT
		{
			give_up("insert");
		}
		TX_END
	}
	told("insert", since, count);
	since = now();
	uint64_t found = read_all(store, count);
	told("get", since, count);
	since = now();
	uint64_t gone = 0;
	for (uint64_t i = 0; i < count; i++)
		if (drawn(count, i) % 5 != 0)
			gone += (uint64_t)store_remove(pop, store, scattered(i));
	told("delete", since, gone);
	told_ratio("deletes", pop);
	since = now();
	found += read_all(store, count);
	told("get_after_deletes", since, count);
	defragment(pop, root);
	store = D_RO(root)->store;
	told_ratio("defrag", pop);
	since = now();
	found += read_all(store, count);
	told("get_after_defrag", since, count);
#ifdef FIRN_PMEMOBJ_H
	/* No OID from before is kept outside the pool. */
	firn_forget_oids(pop);
	store = D_RO(root)->store;
#endif
	since = now();
	found += read_all(store, count);
	told("get_after_forget", since, count);
	printf("found %llu, gone %llu\n", (unsigned long long)found, (unsigned long long)gone);
	print_content(root);
}

/* ---------------------------------------------------------------------------------------------------- main */

/* A pool of libpmemobj is as large from the beginning as it may become. */
static size_t pool_bytes(int count, char **arguments)
{
	size_t bytes = (size_t)512 << 20;
	if (count == 4 && strcmp(arguments[2], "course") == 0)
		bytes += strtoull(arguments[3], NULL, 10) * 512;
	return bytes;
}

int main(int count, char **arguments)
{
	if (count < 3) {
		fprintf(stderr, "usage: %s POOL random SEED COUNT | run SEED | content | course COUNT\n", arguments[0]);
		return 2;
	}
	const char *path = arguments[1];
	PMEMobjpool *pop = access(path, F_OK) == 0
				   ? pmemobj_open(path, POBJ_LAYOUT_NAME(store))
				   : pmemobj_create(path, POBJ_LAYOUT_NAME(store), pool_bytes(count, arguments), 0600);
	if (pop == NULL)
		give_up(path);
	TOID(struct root) root = POBJ_ROOT(pop, struct root);
	if (TOID_IS_NULL(D_RO(root)->store)) {
		TX_BEGIN(pop)
		{
			TX_SET(root, store, store_new());
		}
		TX_ONABORT
		{
			give_up("a new store");
		}
		TX_END
	}
	uint64_t first = count > 3 ? strtoull(arguments[3], NULL, 10) : 0;
	if (strcmp(arguments[2], "random") == 0 && count == 5) {
		randomly(pop, root, first, strtoull(arguments[4], NULL, 10));
	} else if (strcmp(arguments[2], "run") == 0 && count == 4) {
		for (;;) {
			change(pop, root, first, D_RO(root)->changes);
			printf("%llu\n", (unsigned long long)D_RO(root)->changes);
			fflush(stdout);
		}
	} else if (strcmp(arguments[2], "content") == 0) {
		print_content(root);
	} else if (strcmp(arguments[2], "course") == 0 && count == 4) {
		course(pop, root, first);
	} else {
		fprintf(stderr, "%s: what is '%s'?\n", arguments[0], arguments[2]);
		return 2;
	}
	pmemobj_close(pop);
	return 0;
}
