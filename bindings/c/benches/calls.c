/* What calls.rs does, in C: the nanoseconds of processor time that an operation takes, a line for each kind. */
#define _GNU_SOURCE
#include <firn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OBJECTS = 4096, BATCH = 16 };

struct node {
	firn_ref next;
	uint64_t number;
	uint64_t rest[4];
};
FIRN_TYPE(node_type, struct node, "node", 1, next);

static firn_session *session;
static const void *objects[OBJECTS];

static void check(int is_right)
{
	if (!is_right) {
		fprintf(stderr, "%s\n", firn_last_message());
		exit(1);
	}
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **arguments)
{
	check(count == 2);
	long rounds = atol(arguments[1]);
	firn_pool *pool;
	firn_options options = {.kind = FIRN_EXPLICIT, .domain = FIRN_ASSUME_ADR};
	check(firn_create(NULL, &options, &pool) == FIRN_OK);
	check(firn_session_open(pool, &session) == FIRN_OK);
	double allocate = 0, release = 0, store = 0, chase = 0;
	uint64_t sum = 0;
	for (long round = 0; round < rounds; round++) {
		double begin = now();
		for (int i = 0; i < OBJECTS; i += BATCH) {
			check(firn_tx_begin(session) == FIRN_OK);
			for (int j = i; j < i + BATCH; j++) {
				struct node front = {.number = (uint64_t)j};
				if (j > i)
					front.next = firn_reference(session, objects[j - 1]);
				objects[j] = firn_alloc(session, &node_type, &front);
			}
			check(firn_tx_commit(session) == FIRN_OK);
		}
		double allocated = now();
		for (int i = 0; i < OBJECTS; i++) {
			check(firn_tx_begin(session) == FIRN_OK);
			const struct node *node = objects[i];
			FIRN_STORE(session, node, number, (uint64_t)i + 1);
			check(firn_tx_commit(session) == FIRN_OK);
		}
		double stored = now();
		check(firn_read_begin(session) == FIRN_OK);
		for (int i = BATCH - 1; i < OBJECTS; i += BATCH)
			for (const struct node *node = objects[i]; node != NULL; node = FIRN_FOLLOW(session, node, next))
				sum += FIRN_LOAD(session, node, number);
		check(firn_read_end(session) == FIRN_OK);
		double chased = now();
		for (int i = 0; i < OBJECTS; i += BATCH) {
			check(firn_tx_begin(session) == FIRN_OK);
			for (int j = i; j < i + BATCH; j++)
				check(firn_free(session, objects[j]) == FIRN_OK);
			check(firn_tx_commit(session) == FIRN_OK);
		}
		double freed = now();
		if (round > 0) {
			allocate += allocated - begin;
			store += stored - allocated;
			chase += chased - stored;
			release += freed - chased;
		}
	}
	double each = (double)(rounds - 1) * OBJECTS;
	check(sum == (uint64_t)rounds * OBJECTS * (OBJECTS + 1) / 2);
	printf("%f\n%f\n%f\n%f\n", allocate / each, store / each, chase / each, release / each);
	return 0;
}
