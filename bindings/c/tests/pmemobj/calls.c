/*
 * Random calls, single ones and in transactions of which some are aborted, while objects move: everything is compared
 * with a model in the program's own memory, after every few calls and after the pool was opened again.
 *
 *   calls POOL SEED STEPS
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, pmemobj_errormsg());                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { SLOTS = 48, TYPES = 4, MOST = 3000, NOTHING = -1 };

/* What each object begins with; the rest are bytes. */
struct front {
	PMEMoid link;
};

struct root {
	PMEMoid slots[SLOTS];
};

/* What an object is to be. */
struct thing {
	int is_there;
	unsigned type;
	size_t size;
	int link;
	unsigned char bytes[MOST];
};

static PMEMobjpool *pop;
static PMEMoid root;
static struct thing now[SLOTS], before[SLOTS];
/* The same OIDs in the program's memory: they stay good whatever moves. */
static PMEMoid kept[SLOTS], kept_before[SLOTS];
static uint64_t state;

static size_t below(size_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state % bound);
}

/* Taken anew for every use: an object may have moved. */
static struct root *the_root(void)
{
	return pmemobj_direct(root);
}

static int any_there(void)
{
	int start = (int)below(SLOTS);
	for (int i = 0; i < SLOTS; i++)
		if (now[(start + i) % SLOTS].is_there)
			return (start + i) % SLOTS;
	return NOTHING;
}

static int any_free(void)
{
	int start = (int)below(SLOTS);
	for (int i = 0; i < SLOTS; i++)
		if (!now[(start + i) % SLOTS].is_there)
			return (start + i) % SLOTS;
	return NOTHING;
}

static size_t any_size(void)
{
	size_t most = below(6) == 0 ? MOST : 200;
	return sizeof(struct front) + 1 + below(most - sizeof(struct front));
}

/* Makes the model's object, of zeros and linked to nothing. */
static void appear(int slot, size_t size, unsigned type)
{
	now[slot] = (struct thing){.is_there = 1, .type = type, .size = size, .link = NOTHING};
}

/* The model's object is gone, and what links to it links to nothing. */
static void disappear(int slot)
{
	now[slot].is_there = 0;
	for (int i = 0; i < SLOTS; i++)
		if (now[i].is_there && now[i].link == slot)
			now[i].link = NOTHING;
}

/* Bytes of an object from `at` on get a new content in the model. */
static void scribble(int slot, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		now[slot].bytes[at + i] = (unsigned char)below(256);
}

/* A range of the bytes behind the front. */
static size_t any_range(int slot, size_t *len)
{
	size_t rest = now[slot].size - sizeof(struct front);
	size_t at = below(rest);
	*len = 1 + below(rest - at);
	return sizeof(struct front) + at;
}

/* ------------------------------------------------------------------------------------------------ single calls */

static int fill(PMEMobjpool *pool, void *object, void *argument)
{
	int slot = *(int *)argument;
	memcpy(object, now[slot].bytes, now[slot].size);
	pmemobj_persist(pool, object, now[slot].size);
	return 0;
}

static int refuse(PMEMobjpool *pool, void *object, void *argument)
{
	(void)pool;
	(void)argument;
	memset(object, 0xff, sizeof(struct front));
	return -1;
}

static void single(void)
{
	int slot = any_free(), there = any_there();
	PMEMoid *place;
	size_t at, len;
	switch (below(8)) {
	case 0:
	case 1:
		if (slot == NOTHING)
			break;
		appear(slot, any_size(), (unsigned)below(TYPES));
		scribble(slot, sizeof(struct front), now[slot].size - sizeof(struct front));
		place = &the_root()->slots[slot];
		CHECK(pmemobj_alloc(pop, place, now[slot].size, now[slot].type, fill, &slot) == 0);
		kept[slot] = the_root()->slots[slot];
		break;
	case 2:
		if (slot == NOTHING)
			break;
		appear(slot, any_size(), (unsigned)below(TYPES));
		CHECK(pmemobj_zalloc(pop, &the_root()->slots[slot], now[slot].size, now[slot].type) == 0);
		kept[slot] = the_root()->slots[slot];
		break;
	case 3:
		if (slot == NOTHING)
			break;
		CHECK(pmemobj_alloc(pop, &the_root()->slots[slot], any_size(), 0, refuse, NULL) == -1);
		CHECK(errno == ECANCELED && OID_IS_NULL(the_root()->slots[slot]));
		break;
	case 4:
		if (there == NOTHING)
			break;
		at = any_size();
		if (at > now[there].size)
			memset(now[there].bytes + now[there].size, 0, at - now[there].size);
		now[there].size = at;
		CHECK(pmemobj_zrealloc(pop, &the_root()->slots[there], at, now[there].type) == 0);
		/* The object may be another now: what links to it follows. */
		kept[there] = the_root()->slots[there];
		for (int i = 0; i < SLOTS; i++)
			if (now[i].is_there && now[i].link == there) {
				struct front *front = pmemobj_direct(kept[i]);
				front->link = kept[there];
				pmemobj_persist(pop, front, sizeof *front);
			}
		break;
	case 5:
		if (there == NOTHING)
			break;
		for (int i = 0; i < SLOTS; i++)
			if (now[i].is_there && now[i].link == there) {
				struct front *front = pmemobj_direct(kept[i]);
				front->link = OID_NULL;
				pmemobj_persist(pop, front, sizeof *front);
			}
		disappear(there);
		pmemobj_free(&the_root()->slots[there]);
		CHECK(OID_IS_NULL(the_root()->slots[there]));
		break;
	case 6:
		if (there == NOTHING)
			break;
		at = any_range(there, &len);
		scribble(there, at, len);
		pmemobj_memcpy_persist(pop, (char *)pmemobj_direct(kept[there]) + at, now[there].bytes + at, len);
		break;
	default:
		if (there == NOTHING)
			break;
		at = any_range(there, &len);
		memset(now[there].bytes + at, 'm', len);
		pmemobj_memset_persist(pop, (char *)pmemobj_direct(kept[there]) + at, 'm', len);
	}
}

/* ------------------------------------------------------------------------------------------------ transactions */

static void set_slot(int slot, PMEMoid oid)
{
	CHECK(pmemobj_tx_add_range(root, offsetof(struct root, slots) + (size_t)slot * sizeof oid, sizeof oid) == 0);
	the_root()->slots[slot] = oid;
	kept[slot] = oid;
}

static void set_link(int from, int to)
{
	CHECK(pmemobj_tx_add_range(kept[from], 0, sizeof(struct front)) == 0);
	struct front *front = pmemobj_direct(kept[from]);
	front->link = to == NOTHING ? OID_NULL : kept[to];
	now[from].link = to;
}

static void step(void)
{
	int slot = any_free(), there = any_there();
	size_t at, len;
	PMEMoid made;
	switch (below(9)) {
	case 0:
	case 1:
		if (slot == NOTHING)
			break;
		appear(slot, any_size(), (unsigned)below(TYPES));
		set_slot(slot, pmemobj_tx_zalloc(now[slot].size, now[slot].type));
		scribble(slot, sizeof(struct front), now[slot].size - sizeof(struct front));
		/* What the transaction has allocated need not be added. */
		memcpy(pmemobj_direct(kept[slot]), now[slot].bytes, now[slot].size);
		break;
	case 2:
		if (slot == NOTHING)
			break;
		at = 1 + below(90);
		appear(slot, sizeof(struct front) + at + 1, 1);
		memset(now[slot].bytes, 0, sizeof(struct front));
		memset(now[slot].bytes + sizeof(struct front), 's', at);
		made = pmemobj_tx_xalloc(now[slot].size, 1, POBJ_XALLOC_ZERO);
		set_slot(slot, made);
		memcpy((char *)pmemobj_direct(made) + sizeof(struct front), now[slot].bytes + sizeof(struct front), at);
		break;
	case 3:
		if (there == NOTHING)
			break;
		at = any_size();
		if (at > now[there].size)
			memset(now[there].bytes + now[there].size, 0, at - now[there].size);
		now[there].size = at;
		made = pmemobj_tx_zrealloc(kept[there], at, now[there].type);
		set_slot(there, made);
		for (int i = 0; i < SLOTS; i++)
			if (now[i].is_there && now[i].link == there)
				set_link(i, there);
		break;
	case 4:
		if (there == NOTHING)
			break;
		for (int i = 0; i < SLOTS; i++)
			if (now[i].is_there && now[i].link == there && i != there)
				set_link(i, NOTHING);
		disappear(there);
		CHECK(pmemobj_tx_free(kept[there]) == 0);
		set_slot(there, OID_NULL);
		break;
	case 5:
		if (there != NOTHING)
			set_link(there, below(4) == 0 ? NOTHING : any_there());
		break;
	default:
		if (there == NOTHING)
			break;
		at = any_range(there, &len);
		CHECK(pmemobj_tx_add_range(kept[there], at, len) == 0);
		scribble(there, at, len);
		memcpy((char *)pmemobj_direct(kept[there]) + at, now[there].bytes + at, len);
	}
}

static void transaction(void)
{
	memcpy(before, now, sizeof now);
	memcpy(kept_before, kept, sizeof kept);
	volatile int is_nested = below(3) == 0;
	volatile int aborts = (int)below(8);
	TX_BEGIN(pop)
	{
		for (size_t left = 1 + below(5); left > 0; left--)
			step();
		if (is_nested) {
			TX_BEGIN(pop)
			{
				step();
				if (aborts == 0)
					pmemobj_tx_abort(EDOM);
			}
			TX_END
		}
		if (aborts == 1)
			pmemobj_tx_abort(ERANGE);
		int there = any_there();
		/* Beyond the end of an object: refused, which aborts. */
		if (aborts == 2 && there != NOTHING)
			(void)pmemobj_tx_add_range(kept[there], 0, (size_t)1 << 40);
	}
	TX_ONCOMMIT
	{
		/* Nothing to add too much of, or no part to abort in. */
		CHECK(aborts >= 2 || (aborts == 0 && !is_nested));
	}
	TX_ONABORT
	{
		CHECK(aborts <= 2);
		memcpy(now, before, sizeof now);
		memcpy(kept, kept_before, sizeof kept);
	}
	TX_END
}

/* ------------------------------------------------------------------------------------------------------- the same */

static void compare(void)
{
	size_t there = 0, found = 0;
	for (int i = 0; i < SLOTS; i++) {
		PMEMoid oid = the_root()->slots[i];
		if (!now[i].is_there) {
			CHECK(OID_IS_NULL(oid));
			continue;
		}
		there++;
		CHECK(OID_EQUALS(oid, kept[i]) && pmemobj_type_num(oid) == now[i].type);
		CHECK(pmemobj_alloc_usable_size(oid) >= now[i].size);
		const char *object = pmemobj_direct(kept[i]);
		CHECK(object == pmemobj_direct(oid));
		size_t front = sizeof(struct front);
		CHECK(memcmp(object + front, now[i].bytes + front, now[i].size - front) == 0);
		PMEMoid link = ((const struct front *)object)->link;
		if (now[i].link == NOTHING)
			CHECK(OID_IS_NULL(link));
		else
			CHECK(OID_EQUALS(link, kept[now[i].link]));
	}
	for (PMEMoid each = pmemobj_first(pop); !OID_IS_NULL(each); each = pmemobj_next(each))
		found++;
	CHECK(found == there);
}

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	state = strtoull(arguments[2], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
	size_t steps = strtoull(arguments[3], NULL, 10);
	pop = pmemobj_create(arguments[1], "calls", (size_t)256 << 20, 0600);
	CHECK(pop != NULL);
	for (int round = 0; round < 3; round++) {
		root = pmemobj_root(pop, sizeof(struct root));
		for (int i = 0; i < SLOTS; i++)
			kept[i] = the_root()->slots[i];
		compare();
		for (size_t i = 0; i < steps; i++) {
			if (below(2) == 0)
				single();
			else
				transaction();
			if (below(8) == 0)
				CHECK(firn_collect_pool(pop, NULL, NULL) == 0);
			if (below(8) == 0)
				compare();
		}
		compare();
		pmemobj_close(pop);
		CHECK(pmemobj_check(arguments[1], "calls") == 1);
		pop = pmemobj_open(arguments[1], "calls");
		CHECK(pop != NULL);
	}
	pmemobj_close(pop);
	printf("done\n");
	return 0;
}
