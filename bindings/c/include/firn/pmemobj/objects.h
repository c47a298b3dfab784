/*
 * Objects of a pool, their bytes, and libpmemobj's type macros. A part of firn/pmemobj.h, which includes it.
 */
#ifndef FIRN_PMEMOBJ_OBJECTS_H
#define FIRN_PMEMOBJ_OBJECTS_H

#include "../pmemobj.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------------------------------------- objects */

/* A thread's cached facts about the pool in which it has an operation open. */
struct firn_pobj_cache {
	uint64_t pool;
	unsigned char *base;
	/* The last offset while no page is marked; zero otherwise. */
	uint64_t plain;
	/* The last offset. */
	uint64_t last;
	const unsigned char *marks;
};

/* One for each thread, and for each program or library that is linked. */
__attribute__((weak, visibility("hidden"))) __thread struct firn_pobj_cache firn_pobj_here;

void *firn_pobj_direct(uint64_t id, uint64_t at, struct firn_pobj_cache *cache, int to_read) FIRN_POBJ_AS(direct);

/* Whether an offset of that pool is still current: in the pool, in a page that nothing is moved from. Before anything
 * was moved no page has to be looked up. */
static inline int firn_pobj_stays(const struct firn_pobj_cache *here, uint64_t id, uint64_t at)
{
	return FIRN_LIKELY(here->pool == id) &&
	       (FIRN_LIKELY(at - 1 < here->plain) ||
		(FIRN_LIKELY(at - 1 < here->last) && FIRN_LIKELY(here->marks[at >> 12] == 0)));
}

/* From here on an OID is two numbers: passed as one value, a compiler keeps it in memory as well, and a chain of OIDs
 * waits for that store at each step. */
/* The object's bytes; see above for how long the pointer is valid. */
static inline void *pmemobj_direct(PMEMoid oid)
{
	struct firn_pobj_cache *here = &firn_pobj_here;
	uint64_t id = oid.pool_uuid_lo, at = oid.off;
	if (firn_pobj_stays(here, id, at))
		return here->base + at;
	return firn_pobj_direct(id, at, here, 0);
}

/* As above, for reading only: cheaper while objects are being moved. */
static inline const void *firn_pmemobj_direct_ro(PMEMoid oid)
{
	struct firn_pobj_cache *here = &firn_pobj_here;
	uint64_t id = oid.pool_uuid_lo, at = oid.off;
	if (firn_pobj_stays(here, id, at))
		return here->base + at;
	return firn_pobj_direct(id, at, here, 1);
}

/* Whether two OIDs lead to the same byte. */
static inline int firn_oid_equals(PMEMoid a, PMEMoid b)
{
	if (a.off == b.off)
		return a.off == 0 || a.pool_uuid_lo == b.pool_uuid_lo;
	if (a.off == 0 || b.off == 0 || a.pool_uuid_lo != b.pool_uuid_lo)
		return 0;
	return firn_pmemobj_direct_ro(a) == firn_pmemobj_direct_ro(b);
}
#define OID_EQUALS(lhs, rhs) firn_oid_equals((lhs), (rhs))

/* The OID of a byte of a pool. */
PMEMoid pmemobj_oid(const void *addr) FIRN_POBJ_AS(oid);

/* The open pool of an object or a byte; null if there is none. */
PMEMobjpool *pmemobj_pool_by_oid(PMEMoid oid) FIRN_POBJ_AS(pool_by_oid);
PMEMobjpool *pmemobj_pool_by_ptr(const void *addr) FIRN_POBJ_AS(pool_by_ptr);

/* Requested bytes of an object, and its type number; 0 if it is not one. */
size_t pmemobj_alloc_usable_size(PMEMoid oid) FIRN_POBJ_AS(usable_size);
uint64_t pmemobj_type_num(PMEMoid oid) FIRN_POBJ_AS(type_num);

/* The objects of a pool in address order, without the root. */
PMEMoid pmemobj_first(PMEMobjpool *pop) FIRN_POBJ_AS(first);
PMEMoid pmemobj_next(PMEMoid oid) FIRN_POBJ_AS(next);

/* Flags have libpmemobj's values. */
#define POBJ_FLAG_ZERO ((uint64_t)1 << 0)
#define POBJ_FLAG_NO_FLUSH ((uint64_t)1 << 1)
#define POBJ_FLAG_NO_SNAPSHOT ((uint64_t)1 << 2)
#define POBJ_FLAG_ASSUME_INITIALIZED ((uint64_t)1 << 3)
#define POBJ_FLAG_TX_NO_ABORT ((uint64_t)1 << 4)

#define POBJ_XALLOC_ZERO POBJ_FLAG_ZERO
#define POBJ_XALLOC_NO_FLUSH POBJ_FLAG_NO_FLUSH
#define POBJ_XALLOC_NO_ABORT POBJ_FLAG_TX_NO_ABORT
#define POBJ_CLASS_ID(id) ((uint64_t)(id) << 48)
#define POBJ_ARENA_ID(id) ((uint64_t)(id) << 32)
#define POBJ_XALLOC_CLASS_MASK ((uint64_t)0xffff << 48)
#define POBJ_XALLOC_ARENA_MASK ((uint64_t)0xffff << 32)
#define POBJ_TX_XALLOC_VALID_FLAGS                                                                                     \
	(POBJ_XALLOC_ZERO | POBJ_XALLOC_NO_FLUSH | POBJ_XALLOC_NO_ABORT | POBJ_XALLOC_CLASS_MASK |                     \
	 POBJ_XALLOC_ARENA_MASK)
#define POBJ_XALLOC_VALID_FLAGS POBJ_TX_XALLOC_VALID_FLAGS

firn_status firn_pobj_check_flags(PMEMobjpool *pop, uint64_t flags, uint64_t known) FIRN_POBJ_AS(check_flags);

firn_status firn_pobj_alloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num,
			    pmemobj_constr constructor, void *arg) FIRN_POBJ_AS(alloc);
firn_status firn_pobj_realloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num) FIRN_POBJ_AS(realloc);
firn_status firn_pobj_free(PMEMoid *oidp) FIRN_POBJ_AS(free);

/* Allocates an object, runs its constructor, makes it durable and stores its OID, atomically. New bytes are zeros. */
static inline int pmemobj_alloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num,
				pmemobj_constr constructor, void *arg)
{
	return firn_pobj_result(firn_pobj_alloc(pop, oidp, size, type_num, constructor, arg));
}

static inline int pmemobj_xalloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num, uint64_t flags,
				 pmemobj_constr constructor, void *arg)
{
	firn_status status = firn_pobj_check_flags(pop, flags, POBJ_XALLOC_VALID_FLAGS);
	if (status != FIRN_OK)
		return firn_pobj_result(status);
	return pmemobj_alloc(pop, oidp, size, type_num, constructor, arg);
}

static inline int pmemobj_zalloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num)
{
	return pmemobj_alloc(pop, oidp, size, type_num, NULL, NULL);
}

/* Changes the length of an object, which may move it; new bytes are zeros. */
static inline int pmemobj_realloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num)
{
	return firn_pobj_result(firn_pobj_realloc(pop, oidp, size, type_num));
}

static inline int pmemobj_zrealloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num)
{
	return pmemobj_realloc(pop, oidp, size, type_num);
}

/* Frees an object and stores OID_NULL. */
static inline void pmemobj_free(PMEMoid *oidp)
{
	(void)firn_pobj_result(firn_pobj_free(oidp));
}

struct firn_pobj_bytes {
	const void *from;
	size_t len;
};

static inline int firn_pobj_copy(PMEMobjpool *pop, void *ptr, void *arg)
{
	const struct firn_pobj_bytes *bytes = (const struct firn_pobj_bytes *)arg;
	(void)pop;
	memcpy(ptr, bytes->from, bytes->len);
	return 0;
}

static inline int firn_pobj_dup(PMEMobjpool *pop, PMEMoid *oidp, const void *from, size_t len, uint64_t type_num)
{
	struct firn_pobj_bytes bytes = {from, len};
	return pmemobj_alloc(pop, oidp, len, type_num, firn_pobj_copy, &bytes);
}

static inline int pmemobj_strdup(PMEMobjpool *pop, PMEMoid *oidp, const char *s, uint64_t type_num)
{
	if (s == NULL) {
		errno = EINVAL;
		return -1;
	}
	return firn_pobj_dup(pop, oidp, s, strlen(s) + 1, type_num);
}

static inline int pmemobj_wcsdup(PMEMobjpool *pop, PMEMoid *oidp, const wchar_t *s, uint64_t type_num)
{
	if (s == NULL) {
		errno = EINVAL;
		return -1;
	}
	return firn_pobj_dup(pop, oidp, s, (wcslen(s) + 1) * sizeof(wchar_t), type_num);
}

/* --------------------------------------------------------------------------------------------------- memory */

#define PMEMOBJ_F_MEM_NODRAIN (1U << 0)
#define PMEMOBJ_F_MEM_NONTEMPORAL (1U << 1)
#define PMEMOBJ_F_MEM_TEMPORAL (1U << 2)
#define PMEMOBJ_F_MEM_WC (1U << 3)
#define PMEMOBJ_F_MEM_WB (1U << 4)
#define PMEMOBJ_F_MEM_NOFLUSH (1U << 5)
#define PMEMOBJ_F_RELAXED (1U << 31)

firn_status firn_pobj_persist(PMEMobjpool *pop, const void *addr, size_t len) FIRN_POBJ_AS(persist);
firn_status firn_pobj_flush(PMEMobjpool *pop, const void *addr, size_t len) FIRN_POBJ_AS(flush);
firn_status firn_pobj_drain(PMEMobjpool *pop) FIRN_POBJ_AS(drain);
firn_status firn_pobj_memmove(PMEMobjpool *pop, void *dest, const void *src, size_t len, unsigned flags)
	FIRN_POBJ_AS(memmove);
firn_status firn_pobj_memset(PMEMobjpool *pop, void *dest, int c, size_t len, unsigned flags) FIRN_POBJ_AS(memset);

static inline void pmemobj_persist(PMEMobjpool *pop, const void *addr, size_t len)
{
	(void)firn_pobj_persist(pop, addr, len);
}

static inline void pmemobj_flush(PMEMobjpool *pop, const void *addr, size_t len)
{
	(void)firn_pobj_flush(pop, addr, len);
}

static inline void pmemobj_drain(PMEMobjpool *pop)
{
	(void)firn_pobj_drain(pop);
}

static inline int pmemobj_xflush(PMEMobjpool *pop, const void *addr, size_t len, unsigned flags)
{
	(void)flags;
	return firn_pobj_result(firn_pobj_flush(pop, addr, len));
}

static inline int pmemobj_xpersist(PMEMobjpool *pop, const void *addr, size_t len, unsigned flags)
{
	(void)flags;
	return firn_pobj_result(firn_pobj_persist(pop, addr, len));
}

static inline void *pmemobj_memmove(PMEMobjpool *pop, void *dest, const void *src, size_t len, unsigned flags)
{
	(void)firn_pobj_memmove(pop, dest, src, len, flags);
	return dest;
}

static inline void *pmemobj_memcpy(PMEMobjpool *pop, void *dest, const void *src, size_t len, unsigned flags)
{
	return pmemobj_memmove(pop, dest, src, len, flags);
}

static inline void *pmemobj_memset(PMEMobjpool *pop, void *dest, int c, size_t len, unsigned flags)
{
	(void)firn_pobj_memset(pop, dest, c, len, flags);
	return dest;
}

static inline void *pmemobj_memcpy_persist(PMEMobjpool *pop, void *dest, const void *src, size_t len)
{
	return pmemobj_memmove(pop, dest, src, len, 0);
}

static inline void *pmemobj_memset_persist(PMEMobjpool *pop, void *dest, int c, size_t len)
{
	return pmemobj_memset(pop, dest, c, len, 0);
}

/* ---------------------------------------------------------------------------------------------------- types */

#define TOID(t) union _toid_##t##_toid
#define TOID_TYPE_NUM(t) (sizeof(_toid_##t##_toid_type_num) - 1)
/* The number is expanded first: it is __COUNTER__ in a layout. */
#define TOID_DECLARE(t, i) _TOID_DECLARE(t, i)
#define _TOID_DECLARE(t, i)                                                                                            \
	typedef uint8_t _toid_##t##_toid_type_num[(i) + 1];                                                            \
	TOID(t)                                                                                                        \
	{                                                                                                              \
		_TOID_CONSTR(t)                                                                                        \
		PMEMoid oid;                                                                                           \
		t *_type;                                                                                              \
		_toid_##t##_toid_type_num *_type_num;                                                                  \
	}
#define TOID_DECLARE_ROOT(t) _TOID_DECLARE(t, POBJ_ROOT_TYPE_NUM)
#define POBJ_ROOT_TYPE_NUM 0

/* A cast of a PMEMoid to a union is GNU C's; C++ has constructors. */
#ifdef __cplusplus
#define _TOID_CONSTR(t)                                                                                                \
	_toid_##t##_toid() {}                                                                                          \
	_toid_##t##_toid(PMEMoid of) : oid(of) {}
#else
#define _TOID_CONSTR(t)
#endif

/* For `struct node` the names are formed without `struct`. */
#define _toid_struct
#define _toid_union
#define _toid_enum
#define _POBJ_LAYOUT_REF(name) (sizeof(_pobj_layout_##name##_ref))

#define POBJ_LAYOUT_BEGIN(name) typedef uint8_t _pobj_layout_##name##_ref[__COUNTER__ + 1]
/* These include a semicolon, as libpmemobj's do: some programs omit it. */
#define POBJ_LAYOUT_ROOT(name, t) TOID_DECLARE_ROOT(t);
#define POBJ_LAYOUT_TOID(name, t) TOID_DECLARE(t, (__COUNTER__ + 1 - _POBJ_LAYOUT_REF(name)));
#define POBJ_LAYOUT_END(name)                                                                                          \
	typedef char _pobj_layout_##name##_cnt[__COUNTER__ + 1 - _POBJ_LAYOUT_REF(name)];
#define POBJ_LAYOUT_NAME(name) #name
#define POBJ_LAYOUT_TYPES_NUM(name) (sizeof(_pobj_layout_##name##_cnt) - 1)

#define TOID_TYPE_NUM_OF(o) (sizeof(*(o)._type_num) - 1)
#define TOID_TYPEOF(o) __typeof__(*(o)._type)
#define TOID_NULL(t) ((TOID(t))OID_NULL)
#define TOID_ASSIGN(o, value)                                                                                          \
	__extension__({                                                                                                \
		(o).oid = (value);                                                                                     \
		(o);                                                                                                   \
	})
#define TOID_IS_NULL(o) OID_IS_NULL((o).oid)
#define TOID_EQUALS(lhs, rhs) OID_EQUALS((lhs).oid, (rhs).oid)
#define TOID_VALID(o) (TOID_TYPE_NUM_OF(o) == pmemobj_type_num((o).oid))
#define OID_INSTANCEOF(o, t) (TOID_TYPE_NUM(t) == pmemobj_type_num(o))
#define TOID_OFFSETOF(o, field) __builtin_offsetof(TOID_TYPEOF(o), field)

#define DIRECT_RW(o) ((__typeof__(*(o)._type) *)pmemobj_direct((o).oid))
#define DIRECT_RO(o) ((const __typeof__(*(o)._type) *)firn_pmemobj_direct_ro((o).oid))
#define D_RW DIRECT_RW
#define D_RO DIRECT_RO

#define POBJ_ROOT(pop, t) ((TOID(t))pmemobj_root((pop), sizeof(t)))

#define POBJ_NEW(pop, o, t, constr, arg)                                                                               \
	pmemobj_alloc((pop), (PMEMoid *)(o), sizeof(t), TOID_TYPE_NUM(t), (constr), (arg))
#define POBJ_ALLOC(pop, o, t, size, constr, arg)                                                                       \
	pmemobj_alloc((pop), (PMEMoid *)(o), (size), TOID_TYPE_NUM(t), (constr), (arg))
#define POBJ_ZNEW(pop, o, t) pmemobj_zalloc((pop), (PMEMoid *)(o), sizeof(t), TOID_TYPE_NUM(t))
#define POBJ_ZALLOC(pop, o, t, size) pmemobj_zalloc((pop), (PMEMoid *)(o), (size), TOID_TYPE_NUM(t))
#define POBJ_REALLOC(pop, o, t, size) pmemobj_realloc((pop), (PMEMoid *)(o), (size), TOID_TYPE_NUM(t))
#define POBJ_ZREALLOC(pop, o, t, size) pmemobj_zrealloc((pop), (PMEMoid *)(o), (size), TOID_TYPE_NUM(t))
#define POBJ_FREE(o) pmemobj_free((PMEMoid *)(o))

static inline PMEMoid firn_pobj_of_type(PMEMoid oid, uint64_t type_num)
{
	while (!OID_IS_NULL(oid) && pmemobj_type_num(oid) != type_num)
		oid = pmemobj_next(oid);
	return oid;
}

static inline PMEMoid POBJ_FIRST_TYPE_NUM(PMEMobjpool *pop, uint64_t type_num)
{
	return firn_pobj_of_type(pmemobj_first(pop), type_num);
}

static inline PMEMoid POBJ_NEXT_TYPE_NUM(PMEMoid oid)
{
	return firn_pobj_of_type(pmemobj_next(oid), pmemobj_type_num(oid));
}

#define POBJ_FIRST(pop, t) ((TOID(t))POBJ_FIRST_TYPE_NUM((pop), TOID_TYPE_NUM(t)))
#define POBJ_NEXT(o) ((__typeof__(o))POBJ_NEXT_TYPE_NUM((o).oid))
#define POBJ_FOREACH(pop, varoid)                                                                                      \
	for ((varoid) = pmemobj_first(pop); (varoid).off != 0; (varoid) = pmemobj_next(varoid))
#define POBJ_FOREACH_SAFE(pop, varoid, nvaroid)                                                                        \
	for ((varoid) = pmemobj_first(pop); (varoid).off != 0 && ((nvaroid) = pmemobj_next(varoid), 1);                \
	     (varoid) = (nvaroid))
#define POBJ_FOREACH_TYPE(pop, var)                                                                                    \
	for ((var).oid = POBJ_FIRST_TYPE_NUM((pop), TOID_TYPE_NUM_OF(var)); (var).oid.off != 0;                        \
	     (var).oid = POBJ_NEXT_TYPE_NUM((var).oid))
#define POBJ_FOREACH_SAFE_TYPE(pop, var, nvar)                                                                         \
	for ((var).oid = POBJ_FIRST_TYPE_NUM((pop), TOID_TYPE_NUM_OF(var));                                            \
	     (var).oid.off != 0 && ((nvar).oid = POBJ_NEXT_TYPE_NUM((var).oid), 1); (var).oid = (nvar).oid)

#ifdef __cplusplus
}
#endif

#endif /* FIRN_PMEMOBJ_OBJECTS_H */
