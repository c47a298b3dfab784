/*
 * Lengths and offsets at the edges of what numbers hold, in every call that takes one: each is refused with the errno
 * that libpmemobj has for it, inside a transaction that is aborted with it, and whatever was there stays.
 *
 *   edges POOL
 */
#include <libpmemobj.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s, for %s %#zx at %#zx; errno %d, %s\n", __LINE__, #condition,      \
				call, length, offset, errno, pmemobj_errormsg());                                      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { ROOT = 4096, OBJECT = 500, TYPE = 3 };

#define MOST PMEMOBJ_MAX_ALLOC_SIZE
#define HALF ((size_t)1 << 63)
#define WORD ((size_t)1 << 32)

/* Too long for any object of a pool of this size. */
static const size_t lengths[] = {
	MOST - 17, MOST - 16, MOST - 8, MOST - 7, MOST - 1, MOST, MOST + 1, MOST + 8, WORD / 2 - 1, WORD / 2, WORD - 17,
	WORD - 16, WORD - 8, WORD - 1, WORD, WORD + 1, WORD + 16, HALF - 17, HALF - 16, HALF - 8, HALF - 1, HALF, HALF + 1,
	SIZE_MAX - 4096, SIZE_MAX - 4095, SIZE_MAX - 64, SIZE_MAX - 17, SIZE_MAX - 16, SIZE_MAX - 15, SIZE_MAX - 14,
	SIZE_MAX - 13, SIZE_MAX - 12, SIZE_MAX - 11, SIZE_MAX - 10, SIZE_MAX - 9, SIZE_MAX - 8, SIZE_MAX - 7, SIZE_MAX - 6,
	SIZE_MAX - 5, SIZE_MAX - 4, SIZE_MAX - 3, SIZE_MAX - 2, SIZE_MAX - 1, SIZE_MAX,
};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static PMEMobjpool *pop;
static PMEMoid root, object;
/* What is being tried. */
static const char *call = "nothing";
static size_t length, offset;
static unsigned char content[ROOT];

/* Everything is as it was, and the pool is good for another transaction. */
static void check_all(void)
{
	int done = 0;
	CHECK(pmemobj_root_size(pop) == ROOT);
	CHECK(memcmp(pmemobj_direct(root), content, ROOT) == 0);
	CHECK(memcmp(pmemobj_direct(object), content, OBJECT) == 0);
	CHECK(pmemobj_tx_stage() == TX_STAGE_NONE);
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range(root, 8, 8);
	}
	TX_ONCOMMIT
	{
		done = 1;
	}
	TX_END
	CHECK(done);
}

/* A call by itself: it returned `failed`. */
static void single(const char *name, int failed, int expected)
{
	call = name;
	CHECK(failed);
	CHECK(errno == expected);
	errno = 0;
}

static void calls_of_length(void)
{
	PMEMoid oid = {7, 0x77};
	errno = 0;
	single("root", OID_IS_NULL(pmemobj_root(pop, length)), ENOMEM);
	single("root_construct", OID_IS_NULL(pmemobj_root_construct(pop, length, NULL, NULL)), ENOMEM);
	single("alloc", pmemobj_alloc(pop, &oid, length, TYPE, NULL, NULL) == -1, ENOMEM);
	single("alloc nowhere", pmemobj_alloc(pop, NULL, length, TYPE, NULL, NULL) == -1, ENOMEM);
	single("xalloc", pmemobj_xalloc(pop, &oid, length, TYPE, POBJ_XALLOC_ZERO, NULL, NULL) == -1, ENOMEM);
	single("zalloc", pmemobj_zalloc(pop, &oid, length, TYPE) == -1, ENOMEM);
	CHECK(oid.pool_uuid_lo == 7 && oid.off == 0x77);
	oid = object;
	single("realloc", pmemobj_realloc(pop, &oid, length, TYPE) == -1, ENOMEM);
	single("zrealloc", pmemobj_zrealloc(pop, &oid, length, TYPE) == -1, ENOMEM);
	CHECK(oid.off == object.off);
	oid = OID_NULL;
	single("realloc of nothing", pmemobj_realloc(pop, &oid, length, TYPE) == -1, ENOMEM);
	CHECK(OID_IS_NULL(oid));
	check_all();
}

enum in_transaction { ALLOC, ZALLOC, XALLOC, REALLOC, ZREALLOC, REALLOC_NOTHING, ADD, ADD_DIRECT, NOTE, NOTE_DIRECT, CALLS };
static const char *const names[] = {"tx_alloc", "tx_zalloc", "tx_xalloc", "tx_realloc", "tx_zrealloc",
				    "tx_realloc of nothing", "tx_add_range", "tx_add_range_direct",
				    "tx_xadd_range", "tx_xadd_range_direct"};

static void in_transaction(enum in_transaction what)
{
	switch (what) {
	case ALLOC:
		pmemobj_tx_alloc(length, TYPE);
		break;
	case ZALLOC:
		pmemobj_tx_zalloc(length, TYPE);
		break;
	case XALLOC:
		pmemobj_tx_xalloc(length, TYPE, POBJ_XALLOC_ZERO);
		break;
	case REALLOC:
		pmemobj_tx_realloc(object, length, TYPE);
		break;
	case ZREALLOC:
		pmemobj_tx_zrealloc(object, length, TYPE);
		break;
	case REALLOC_NOTHING:
		pmemobj_tx_realloc(OID_NULL, length, TYPE);
		break;
	case ADD:
		pmemobj_tx_add_range(object, offset, length);
		break;
	case ADD_DIRECT:
		pmemobj_tx_add_range_direct((char *)pmemobj_direct(object) + offset, length);
		break;
	case NOTE:
		pmemobj_tx_xadd_range(object, offset, length, POBJ_XADD_NO_SNAPSHOT);
		break;
	default:
		pmemobj_tx_xadd_range_direct((char *)pmemobj_direct(object) + offset, length, POBJ_XADD_NO_SNAPSHOT);
	}
}

/* The call aborts the transaction, which restores what was changed before. */
static void aborts(enum in_transaction what, int expected)
{
	volatile int aborted = 0, went_on = 0, failed;
	call = names[what];
	errno = 0;
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range(root, 16, 3);
		memset((char *)pmemobj_direct(root) + 16, 0xee, 3);
		in_transaction(what);
		went_on = 1;
	}
	TX_ONABORT
	{
		aborted = 1;
		CHECK(errno == expected);
		CHECK(pmemobj_tx_errno() == expected);
	}
	TX_END
	failed = errno;
	CHECK(aborted && !went_on);
	CHECK(failed == expected);
	check_all();
}

/* With the flag that says so the transaction goes on. */
static void goes_on(void)
{
	volatile int committed = 0;
	call = "with NO_ABORT";
	TX_BEGIN(pop)
	{
		CHECK(OID_IS_NULL(pmemobj_tx_xalloc(length, TYPE, POBJ_XALLOC_NO_ABORT)));
		CHECK(errno == ENOMEM);
		CHECK(pmemobj_tx_xadd_range(object, 16, length, POBJ_XADD_NO_ABORT) == EINVAL);
		CHECK(pmemobj_tx_xadd_range_direct((char *)pmemobj_direct(object) + 16, length, POBJ_XADD_NO_ABORT) ==
		      EINVAL);
		CHECK(pmemobj_tx_stage() == TX_STAGE_WORK);
	}
	TX_ONCOMMIT
	{
		committed = 1;
	}
	TX_END
	CHECK(committed);
	check_all();
}

static void ranges(void)
{
	static const size_t offsets[] = {0, 1, 7, 8, 16, OBJECT - 1, OBJECT};
	size_t i;
	for (i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
		offset = offsets[i];
		aborts(ADD, EINVAL);
		aborts(NOTE, EINVAL);
#ifdef FIRN_PMEMOBJ_H
		/* libpmemobj looks at where a range begins by address and takes what it comes to behind the pool. */
		aborts(ADD_DIRECT, EINVAL);
		aborts(NOTE_DIRECT, EINVAL);
#endif
	}
	offset = 0;
}

/* Offsets that lead out of the pool. */
static void offsets_beyond(void)
{
	static const size_t few[] = {1, 8, OBJECT, 4096};
	size_t i, j;
	for (i = 0; i < LENGTHS; i++)
		for (j = 0; j < sizeof few / sizeof few[0]; j++) {
			offset = lengths[i];
			length = few[j];
#ifndef FIRN_PMEMOBJ_H
			/* Which libpmemobj adds up to something in the pool. */
			if (offset > HALF)
				continue;
#endif
			aborts(ADD, EINVAL);
			aborts(NOTE, EINVAL);
		}
	offset = 0;
}

/* Nothing, and the first length that is something. */
static void shortest(void)
{
	PMEMoid oid = {7, 0x77};
	volatile int committed = 0;
	length = 0;
	CHECK(!OID_IS_NULL(pmemobj_root(pop, 0)));
	single("alloc", pmemobj_alloc(pop, &oid, 0, TYPE, NULL, NULL) == -1, EINVAL);
	single("zalloc", pmemobj_zalloc(pop, &oid, 0, TYPE) == -1, EINVAL);
	CHECK(oid.off == 0x77);
	aborts(ALLOC, EINVAL);
	aborts(ZALLOC, EINVAL);
	aborts(XALLOC, EINVAL);
	length = 1;
	CHECK(!OID_IS_NULL(pmemobj_root(pop, 1)));
	CHECK(pmemobj_alloc(pop, &oid, 1, TYPE, NULL, NULL) == 0);
	CHECK(pmemobj_realloc(pop, &oid, 2, TYPE) == 0);
	CHECK(pmemobj_realloc(pop, &oid, 0, TYPE) == 0 && OID_IS_NULL(oid));
	TX_BEGIN(pop)
	{
		oid = pmemobj_tx_alloc(1, TYPE);
		*(char *)pmemobj_direct(oid) = 5;
		oid = pmemobj_tx_realloc(oid, 3, TYPE);
		CHECK(*(char *)pmemobj_direct(oid) == 5);
		oid = pmemobj_tx_realloc(oid, 0, TYPE);
		CHECK(OID_IS_NULL(oid));
		CHECK(pmemobj_tx_add_range(object, OBJECT - 1, 1) == 0);
		CHECK(pmemobj_tx_add_range(object, 0, OBJECT) == 0);
	}
	TX_ONCOMMIT
	{
		committed = 1;
	}
	TX_END
	CHECK(committed);
	check_all();
}

#ifdef FIRN_PMEMOBJ_H
/* What libpmemobj does not look at, and would store to whatever lies there. */
static void memory(void)
{
	static const size_t from[] = {0, 1, 7, 8, OBJECT};
	size_t i;
	for (i = 0; i < sizeof from / sizeof from[0]; i++) {
		char *at = (char *)pmemobj_direct(object) + from[i];
		offset = from[i];
		call = "memory";
		single("xflush", pmemobj_xflush(pop, at, length, 0) == -1, EINVAL);
		single("xpersist", pmemobj_xpersist(pop, at, length, 0) == -1, EINVAL);
		pmemobj_persist(pop, at, length);
		pmemobj_flush(pop, at, length);
		CHECK(pmemobj_memset(pop, at, 9, length, 0) == at);
		CHECK(pmemobj_memset_persist(pop, at, 9, length) == at);
		CHECK(pmemobj_memcpy(pop, at, content, length, 0) == at);
		CHECK(pmemobj_memcpy_persist(pop, at, content, length) == at);
		CHECK(pmemobj_memmove(pop, at, content, length, PMEMOBJ_F_MEM_NOFLUSH) == at);
	}
	offset = 0;
	check_all();
}

/* OIDs that a program has made up, and pointers behind everything. */
static void made_up(void)
{
	size_t i;
	length = 8;
	for (i = 0; i < LENGTHS; i++) {
		PMEMoid oid = {object.pool_uuid_lo, lengths[i]};
		int step;
		offset = lengths[i];
		call = "an OID made up";
		for (step = 0; step < 2; step++, oid.off = object.off + lengths[i]) {
			if (oid.off - object.off < OBJECT)
				continue;
			CHECK(pmemobj_alloc_usable_size(oid) == 0);
			pmemobj_type_num(oid);
			pmemobj_direct(oid);
			pmemobj_pool_by_ptr((void *)(uintptr_t)oid.off);
			CHECK(pmemobj_realloc(pop, &oid, 8, TYPE) == -1);
			pmemobj_free(&oid);
			CHECK(oid.off != 0);
		}
	}
	offset = 0;
	check_all();
}
#endif

int main(int argc, char **argv)
{
	size_t i;
	pop = argc > 1 ? pmemobj_create(argv[1], "edges", 32 << 20, 0600) : NULL;
	CHECK(pop != NULL);
	for (i = 0; i < ROOT; i++)
		content[i] = (unsigned char)(i * 7 + 1);
	root = pmemobj_root(pop, ROOT);
	pmemobj_memcpy_persist(pop, pmemobj_direct(root), content, ROOT);
	CHECK(pmemobj_alloc(pop, &object, OBJECT, TYPE, NULL, NULL) == 0);
	pmemobj_memcpy_persist(pop, pmemobj_direct(object), content, OBJECT);
	shortest();
	for (i = 0; i < LENGTHS; i++) {
		enum in_transaction what;
		length = lengths[i];
		calls_of_length();
		for (what = ALLOC; what < ADD; what++)
			aborts(what, ENOMEM);
		ranges();
		goes_on();
#ifdef FIRN_PMEMOBJ_H
		memory();
#endif
	}
	offsets_beyond();
#ifdef FIRN_PMEMOBJ_H
	made_up();
#endif
	pmemobj_close(pop);
	pop = pmemobj_open(argv[1], "edges");
	CHECK(pop != NULL);
	root = pmemobj_root(pop, ROOT);
	CHECK(memcmp(pmemobj_direct(root), content, ROOT) == 0);
	pmemobj_close(pop);
	CHECK(pmemobj_check(argv[1], "edges") == 1);
	printf("done\n");
	return 0;
}
