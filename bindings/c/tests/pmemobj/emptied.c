/*
 * In a full pool any number of objects is freed in one transaction. Then a full pool is half emptied and defragmented, over
 * and over: in the end all of it can be filled again, however many pages were emptied before.
 *
 *   emptied ROUNDS POOL
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_BYTES = 40 << 20, MOST = 1 << 20 };

static PMEMoid objects[MOST];

/* Fills the pool; the objects from `first` on are new. How many there are then. */
static size_t fill(PMEMobjpool *pop, size_t first)
{
	while (first < MOST && pmemobj_alloc(pop, &objects[first], 100, 1, NULL, NULL) == 0)
		first++;
	return first;
}

/* Frees every `step`-th object of the first `among` in one transaction, and leaves the others in front. */
static size_t free_some(PMEMobjpool *pop, size_t count, size_t among, size_t step)
{
	TX_BEGIN(pop)
	{
		for (size_t i = 0; i < among; i += step)
			pmemobj_tx_free(objects[i]);
	}
	TX_ONABORT
	{
		fprintf(stderr, "%zu: %s\n", (among + step - 1) / step, pmemobj_errormsg());
		exit(1);
	}
	TX_END
	size_t left = 0;
	for (size_t i = 0; i < count; i++)
		if (i >= among || i % step != 0)
			objects[left++] = objects[i];
	return left;
}

int main(int argc, char **argv)
{
	PMEMobjpool *pop = pmemobj_create(argv[argc - 1], "emptied", POOL_BYTES, 0600);
	if (pop == NULL) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 1;
	}
	size_t count = fill(pop, 0), most = count;
	for (size_t some = 1; some < most / 3; some = some * 4 + 1) {
		count = free_some(pop, count, count, count / some);
		count = fill(pop, count);
	}
	count = free_some(pop, count, count, 2);
	count = fill(pop, count);
	for (size_t i = 0; i < 1000; i++)
		pmemobj_free(&objects[--count]);
	count = fill(pop, count);
	for (int i = 0; i < atoi(argv[1]); i++) {
		count = free_some(pop, count, count, 2);
		firn_collecting how = {.target = 1.02};
		if (firn_collect_pool(pop, &how, NULL) != 0) {
			fprintf(stderr, "%s\n", pmemobj_errormsg());
			return 1;
		}
		count = fill(pop, count);
	}
	count = free_some(pop, count, count, 1);
	int empty = count == 0 && OID_IS_NULL(pmemobj_first(pop));
	count = fill(pop, 0);
	printf("%s, %s\n", empty ? "empty" : "not empty", count >= most / 10 * 9 ? "full again" : "not full");
	pmemobj_close(pop);
	return most < 100000;
}
