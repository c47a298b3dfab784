/*
 * Versions of one program that have a pool in turns: layouts POOL write | read | register | migrate.
 * Which one it is PROGRAM says.
 * Prints what it read, or the status and message of what was refused.
 */
#include <firn.h>

#include <stdio.h>
#include <string.h>

#if PROGRAM == 1 /* the first */
struct item { uint64_t a; firn_ref next; };
FIRN_LAYOUT(item_type, struct item, "item", 1, (a), (next, item_type));
#elif PROGRAM == 2 /* items have more, and a new version */
struct item { uint64_t a; firn_ref next; uint64_t seen; uint64_t more; };
FIRN_LAYOUT(item_type, struct item, "item", 2, (a), (next, item_type), (seen), (more));
#elif PROGRAM == 3 /* fields in another order, and no new version */
struct item { firn_ref next; uint64_t a; };
FIRN_LAYOUT(item_type, struct item, "item", 1, (next, item_type), (a));
#elif PROGRAM == 4 /* two of another kind, with the references where they were */
struct item { uint32_t b; uint32_t a; firn_ref next; };
FIRN_LAYOUT(item_type, struct item, "item", 1, (b), (a), (next, item_type));
#elif PROGRAM == 5 /* tables that say nothing but where references are */
struct item { uint64_t a; firn_ref next; };
FIRN_TYPE(item_type, struct item, "item", 1, next);
#elif PROGRAM == 6 /* such tables of items that are longer */
struct item { uint64_t a; firn_ref next; uint64_t seen; };
FIRN_TYPE(item_type, struct item, "item", 2, next);
#endif
struct top { firn_ref first; };
#if PROGRAM < 5
FIRN_LAYOUT(top_type, struct top, "top", 1, (first, item_type));
#else
FIRN_TYPE(top_type, struct top, "top", 1, first);
#endif

static firn_status write_items(firn_session *session, void *argument)
{
	const struct item *item = NULL;
	(void)argument;
	for (unsigned i = 0; i < 10; i++) {
		struct item front = {.a = i, .next = firn_reference(session, item)};
		item = firn_alloc(session, &item_type, &front);
	}
	struct top top = {.first = firn_reference(session, item)};
	return firn_set_root(session, "top", firn_alloc(session, &top_type, &top));
}

#if PROGRAM == 2
struct old_item { uint64_t a; firn_ref next; };
FIRN_LAYOUT(old_item_type, struct old_item, "item", 1, (a), (next, old_item_type));

static void longer(const void *old, void *new, void *calls)
{
	const struct old_item *from = old;
	struct item *to = new;
	to->a = from->a + to->more;
	to->next = from->next;
	++*(unsigned *)calls;
}

static void migrate_items(firn_pool *pool)
{
	uint64_t objects = 0;
	unsigned calls = 0;
	if (firn_migrate(pool, &old_item_type, &item_type, longer, &calls, &objects) == FIRN_OK)
		printf("%u %u\n", (unsigned)objects, calls);
}
#else
static void migrate_items(firn_pool *pool)
{
	firn_migrate(pool, &item_type, &item_type, NULL, NULL, NULL);
}
#endif

static void read_items(firn_session *session)
{
	uint64_t sum = 0;
	firn_read_begin(session);
	const struct top *top = firn_root(session, "top", &top_type);
	const struct item *item = top == NULL ? NULL : FIRN_FOLLOW(session, top, first);
	for (; item != NULL; item = FIRN_FOLLOW(session, item, next))
		sum += item->a;
	firn_read_end(session);
	if (top != NULL)
		printf("%u\n", (unsigned)sum);
}

int main(int argc, char **argv)
{
	firn_pool *pool = NULL;
	firn_session *session = NULL;
	if (argc != 3)
		return 2;
	int writes = strcmp(argv[2], "write") == 0;
	firn_options options = {.layout = "layouts"};
	if ((writes ? firn_create : firn_open)(argv[1], &options, &pool) != FIRN_OK)
		return 2;
	if (strcmp(argv[2], "migrate") == 0)
		migrate_items(pool);
	else if (strcmp(argv[2], "register") == 0)
		firn_register(pool, &item_type);
	else if (firn_session_open(pool, &session) != FIRN_OK)
		return 2;
	else if (writes)
		firn_transaction(session, write_items, NULL);
	else
		read_items(session);
	if (firn_last_status() != FIRN_OK)
		printf("%s: %s\n", firn_status_name(firn_last_status()), firn_last_message());
	return firn_session_close(session) == FIRN_OK && firn_close(pool) == FIRN_OK ? 0 : 2;
}
