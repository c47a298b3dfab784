/*
 * Looks whether an object is where it was when the operation ended that found it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <firn.h>

struct box {
	firn_ref item;
};
FIRN_TYPE(box_type, struct box, "box", 1, item);

/* Of another size than the box, beside which objects stay. */
struct item {
	uint64_t words[31];
};
FIRN_TYPE_WITHOUT_REFERENCES(item_type, struct item, "item", 1);

static void check(firn_status status)
{
	if (status != FIRN_OK) {
		fprintf(stderr, "kept: %s\n", firn_last_message());
		exit(1);
	}
}

static firn_status make(firn_session *session, void *unused)
{
	(void)unused;
	const struct item *item = firn_alloc(session, &item_type, NULL);
	struct box box = {firn_reference(session, item)};
	return firn_set_root(session, "box", firn_alloc(session, &box_type, &box));
}

static uintptr_t where(firn_session *session)
{
	check(firn_read_begin(session));
	const struct box *box = firn_root(session, "box", &box_type);
	if (box == NULL)
		check(firn_last_status());
	uintptr_t at = (uintptr_t)FIRN_FOLLOW(session, box, item);
	check(firn_read_end(session));
	return at;
}

int main(void)
{
	firn_pool *pool;
	firn_session *session;
	check(firn_create(NULL, NULL, &pool));
	check(firn_session_open(pool, &session));
	check(firn_transaction(session, make, NULL));
	uintptr_t before = where(session);
	printf("%s\n", where(session) == before ? "stayed" : "moved");
	check(firn_session_close(session));
	check(firn_close(pool));
	return 0;
}
