/*
 * The main thread opens a pool, finds its root and makes an object, and waits for another, which moves objects.
 *
 *   waits POOL [holds]
 *
 * With `holds` it has a pointer meanwhile, and nothing moves.
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 600 };

#define HOLDS(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, pmemobj_errormsg()); \
			exit(1); \
		} \
	} while (0)

static PMEMobjpool *pop;
static PMEMoid objects[OBJECTS];

static void *work(void *argument)
{
	for (int i = 0; i < OBJECTS; i++) {
		TX_BEGIN(pop) { objects[i] = pmemobj_tx_zalloc(200, 1); } TX_END
		HOLDS(!OID_IS_NULL(objects[i]));
	}
	for (int i = 0; i < OBJECTS; i++)
		if (i % 5 != 0)
			pmemobj_free(&objects[i]);
	uint64_t moved = 0;
	firn_collecting how = {.target = 1.0, .pages = FIRN_SMALL_PAGES};
	if (argument == NULL)
		HOLDS(firn_collect_pool(pop, &how, &moved) == 0);
	return NULL;
}

int main(int count, char **arguments)
{
	pop = pmemobj_create(arguments[1], "waits", (size_t)512 << 20, 0600);
	HOLDS(pop != NULL);
	PMEMoid root = pmemobj_root(pop, 64), first, last;
	HOLDS(!OID_IS_NULL(root) && pmemobj_root_size(pop) == 64);
	HOLDS(pmemobj_alloc(pop, &first, 100, 7, NULL, NULL) == 0 && pmemobj_zalloc(pop, &last, 100, 8) == 0);
	HOLDS(pmemobj_type_num(last) == 8 && pmemobj_alloc_usable_size(first) >= 100);
	HOLDS(OID_EQUALS(pmemobj_next(pmemobj_first(pop)), last) && pmemobj_realloc(pop, &last, 300, 8) == 0);
	pmemobj_free(&last);
	HOLDS(firn_pin_type(pop, 7) == 0);
	uint64_t *held = count > 2 ? pmemobj_direct(first) : NULL;
	pthread_t thread;
	HOLDS(pthread_create(&thread, NULL, work, held) == 0 && pthread_join(thread, NULL) == 0);
	if (held != NULL)
		HOLDS(held == pmemobj_direct(first) && (*held = 1));
	pmemobj_close(pop);
	printf("done\n");
	return 0;
}
