/*
 * Firn for programs that were written for libpmemobj: recompiled with another include path and link line, they run
 * as they are, and their pools are defragmented while they run.
 *
 * What holds:
 *
 *   An OID is valid wherever it is kept, in the pool or in a variable of the program, until its object is freed.
 *   Objects are moved; OIDs in the pool are changed to what is new, all others go on to lead there. Two OIDs of one
 *   object may therefore differ: OID_EQUALS and TOID_EQUALS compare what they lead to.
 *
 *   References are found without annotation: wherever an object holds a pool's id and, in the next word, an offset
 *   into an allocated object, its middle included, that is a reference. An offset that is kept without the id is not
 *   found; an OID made of it again is valid all the same until the pool is closed.
 *
 *   A pointer (D_RW, D_RO, pmemobj_direct) is valid until the thread's outermost transaction ends, or the thread calls
 *   firn_safepoint. A program that does neither is never moved under. Pointers that are kept across such a point have
 *   to be taken anew.
 *
 *   The root object never moves, nor do objects of types that firn_pin_type names.
 *
 *   Offsets that were left are not used again before the pool is closed, and the table that leads on from them is
 *   kept: for each 4 KiB that were emptied 64 bytes of the pool and about 100 of memory. firn_forget_oids gives both
 *   back, for a program that has no OIDs outside the pool.
 *
 * A pool is collected by itself, as FFCCD's (section 5): above a ratio of 1.5 of pages to objects, down to 1.25.
 * The environment variable FIRN_COLLECT=0, or firn_collecting, turns that off. FIRN_ASSUME_PERSISTENT=adr, or eadr,
 * has pools flushed as on persistent memory wherever they lie, to measure. To find pointers that are kept too long,
 * FIRN_COLLECT=safepoints moves everything at every such point, and FIRN_GUARD=1, as debug builds of the library do by
 * themselves, stops the program when it uses memory that an object has left, and says which type the object has.
 *
 * What is missing is listed in docs/pmemobj.md. Pools of libpmemobj's are not read. Needs GCC or Clang.
 */
#ifndef FIRN_PMEMOBJ_H
#define FIRN_PMEMOBJ_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <wchar.h>

#include "../firn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PMEMOBJ_MAJOR_VERSION 2
#define PMEMOBJ_MINOR_VERSION 4
#define PMEMOBJ_MIN_POOL ((size_t)(1024 * 1024 * 8))
#define PMEMOBJ_MIN_PART ((size_t)(1024 * 1024 * 2))
#define PMEMOBJ_MAX_ALLOC_SIZE ((size_t)0x3FFDFFFC0)
#define PMEMOBJ_MAX_LAYOUT ((size_t)64)
#define PMEM_CACHELINE_SIZE 64

/* The library's functions have names of their own, so that a program may be linked with both. */
#define FIRN_POBJ_AS(name) __asm__("firn_pmemobj_" #name)

typedef struct pmemobjpool PMEMobjpool;

typedef struct pmemoid {
	uint64_t pool_uuid_lo;
	uint64_t off;
} PMEMoid;

static const PMEMoid OID_NULL __attribute__((unused)) = {0, 0};
#define OID_IS_NULL(o) ((o).off == 0)

/* ------------------------------------------------------------------------------------------------ failures */

const char *firn_pmemobj_message(void) __asm__("firn_last_message");
int firn_pobj_errno(void) FIRN_POBJ_AS(errno);

/* What went wrong last in this thread; "" if nothing did. */
static inline const char *pmemobj_errormsg(void)
{
	return firn_pmemobj_message();
}

/* Zero, or minus one with errno. */
static inline int firn_pobj_result(firn_status status)
{
	if (status == FIRN_OK)
		return 0;
	errno = firn_pobj_errno();
	return -1;
}

static inline const char *pmemobj_check_version(unsigned major, unsigned minor)
{
	return major == PMEMOBJ_MAJOR_VERSION && minor <= PMEMOBJ_MINOR_VERSION ? NULL : "another version is wanted";
}

/* --------------------------------------------------------------------------------------------------- pools */

typedef int (*pmemobj_constr)(PMEMobjpool *pop, void *ptr, void *arg);

PMEMobjpool *firn_pobj_create(const char *path, const char *layout, size_t poolsize, unsigned mode)
	FIRN_POBJ_AS(create);
PMEMobjpool *firn_pobj_open(const char *path, const char *layout) FIRN_POBJ_AS(open);
int firn_pobj_check(const char *path, const char *layout) FIRN_POBJ_AS(check);
PMEMoid firn_pobj_root(PMEMobjpool *pop, size_t size, pmemobj_constr constructor, void *arg) FIRN_POBJ_AS(root);

/* Closes a pool that no thread has a transaction open in. */
void pmemobj_close(PMEMobjpool *pop) FIRN_POBJ_AS(close);

/* Bytes of the root object, 0 while there is none. */
size_t pmemobj_root_size(PMEMobjpool *pop) FIRN_POBJ_AS(root_size);

/* A word of the program's that goes with an open pool. */
void pmemobj_set_user_data(PMEMobjpool *pop, void *data) FIRN_POBJ_AS(set_user_data);
void *pmemobj_get_user_data(PMEMobjpool *pop) FIRN_POBJ_AS(get_user_data);

/* Makes a pool in a new file, which may grow to poolsize. */
static inline PMEMobjpool *pmemobj_create(const char *path, const char *layout, size_t poolsize, mode_t mode)
{
	PMEMobjpool *pop = firn_pobj_create(path, layout, poolsize, (unsigned)mode);
	if (pop == NULL)
		errno = firn_pobj_errno();
	return pop;
}

static inline PMEMobjpool *pmemobj_open(const char *path, const char *layout)
{
	PMEMobjpool *pop = firn_pobj_open(path, layout);
	if (pop == NULL)
		errno = firn_pobj_errno();
	return pop;
}

/* 1 if the pool is sound, 0 if not, -1 if that cannot be found out. */
static inline int pmemobj_check(const char *path, const char *layout)
{
	int result = firn_pobj_check(path, layout);
	if (result < 0)
		errno = firn_pobj_errno();
	return result;
}

static inline PMEMoid pmemobj_root_construct(PMEMobjpool *pop, size_t size, pmemobj_constr constructor, void *arg)
{
	PMEMoid oid = firn_pobj_root(pop, size, constructor, arg);
	if (OID_IS_NULL(oid))
		errno = firn_pobj_errno();
	return oid;
}

static inline PMEMoid pmemobj_root(PMEMobjpool *pop, size_t size)
{
	return pmemobj_root_construct(pop, size, NULL, NULL);
}

/* -------------------------------------------------------------------------------------------------- objects */

/* What a thread knows of the pool that it is inside of. */
struct firn_pobj_cache {
	uint64_t pool;
	unsigned char *base;
	uint64_t mask;
	const unsigned char *marks;
};

/* One for each thread, and for each program or library that is linked. */
__attribute__((weak, visibility("hidden"))) __thread struct firn_pobj_cache firn_pobj_here;

void *firn_pobj_direct(PMEMoid oid, struct firn_pobj_cache *cache, int to_read) FIRN_POBJ_AS(direct);

/* The object's bytes; valid as said above. */
static inline void *pmemobj_direct(PMEMoid oid)
{
	struct firn_pobj_cache *here = &firn_pobj_here;
	uint64_t at = oid.off & here->mask;
	if (FIRN_LIKELY(here->pool == oid.pool_uuid_lo && oid.off != 0) && FIRN_LIKELY(here->marks[at >> 12] == 0))
		return here->base + at;
	return firn_pobj_direct(oid, here, 0);
}

/* The same, for reading only: while objects are being moved it costs less. */
static inline const void *firn_pmemobj_direct_ro(PMEMoid oid)
{
	struct firn_pobj_cache *here = &firn_pobj_here;
	uint64_t at = oid.off & here->mask;
	if (FIRN_LIKELY(here->pool == oid.pool_uuid_lo && oid.off != 0) && FIRN_LIKELY(here->marks[at >> 12] == 0))
		return here->base + at;
	return firn_pobj_direct(oid, here, 1);
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

/* The open pool of an object, or of a byte; null if there is none. */
PMEMobjpool *pmemobj_pool_by_oid(PMEMoid oid) FIRN_POBJ_AS(pool_by_oid);
PMEMobjpool *pmemobj_pool_by_ptr(const void *addr) FIRN_POBJ_AS(pool_by_ptr);

/* Bytes of an object, as many as were asked for, and the number of its type; 0 if it is none. */
size_t pmemobj_alloc_usable_size(PMEMoid oid) FIRN_POBJ_AS(usable_size);
uint64_t pmemobj_type_num(PMEMoid oid) FIRN_POBJ_AS(type_num);

/* The objects of a pool by address, the root left out. */
PMEMoid pmemobj_first(PMEMobjpool *pop) FIRN_POBJ_AS(first);
PMEMoid pmemobj_next(PMEMoid oid) FIRN_POBJ_AS(next);

#define POBJ_XALLOC_ZERO ((uint64_t)1)
#define POBJ_XALLOC_NO_FLUSH ((uint64_t)2)
#define POBJ_XALLOC_NO_ABORT ((uint64_t)8)
#define POBJ_CLASS_ID(id) ((uint64_t)(id) << 48)

firn_status firn_pobj_alloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num,
			    pmemobj_constr constructor, void *arg) FIRN_POBJ_AS(alloc);
firn_status firn_pobj_realloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num) FIRN_POBJ_AS(realloc);
firn_status firn_pobj_free(PMEMoid *oidp) FIRN_POBJ_AS(free);

/* Allocates, has the object filled, makes it durable and stores its OID: all of it or nothing. New bytes are zeros. */
static inline int pmemobj_alloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num,
				pmemobj_constr constructor, void *arg)
{
	return firn_pobj_result(firn_pobj_alloc(pop, oidp, size, type_num, constructor, arg));
}

static inline int pmemobj_xalloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num, uint64_t flags,
				 pmemobj_constr constructor, void *arg)
{
	(void)flags;
	return pmemobj_alloc(pop, oidp, size, type_num, constructor, arg);
}

static inline int pmemobj_zalloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num)
{
	return pmemobj_alloc(pop, oidp, size, type_num, NULL, NULL);
}

/* Another length for an object, which may then be elsewhere; what is new of it is zeros. */
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
#define PMEMOBJ_F_MEM_NOFLUSH (1U << 3)
#define PMEMOBJ_F_MEM_WC (1U << 4)
#define PMEMOBJ_F_MEM_WB (1U << 5)
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
#define TOID_DECLARE(t, i)                                                                                             \
	typedef uint8_t _toid_##t##_toid_type_num[(i) + 1];                                                            \
	TOID(t)                                                                                                        \
	{                                                                                                              \
		PMEMoid oid;                                                                                           \
		t *_type;                                                                                              \
		_toid_##t##_toid_type_num *_type_num;                                                                  \
	}
#define TOID_DECLARE_ROOT(t) TOID_DECLARE(t, POBJ_ROOT_TYPE_NUM)
#define POBJ_ROOT_TYPE_NUM 0

/* Of `struct node` the names are made without `struct`. */
#define _toid_struct
#define _toid_union
#define _toid_enum
#define _POBJ_LAYOUT_REF(name) (sizeof(_pobj_layout_##name##_ref))

#define POBJ_LAYOUT_BEGIN(name) typedef uint8_t _pobj_layout_##name##_ref[__COUNTER__ + 1]
#define POBJ_LAYOUT_ROOT(name, t) TOID_DECLARE_ROOT(t)
#define POBJ_LAYOUT_TOID(name, t) TOID_DECLARE(t, (__COUNTER__ + 1 - _POBJ_LAYOUT_REF(name)))
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

/* ---------------------------------------------------------------------------------------------------- locks */

/* Volatile locks in persistent memory: zeros are a lock that nobody holds, and so is what another process left. */
typedef union {
	uint64_t align;
	char padding[64];
} PMEMmutex;
typedef PMEMmutex PMEMrwlock;
typedef PMEMmutex PMEMcond;

void *firn_pobj_lock(PMEMobjpool *pop, void *lock) FIRN_POBJ_AS(lock);
void firn_pobj_lock_zero(PMEMobjpool *pop, void *lock) FIRN_POBJ_AS(lock_zero);

#define FIRN_POBJ_ON(system, pop, lock, call)                                                                          \
	system *volatile_lock_ = (system *)firn_pobj_lock((pop), (lock));                                              \
	if (volatile_lock_ == NULL)                                                                                    \
		return EINVAL;                                                                                         \
	return call

static inline void pmemobj_mutex_zero(PMEMobjpool *pop, PMEMmutex *lock)
{
	firn_pobj_lock_zero(pop, lock);
}

static inline int pmemobj_mutex_lock(PMEMobjpool *pop, PMEMmutex *lock)
{
	FIRN_POBJ_ON(pthread_mutex_t, pop, lock, pthread_mutex_lock(volatile_lock_));
}

static inline int pmemobj_mutex_timedlock(PMEMobjpool *pop, PMEMmutex *lock, const struct timespec *until)
{
	FIRN_POBJ_ON(pthread_mutex_t, pop, lock, pthread_mutex_timedlock(volatile_lock_, until));
}

static inline int pmemobj_mutex_trylock(PMEMobjpool *pop, PMEMmutex *lock)
{
	FIRN_POBJ_ON(pthread_mutex_t, pop, lock, pthread_mutex_trylock(volatile_lock_));
}

static inline int pmemobj_mutex_unlock(PMEMobjpool *pop, PMEMmutex *lock)
{
	FIRN_POBJ_ON(pthread_mutex_t, pop, lock, pthread_mutex_unlock(volatile_lock_));
}

static inline int pmemobj_mutex_assert_locked(PMEMobjpool *pop, PMEMmutex *lock)
{
	int taken = pmemobj_mutex_trylock(pop, lock);
	if (taken == EBUSY)
		return 0;
	if (taken == 0)
		(void)pmemobj_mutex_unlock(pop, lock);
	return taken == 0 ? ENODEV : taken;
}

static inline void pmemobj_rwlock_zero(PMEMobjpool *pop, PMEMrwlock *lock)
{
	firn_pobj_lock_zero(pop, lock);
}

static inline int pmemobj_rwlock_rdlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_rdlock(volatile_lock_));
}

static inline int pmemobj_rwlock_wrlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_wrlock(volatile_lock_));
}

static inline int pmemobj_rwlock_timedrdlock(PMEMobjpool *pop, PMEMrwlock *lock, const struct timespec *until)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_timedrdlock(volatile_lock_, until));
}

static inline int pmemobj_rwlock_timedwrlock(PMEMobjpool *pop, PMEMrwlock *lock, const struct timespec *until)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_timedwrlock(volatile_lock_, until));
}

static inline int pmemobj_rwlock_tryrdlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_tryrdlock(volatile_lock_));
}

static inline int pmemobj_rwlock_trywrlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_trywrlock(volatile_lock_));
}

static inline int pmemobj_rwlock_unlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pthread_rwlock_t, pop, lock, pthread_rwlock_unlock(volatile_lock_));
}

static inline void pmemobj_cond_zero(PMEMobjpool *pop, PMEMcond *cond)
{
	firn_pobj_lock_zero(pop, cond);
}

static inline int pmemobj_cond_signal(PMEMobjpool *pop, PMEMcond *cond)
{
	FIRN_POBJ_ON(pthread_cond_t, pop, cond, pthread_cond_signal(volatile_lock_));
}

static inline int pmemobj_cond_broadcast(PMEMobjpool *pop, PMEMcond *cond)
{
	FIRN_POBJ_ON(pthread_cond_t, pop, cond, pthread_cond_broadcast(volatile_lock_));
}

static inline int pmemobj_cond_wait(PMEMobjpool *pop, PMEMcond *cond, PMEMmutex *lock)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)firn_pobj_lock(pop, lock);
	if (mutex == NULL)
		return EINVAL;
	FIRN_POBJ_ON(pthread_cond_t, pop, cond, pthread_cond_wait(volatile_lock_, mutex));
}

static inline int pmemobj_cond_timedwait(PMEMobjpool *pop, PMEMcond *cond, PMEMmutex *lock,
					 const struct timespec *until)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)firn_pobj_lock(pop, lock);
	if (mutex == NULL)
		return EINVAL;
	FIRN_POBJ_ON(pthread_cond_t, pop, cond, pthread_cond_timedwait(volatile_lock_, mutex, until));
}

/* ---------------------------------------------------------------------------------------------- transactions */

enum pobj_tx_stage {
	TX_STAGE_NONE,
	TX_STAGE_WORK,
	TX_STAGE_ONCOMMIT,
	TX_STAGE_ONABORT,
	TX_STAGE_FINALLY,
	MAX_TX_STAGE
};

enum pobj_tx_param { TX_PARAM_NONE, TX_PARAM_MUTEX, TX_PARAM_RWLOCK, TX_PARAM_CB };

typedef void (*pmemobj_tx_callback)(PMEMobjpool *pop, enum pobj_tx_stage stage, void *arg);

#define POBJ_XADD_NO_FLUSH ((uint64_t)2)
#define POBJ_XADD_NO_SNAPSHOT ((uint64_t)4)
#define POBJ_XADD_ASSUME_INITIALIZED ((uint64_t)16)
#define POBJ_XADD_NO_ABORT ((uint64_t)8)
#define POBJ_XLOCK_NO_ABORT ((uint64_t)8)
#define POBJ_XFREE_NO_ABORT ((uint64_t)8)

int firn_pobj_tx_begin(PMEMobjpool *pop, void *environment, pmemobj_tx_callback callback, void *arg)
	FIRN_POBJ_AS(tx_begin);
int firn_pobj_tx_keep_lock(void *lock, void (*unlock)(void *)) FIRN_POBJ_AS(tx_keep_lock);
int firn_pobj_tx_holds(void *lock) FIRN_POBJ_AS(tx_holds);
void *firn_pobj_tx_environment(void) FIRN_POBJ_AS(tx_environment);
void firn_pobj_tx_abort(int errnum) FIRN_POBJ_AS(tx_abort);
int firn_pobj_tx_end(void) FIRN_POBJ_AS(tx_end);
void firn_pobj_tx_next_stage(void) FIRN_POBJ_AS(tx_next_stage);
int firn_pobj_tx_add_range(PMEMoid oid, uint64_t off, size_t size, uint64_t flags) FIRN_POBJ_AS(tx_add_range);
int firn_pobj_tx_add_direct(const void *ptr, size_t size, uint64_t flags) FIRN_POBJ_AS(tx_add_direct);
PMEMoid firn_pobj_tx_alloc(size_t size, uint64_t type_num, const void *from, size_t len) FIRN_POBJ_AS(tx_alloc);
PMEMoid firn_pobj_tx_realloc(PMEMoid oid, size_t size, uint64_t type_num) FIRN_POBJ_AS(tx_realloc);
int firn_pobj_tx_free(PMEMoid oid) FIRN_POBJ_AS(tx_free);

enum pobj_tx_stage pmemobj_tx_stage(void) FIRN_POBJ_AS(tx_stage);
int pmemobj_tx_errno(void) FIRN_POBJ_AS(tx_errno);
void pmemobj_tx_commit(void) FIRN_POBJ_AS(tx_commit);

/* Aborts the innermost transaction, and goes to its stage ONABORT. */
static inline void pmemobj_tx_abort(int errnum)
{
	jmp_buf *environment = (jmp_buf *)firn_pobj_tx_environment();
	int is_at_work = pmemobj_tx_stage() == TX_STAGE_WORK;
	firn_pobj_tx_abort(errnum);
	if (is_at_work && environment != NULL)
		longjmp(*environment, 1);
}

/* A call failed: the transaction is aborted unless the flags say that it goes on. */
static inline int firn_pobj_tx_result(int failed, uint64_t flags)
{
	if (failed != 0) {
		errno = failed;
		if ((flags & POBJ_XADD_NO_ABORT) == 0)
			pmemobj_tx_abort(failed);
	}
	return failed;
}

static inline PMEMoid firn_pobj_tx_object(PMEMoid oid, uint64_t flags)
{
	if (OID_IS_NULL(oid))
		(void)firn_pobj_tx_result(firn_pobj_errno(), flags);
	return oid;
}

static inline void firn_pobj_unlock_mutex(void *lock)
{
	(void)pthread_mutex_unlock((pthread_mutex_t *)lock);
}

static inline void firn_pobj_unlock_rwlock(void *lock)
{
	(void)pthread_rwlock_unlock((pthread_rwlock_t *)lock);
}

/* Takes a lock until the outermost transaction ends. */
static inline int firn_pobj_tx_take(PMEMobjpool *pop, enum pobj_tx_param type, void *lockp)
{
	void *lock = firn_pobj_lock(pop, lockp);
	int failed;
	if (lock == NULL)
		return EINVAL;
	if (firn_pobj_tx_holds(lock))
		return 0;
	failed = type == TX_PARAM_MUTEX ? pthread_mutex_lock((pthread_mutex_t *)lock)
					: pthread_rwlock_wrlock((pthread_rwlock_t *)lock);
	if (failed == 0)
		failed = firn_pobj_tx_keep_lock(lock, type == TX_PARAM_MUTEX ? firn_pobj_unlock_mutex
									       : firn_pobj_unlock_rwlock);
	return failed;
}

static inline int pmemobj_tx_xlock(enum pobj_tx_param type, void *lockp, uint64_t flags)
{
	PMEMobjpool *pop = pmemobj_pool_by_ptr(lockp);
	return firn_pobj_tx_result(pop == NULL ? EINVAL : firn_pobj_tx_take(pop, type, lockp), flags);
}

static inline int pmemobj_tx_lock(enum pobj_tx_param type, void *lockp)
{
	return pmemobj_tx_xlock(type, lockp, 0);
}

/* Begins a transaction, or a part of the one that is open. The arguments behind `environment` are parameters, each with
 * what belongs to it, then TX_PARAM_NONE. Returns an errno. */
__attribute__((unused)) static int pmemobj_tx_begin(PMEMobjpool *pop, jmp_buf environment, ...)
{
	pmemobj_tx_callback callback = NULL;
	void *arg = NULL;
	enum pobj_tx_param types[16];
	void *locks[16];
	size_t count = 0, i;
	int failed = 0;
	enum pobj_tx_param type;
	va_list params;

	va_start(params, environment);
	while ((type = (enum pobj_tx_param)va_arg(params, int)) != TX_PARAM_NONE && failed == 0) {
		if (type == TX_PARAM_CB) {
			callback = va_arg(params, pmemobj_tx_callback);
			arg = va_arg(params, void *);
		} else if ((type == TX_PARAM_MUTEX || type == TX_PARAM_RWLOCK) && count < 16) {
			types[count] = type;
			locks[count++] = va_arg(params, void *);
		} else {
			failed = EINVAL;
		}
	}
	va_end(params);
	if (failed != 0)
		pop = NULL;
	failed = firn_pobj_tx_begin(pop, environment, callback, arg);
	for (i = 0; failed == 0 && i < count; i++)
		failed = firn_pobj_tx_result(firn_pobj_tx_take(pop, types[i], locks[i]), 0);
	return failed;
}

/* Ends the innermost transaction. If it was aborted, so is the one around it. */
static inline int pmemobj_tx_end(void)
{
	int failed = firn_pobj_tx_end();
	if (failed != 0 && pmemobj_tx_stage() == TX_STAGE_WORK)
		pmemobj_tx_abort(failed);
	return failed;
}

/* Goes to the next stage: at work that is the commit. */
static inline void pmemobj_tx_process(void)
{
	if (pmemobj_tx_stage() == TX_STAGE_WORK)
		pmemobj_tx_commit();
	else
		firn_pobj_tx_next_stage();
}

static inline int pmemobj_tx_xadd_range(PMEMoid oid, uint64_t off, size_t size, uint64_t flags)
{
	return firn_pobj_tx_result(firn_pobj_tx_add_range(oid, off, size, flags), flags);
}

static inline int pmemobj_tx_add_range(PMEMoid oid, uint64_t off, size_t size)
{
	return pmemobj_tx_xadd_range(oid, off, size, 0);
}

static inline int pmemobj_tx_xadd_range_direct(const void *ptr, size_t size, uint64_t flags)
{
	return firn_pobj_tx_result(firn_pobj_tx_add_direct(ptr, size, flags), flags);
}

static inline int pmemobj_tx_add_range_direct(const void *ptr, size_t size)
{
	return pmemobj_tx_xadd_range_direct(ptr, size, 0);
}

static inline PMEMoid pmemobj_tx_xalloc(size_t size, uint64_t type_num, uint64_t flags)
{
	return firn_pobj_tx_object(firn_pobj_tx_alloc(size, type_num, NULL, 0), flags);
}

static inline PMEMoid pmemobj_tx_alloc(size_t size, uint64_t type_num)
{
	return pmemobj_tx_xalloc(size, type_num, 0);
}

static inline PMEMoid pmemobj_tx_zalloc(size_t size, uint64_t type_num)
{
	return pmemobj_tx_xalloc(size, type_num, 0);
}

static inline PMEMoid firn_pobj_tx_resized(PMEMoid oid, size_t size, uint64_t type_num)
{
	if (size == 0) {
		(void)firn_pobj_tx_result(firn_pobj_tx_free(oid), 0);
		return OID_NULL;
	}
	return firn_pobj_tx_object(firn_pobj_tx_realloc(oid, size, type_num), 0);
}

static inline PMEMoid pmemobj_tx_realloc(PMEMoid oid, size_t size, uint64_t type_num)
{
	return firn_pobj_tx_resized(oid, size, type_num);
}

static inline PMEMoid pmemobj_tx_zrealloc(PMEMoid oid, size_t size, uint64_t type_num)
{
	return firn_pobj_tx_resized(oid, size, type_num);
}

static inline PMEMoid firn_pobj_tx_dup(const void *from, size_t len, uint64_t type_num, uint64_t flags)
{
	return firn_pobj_tx_object(firn_pobj_tx_alloc(len, type_num, from, len), flags);
}

static inline PMEMoid firn_pobj_tx_no_text(uint64_t flags)
{
	(void)firn_pobj_tx_result(EINVAL, flags);
	return OID_NULL;
}

static inline PMEMoid pmemobj_tx_xstrdup(const char *s, uint64_t type_num, uint64_t flags)
{
	return s == NULL ? firn_pobj_tx_no_text(flags) : firn_pobj_tx_dup(s, strlen(s) + 1, type_num, flags);
}

static inline PMEMoid pmemobj_tx_strdup(const char *s, uint64_t type_num)
{
	return pmemobj_tx_xstrdup(s, type_num, 0);
}

static inline PMEMoid pmemobj_tx_xwcsdup(const wchar_t *s, uint64_t type_num, uint64_t flags)
{
	return s == NULL ? firn_pobj_tx_no_text(flags)
			 : firn_pobj_tx_dup(s, (wcslen(s) + 1) * sizeof(wchar_t), type_num, flags);
}

static inline PMEMoid pmemobj_tx_wcsdup(const wchar_t *s, uint64_t type_num)
{
	return pmemobj_tx_xwcsdup(s, type_num, 0);
}

static inline int pmemobj_tx_xfree(PMEMoid oid, uint64_t flags)
{
	return firn_pobj_tx_result(firn_pobj_tx_free(oid), flags);
}

static inline int pmemobj_tx_free(PMEMoid oid)
{
	return pmemobj_tx_xfree(oid, 0);
}

/* Copies to memory that is in the transaction, which flushes it. */
#define TX_MEMCPY(dest, src, num) memcpy((pmemobj_tx_add_range_direct((dest), (num)), (dest)), (src), (num))
#define TX_MEMSET(dest, c, num) memset((pmemobj_tx_add_range_direct((dest), (num)), (dest)), (c), (num))

#define TX_ADD(o) pmemobj_tx_add_range((o).oid, 0, sizeof(*(o)._type))
#define TX_XADD(o, flags) pmemobj_tx_xadd_range((o).oid, 0, sizeof(*(o)._type), (flags))
#define TX_ADD_FIELD(o, field)                                                                                         \
	pmemobj_tx_add_range((o).oid, TOID_OFFSETOF(o, field), sizeof(((TOID_TYPEOF(o) *)0)->field))
#define TX_XADD_FIELD(o, field, flags)                                                                                 \
	pmemobj_tx_xadd_range((o).oid, TOID_OFFSETOF(o, field), sizeof(((TOID_TYPEOF(o) *)0)->field), (flags))
#define TX_ADD_DIRECT(p) pmemobj_tx_add_range_direct((p), sizeof(*(p)))
#define TX_XADD_DIRECT(p, flags) pmemobj_tx_xadd_range_direct((p), sizeof(*(p)), (flags))
#define TX_ADD_FIELD_DIRECT(p, field) pmemobj_tx_add_range_direct(&(p)->field, sizeof((p)->field))
#define TX_XADD_FIELD_DIRECT(p, field, flags) pmemobj_tx_xadd_range_direct(&(p)->field, sizeof((p)->field), (flags))

#define TX_NEW(t) ((TOID(t))pmemobj_tx_alloc(sizeof(t), TOID_TYPE_NUM(t)))
#define TX_ALLOC(t, size) ((TOID(t))pmemobj_tx_alloc((size), TOID_TYPE_NUM(t)))
#define TX_ZNEW(t) ((TOID(t))pmemobj_tx_zalloc(sizeof(t), TOID_TYPE_NUM(t)))
#define TX_ZALLOC(t, size) ((TOID(t))pmemobj_tx_zalloc((size), TOID_TYPE_NUM(t)))
#define TX_XALLOC(t, size, flags) ((TOID(t))pmemobj_tx_xalloc((size), TOID_TYPE_NUM(t), (flags)))
#define TX_REALLOC(o, size) ((__typeof__(o))pmemobj_tx_realloc((o).oid, (size), TOID_TYPE_NUM_OF(o)))
#define TX_ZREALLOC(o, size) ((__typeof__(o))pmemobj_tx_zrealloc((o).oid, (size), TOID_TYPE_NUM_OF(o)))
#define TX_STRDUP(s, type_num) pmemobj_tx_strdup((s), (type_num))
#define TX_XSTRDUP(s, type_num, flags) pmemobj_tx_xstrdup((s), (type_num), (flags))
#define TX_WCSDUP(s, type_num) pmemobj_tx_wcsdup((s), (type_num))
#define TX_FREE(o) pmemobj_tx_free((o).oid)
#define TX_XFREE(o, flags) pmemobj_tx_xfree((o).oid, (flags))
#define TX_SET(o, field, value)                                                                                        \
	__extension__({                                                                                                \
		TX_ADD_FIELD(o, field);                                                                                \
		D_RW(o)->field = (value);                                                                              \
	})
#define TX_SET_DIRECT(p, field, value)                                                                                 \
	__extension__({                                                                                                \
		TX_ADD_FIELD_DIRECT(p, field);                                                                         \
		(p)->field = (value);                                                                                  \
	})

/* A transaction's stages are cases of a switch in a loop, which goes on until there is none left. The first pass is the
 * work; an abort comes back by longjmp to where the loop begins. */
#define FIRN_POBJ_TX(begin)                                                                                            \
	{                                                                                                              \
		jmp_buf firn_tx_env_;                                                                                  \
		enum pobj_tx_stage firn_tx_stage_;                                                                     \
		int firn_tx_errno_;                                                                                    \
		if (setjmp(firn_tx_env_) == 0) {                                                                       \
			firn_tx_errno_ = (begin);                                                                      \
			if (firn_tx_errno_ != 0)                                                                       \
				errno = firn_tx_errno_;                                                                \
		} else {                                                                                               \
			errno = pmemobj_tx_errno();                                                                    \
		}                                                                                                      \
		while ((firn_tx_stage_ = pmemobj_tx_stage()) != TX_STAGE_NONE) {                                       \
			switch (firn_tx_stage_) {                                                                      \
			case TX_STAGE_WORK:

#define TX_BEGIN(pop) FIRN_POBJ_TX(firn_pobj_tx_begin((pop), firn_tx_env_, NULL, NULL))
#define TX_BEGIN_PARAM(pop, ...) FIRN_POBJ_TX(pmemobj_tx_begin((pop), firn_tx_env_, __VA_ARGS__, TX_PARAM_NONE))
#define TX_BEGIN_CB(pop, cb, arg) FIRN_POBJ_TX(firn_pobj_tx_begin((pop), firn_tx_env_, (cb), (arg)))

#define TX_ONABORT                                                                                                     \
	pmemobj_tx_process();                                                                                          \
	break;                                                                                                         \
	case TX_STAGE_ONABORT:

#define TX_ONCOMMIT                                                                                                    \
	pmemobj_tx_process();                                                                                          \
	break;                                                                                                         \
	case TX_STAGE_ONCOMMIT:

#define TX_FINALLY                                                                                                     \
	pmemobj_tx_process();                                                                                          \
	break;                                                                                                         \
	case TX_STAGE_FINALLY:

#define TX_END                                                                                                         \
	pmemobj_tx_process();                                                                                          \
	break;                                                                                                         \
	default:                                                                                                       \
		pmemobj_tx_process();                                                                                  \
		break;                                                                                                 \
	}                                                                                                              \
	}                                                                                                              \
	firn_tx_errno_ = pmemobj_tx_end();                                                                             \
	if (firn_tx_errno_ != 0)                                                                                       \
		errno = firn_tx_errno_;                                                                                \
	}

/* ---------------------------------------------------------------------------------------------- defragmenting */

struct pobj_defrag_result {
	size_t total;
	size_t relocated;
};

/* Collects, down to a ratio of 1.05, and stores in each of these OIDs where its object is now. All objects may be
 * moved. The thread may have no transaction open, and its pointers are no longer valid. */
int pmemobj_defrag(PMEMobjpool *pop, PMEMoid **oidv, size_t oidcnt, struct pobj_defrag_result *result)
	FIRN_POBJ_AS(defrag);

/* The thread holds no pointer into the pool: objects may be moved until it takes the next one.
 * Fails: FIRN_BUSY inside a transaction. */
firn_status firn_safepoint(PMEMobjpool *pop) FIRN_POBJ_AS(safepoint);

/* Objects of this type stay where they are, those that are there and those to come, until the pool is closed. Returns
 * an errno. */
int firn_pin_type(PMEMobjpool *pop, uint64_t type_num) FIRN_POBJ_AS(pin_type);

/* The program has no OIDs outside the pool: what was kept for them is given back. As long as it takes to read the
 * pool all transactions wait. Returns an errno. */
int firn_forget_oids(PMEMobjpool *pop) FIRN_POBJ_AS(forget_oids);

/* How the pool is collected from now on; no longer by itself if `how` is null. Returns an errno. */
int firn_collecting_pool(PMEMobjpool *pop, const firn_collecting *how) FIRN_POBJ_AS(collecting);

/* Collects now. The thread's pointers are no longer valid. Returns an errno. */
int firn_collect_pool(PMEMobjpool *pop, const firn_collecting *how, uint64_t *moved_objects) FIRN_POBJ_AS(collect);

/* Bytes of pages that hold objects over the bytes of those objects. */
double firn_pool_ratio(PMEMobjpool *pop, firn_pages pages) FIRN_POBJ_AS(ratio);

#ifdef __cplusplus
}
#endif

#endif /* FIRN_PMEMOBJ_H */
