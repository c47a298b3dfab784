/*
 * Firn for programs that were written for libpmemobj: recompiled with another include path and link line, they run
 * as they are. Their pools are defragmented while they run if they ask for it.
 *
 * Nothing moves in a pool until somebody says so: the program by firn_collecting_pool, firn_collect_pool or a
 * pmemobj_defrag with a list, the environment by FIRN_COLLECT=1 or FIRN_COLLECT=safepoints. A program may ask for
 * collection if it names objects by OIDs, and takes pointers anew after each transaction. It may not if it keeps
 * offsets without the pool's id, distances between objects, or pointers across transactions, all of which libpmemobj
 * allows. FIRN_COLLECT=safepoints FIRN_GUARD=1 shows which kind it is (below).
 *
 * What holds where objects move:
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
 *   kept: for each 4 KiB that were emptied 64 bytes of the pool and about 100 of memory. Neither counts for the pool's
 *   size. When four times as many bytes were emptied as that is, objects move no longer. firn_forget_oids gives all of
 *   it back, for a program that has no OIDs outside the pool.
 *
 * FIRN_COLLECT=1 in the environment has pools collected beside the program, as FFCCD's (section 5): above a ratio of
 * 1.5 of pages to objects, down to 1.25. So does firn_collecting_pool, which may say other figures. To find out whether
 * a program may ask for it, FIRN_COLLECT=safepoints moves everything at every safepoint, and FIRN_GUARD=1, as debug
 * builds of the library do by themselves, stops the program when it uses memory that an object has left, and says which
 * type the object has. FIRN_ASSUME_PERSISTENT=adr, or eadr, has pools flushed as on persistent memory wherever they
 * lie, to measure.
 *
 * A pool that was open on an ordinary file when the machine went down is not opened again: firn_salvage (firn.h), or
 * `firn copy --salvage`, makes a new one of it if it is whole. FIRN_ANY_FILE_SYSTEM=1 lets pools lie on file systems
 * where a store on a full disk may end the program (SIGBUS), such as btrfs, overlayfs and NFS.
 *
 * A forked child may not use its parent's pools: calls fail with EPERM, pmemobj_direct and D_RW yield null, transactions
 * abort. Pointers from before lead to a copy of the child's own. It may exit, run what atexit was told, and open other
 * pools.
 *
 * What is missing is listed in docs/pmemobj.md. Pools of libpmemobj's are not read. Needs GCC or Clang.
 */
#ifndef FIRN_PMEMOBJ_H
#define FIRN_PMEMOBJ_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
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

/* Makes a pool in a new file, which may grow to poolsize, also when it is opened again. */
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

/* ---------------------------------------------------------------------------------------------- defragmenting */

struct pobj_defrag_result {
	size_t total;
	size_t relocated;
};

/* Moves the objects that these OIDs name to free places in front of them, and nothing else, and stores in each
 * of these OIDs where its object is now. As with libpmemobj, every OID that names such an object must be listed: no
 * other one is changed, and one that is left out names a freed place. No other thread uses the objects meanwhile. Large
 * objects (above 32 KiB), the root and objects beside it stay. A crash leaves each object where it was or where it
 * went, with its OIDs that lie in the pool. `total` is how many objects were listed, `relocated` how many have moved.
 * Without a list nothing is done, as with libpmemobj: firn_collect_pool collects everything.
 * Fails with -1 and errno: EBUSY in a transaction; ENOMEM if the pool has no room for the log. What has moved by then
 * stays moved, and its OIDs say so. */
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

/* Has the pool collected beside the program from now on; no longer if `how` is null. All objects may be moved: the
 * program says that it names them by OIDs. Returns an errno. */
int firn_collecting_pool(PMEMobjpool *pop, const firn_collecting *how) FIRN_POBJ_AS(collecting);

/* Collects everything now. All objects may be moved: the program says that it names them by OIDs. The thread's pointers
 * are no longer valid. Returns an errno. */
int firn_collect_pool(PMEMobjpool *pop, const firn_collecting *how, uint64_t *moved_objects) FIRN_POBJ_AS(collect);

/* Bytes of pages that hold objects over the bytes of those objects. */
double firn_pool_ratio(PMEMobjpool *pop, firn_pages pages) FIRN_POBJ_AS(ratio);

#ifdef __cplusplus
}
#endif

#include "pmemobj/transactions.h"

#endif /* FIRN_PMEMOBJ_H */
