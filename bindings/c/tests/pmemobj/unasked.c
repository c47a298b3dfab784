/*
 * A program that keeps what libpmemobj allows and a moved object breaks: offsets without the pool's id, distances from
 * one object to another, pointers across transactions. Four of five objects are deleted. Another kind of objects is named
 * by OIDs, which it lists.
 *
 *   unasked POOL
 *
 * prints the same with either library.
 */
#include <dirent.h>
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(unasked);
POBJ_LAYOUT_ROOT(unasked, struct root);
POBJ_LAYOUT_TOID(unasked, struct linked);
POBJ_LAYOUT_TOID(unasked, struct named);
POBJ_LAYOUT_END(unasked);

enum { OBJECTS = 90000 };

struct linked {
	uint64_t number;
	/* Where the next one is in the pool, and how far away from here. */
	uint64_t offset;
	int64_t distance;
	uint64_t rest[25];
};

struct named {
	uint64_t number;
	uint64_t rest[10];
};

struct root {
	uint64_t offset;
};

#define HOLDS(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, pmemobj_errormsg()); \
			exit(1); \
		} \
	} while (0)

static struct linked *pointers[OBJECTS];
static PMEMoid named[OBJECTS];
static PMEMoid *list[OBJECTS];

/* Threads that may move objects. */
static int collectors(void)
{
	int found = 0;
	DIR *threads = opendir("/proc/self/task");
	HOLDS(threads != NULL);
	for (struct dirent *thread; (thread = readdir(threads)) != NULL;) {
		char path[300], name[32] = "";
		snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread->d_name);
		FILE *file = fopen(path, "r");
		if (file == NULL)
			continue;
		found += fgets(name, sizeof name, file) != NULL && strcmp(name, "firn-collector\n") == 0;
		fclose(file);
	}
	closedir(threads);
	return found;
}

/* The last one that is there leads to the one before, and so on. */
static void fill(PMEMobjpool *pop, struct root *root)
{
	struct linked *before = NULL;
	for (int i = 0; i < OBJECTS; i++) {
		TX_BEGIN(pop)
		{
			PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct linked), 1);
			pointers[i] = pmemobj_direct(oid);
			pointers[i]->number = (uint64_t)i;
			named[i] = pmemobj_tx_zalloc(sizeof(struct named), 2);
			((struct named *)pmemobj_direct(named[i]))->number = (uint64_t)i;
			if (i % 5 == 0) {
				pmemobj_tx_add_range_direct(root, sizeof *root);
				pointers[i]->offset = root->offset;
				pointers[i]->distance = before == NULL ? 0 : (char *)before - (char *)pointers[i];
				root->offset = oid.off;
				before = pointers[i];
			}
		}
		TX_ONABORT
		{
			HOLDS(0);
		}
		TX_END
	}
	for (int i = 0; i < OBJECTS; i++) {
		if (i % 5 == 0)
			continue;
		PMEMoid oid = pmemobj_oid(pointers[i]);
		pmemobj_free(&oid);
		pmemobj_free(&named[i]);
		pointers[i] = NULL;
	}
}

/* By all the three ways. */
static void read_all(PMEMoid root, int with_pointers)
{
	PMEMoid at = root;
	at.off = ((struct root *)pmemobj_direct(root))->offset;
	const struct linked *by_distance = pmemobj_direct(at);
	for (int i = OBJECTS - 5; i >= 0; i -= 5) {
		const struct linked *by_offset = pmemobj_direct(at);
		HOLDS(by_offset->number == (uint64_t)i && by_distance == by_offset);
		HOLDS(!with_pointers || pointers[i] == by_offset);
		at.off = by_offset->offset;
		by_distance = (const struct linked *)((const char *)by_distance + by_distance->distance);
	}
	HOLDS(at.off == 0);
}

static void read_named(void)
{
	for (int i = 0; i < OBJECTS; i += 5)
		HOLDS(((struct named *)pmemobj_direct(named[i]))->number == (uint64_t)i);
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	PMEMobjpool *pop = pmemobj_create(arguments[1], POBJ_LAYOUT_NAME(unasked), (size_t)128 << 20, 0600);
	HOLDS(pop != NULL);
	PMEMoid root = pmemobj_root(pop, sizeof(struct root));
	fill(pop, pmemobj_direct(root));
	printf("%d collectors\n", collectors());
	struct pobj_defrag_result result = {77, 77};
	HOLDS(pmemobj_defrag(pop, NULL, 0, &result) == 0 && pmemobj_defrag(pop, NULL, 0, NULL) == 0);
	printf("no list: %zu, moved %zu\n", result.total, result.relocated);
	read_all(root, 1);
	PMEMoid null = OID_NULL, twice = named[0];
	PMEMoid *few[] = {&null, &named[0], &twice};
	HOLDS(pmemobj_defrag(pop, few, 3, &result) == 0);
	printf("one object, by two OIDs: %zu, the same %d\n", result.total, twice.off == named[0].off);
	size_t listed = 0;
	for (int i = 0; i < OBJECTS; i += 5)
		list[listed++] = &named[i];
	HOLDS(pmemobj_defrag(pop, list, listed, &result) == 0);
	printf("a list: %zu, more than half moved %d\n", result.total, result.relocated > listed / 2);
	read_named();
	read_all(root, 1);
	pmemobj_close(pop);
	pop = pmemobj_open(arguments[1], POBJ_LAYOUT_NAME(unasked));
	HOLDS(pop != NULL);
	read_all(pmemobj_root(pop, sizeof(struct root)), 0);
	pmemobj_close(pop);
	return 0;
}
