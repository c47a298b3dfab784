/*
 * A list of numbers: the insertion of FFCCD's Figure 3, with a pool that is kept compact.
 *
 *   list POOL VALUE...     puts the values in front, and prints the list
 *
 * Run it again, and what it put there the last time is still there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <firn.h>

struct node {
	firn_ref next;
	int64_t data;
};
FIRN_LAYOUT(node_type, struct node, "node", 1, (next, node_type), (data));

struct list {
	firn_ref first;
	uint64_t length;
};
FIRN_LAYOUT(list_type, struct list, "list", 1, (first, node_type), (length));

static void check(firn_status status)
{
	if (status != FIRN_OK) {
		fprintf(stderr, "list: %s\n", firn_last_message());
		exit(1);
	}
}

static firn_status insert(firn_session *session, void *value)
{
	const struct list *list = firn_root(session, "list", &list_type);
	if (list == NULL)
		return firn_last_status();
	struct node front = {.next = FIRN_LOAD(session, list, first), .data = *(int64_t *)value};
	const struct node *node = firn_alloc(session, &node_type, &front);
	FIRN_LINK(session, list, first, node);
	return FIRN_STORE(session, list, length, FIRN_LOAD(session, list, length) + 1);
}

static firn_status make_list(firn_session *session, void *unused)
{
	(void)unused;
	return firn_set_root(session, "list", firn_alloc(session, &list_type, NULL));
}

int main(int count, char **arguments)
{
	if (count < 2) {
		fprintf(stderr, "usage: %s POOL VALUE...\n", arguments[0]);
		return 2;
	}
	firn_pool *pool;
	firn_session *session;
	firn_options options = {.layout = "list"};
	firn_status opened = firn_open(arguments[1], &options, &pool);
	if (opened == FIRN_NOT_FOUND) {
		check(firn_create(arguments[1], &options, &pool));
		check(firn_session_open(pool, &session));
		check(firn_transaction(session, make_list, NULL));
	} else {
		check(opened);
		check(firn_session_open(pool, &session));
	}
	check(firn_init(pool, NULL));

	for (int i = 2; i < count; i++) {
		int64_t value = strtoll(arguments[i], NULL, 10);
		check(firn_transaction(session, insert, &value));
	}

	check(firn_read_begin(session));
	const struct list *list = firn_root(session, "list", &list_type);
	if (list == NULL)
		check(firn_last_status());
	printf("%" PRIu64 ":", list->length);
	for (const struct node *node = FIRN_FOLLOW(session, list, first); node != NULL;
	     node = FIRN_FOLLOW(session, node, next))
		printf(" %" PRId64, node->data);
	printf("\n");
	check(firn_read_end(session));

	check(firn_session_close(session));
	check(firn_exit(pool));
	check(firn_close(pool));
	return 0;
}
