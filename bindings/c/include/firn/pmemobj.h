/*
 * Firn for programs written for libpmemobj: recompiled with another include path and link line, they run
 * unchanged. On request their pools are defragmented while they run.
 *
 * Nothing moves in a pool without a request: firn_collecting_pool, firn_collect_pool or pmemobj_defrag with a list in
 * the program, or FIRN_COLLECT=1 or FIRN_COLLECT=safepoints in the environment. A program may request collection if it
 * names objects by OIDs alone, and takes pointers anew after each transaction. It may not if it keeps
 * offsets without the pool's id, distances between objects, or pointers across transactions, all of which libpmemobj
 * allows. FIRN_COLLECT=safepoints FIRN_GUARD=1 shows which kind of program it is (below).
 *
 * Guarantees while objects move:
 *
 *   An OID is valid wherever it is kept, in the pool or in a variable of the program, until its object is freed.
 *   When an object moves, OIDs in the pool are updated; all others still lead to it. So two OIDs of one object may
 *   differ: OID_EQUALS and TOID_EQUALS compare the objects they lead to.
 *
 *   References are found without annotation: wherever an object holds a pool's id and, in the next word, an offset
 *   into an allocated object, including its middle, that is a reference. An offset kept without the id is not
 *   found; an OID built from it is still valid until the pool is closed.
 *
 *   A pointer (D_RW, D_RO, pmemobj_direct) is valid until the thread's outermost transaction ends, or the thread calls
 *   firn_safepoint. If a thread does neither, its objects never move. Pointers must be taken anew after such a point.
 *
 *   The root object never moves, nor do objects of types pinned by firn_pin_type.
 *
 *   Vacated offsets are not reused before the pool is closed, and the table that forwards them is
 *   kept: for each emptied 4 KiB, 64 bytes of the pool and about 100 of memory. Neither counts towards the pool's
 *   size. Once four times that size was emptied, objects move no longer. firn_forget_oids returns all of
 *   it, for a program that has no OIDs outside the pool.
 *
 * With FIRN_COLLECT=1 in the environment, pools are collected beside the program, as with FFCCD (section 5): above a
 * ratio of 1.5 of pages to objects, down to 1.25. firn_collecting_pool does the same, with figures of its own if
 * wanted. To find out whether a program may request it, FIRN_COLLECT=safepoints moves everything at every safepoint, and
 * FIRN_GUARD=1 (the default in debug builds of the library) stops the program when it uses memory that an object has
 * left, and prints the object's type. With FIRN_ASSUME_PERSISTENT=adr, or eadr, pools are flushed as on persistent
 * memory wherever they lie, for measurements. With FIRN_DURABLE=1 a new pool has a log beside it, and survives power
 * failures on any disk; each flush is then a write to the disk, for which the call waits.
 *
 * Another pool that was open on an ordinary file when the machine went down cannot be opened again: firn_salvage (firn.h), or
 * `firn copy --salvage`, makes a new one from it if it is undamaged. FIRN_ANY_FILE_SYSTEM=1 allows pools on file systems
 * where a store to a full disk may kill the program (SIGBUS), such as btrfs, overlayfs and NFS.
 *
 * A forked child may not use its parent's pools: calls fail with EPERM, pmemobj_direct and D_RW return null,
 * transactions abort. Pointers from before lead to the child's private copy. It may exit, run atexit handlers, and open
 * other pools.
 *
 * docs/pmemobj.md lists what is missing. libpmemobj's own pools are not read. Needs GCC or Clang.
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

/* The library's functions have distinct names, so that a program can be linked with both libraries. */
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

/* The message of this thread's last failure; "" if there was none. */
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

/* Closes a pool. No thread may have a transaction open in it. */
void pmemobj_close(PMEMobjpool *pop) FIRN_POBJ_AS(close);

/* Bytes of the root object, 0 while there is none. */
size_t pmemobj_root_size(PMEMobjpool *pop) FIRN_POBJ_AS(root_size);

/* A word of the program that is attached to an open pool. */
void pmemobj_set_user_data(PMEMobjpool *pop, void *data) FIRN_POBJ_AS(set_user_data);
void *pmemobj_get_user_data(PMEMobjpool *pop) FIRN_POBJ_AS(get_user_data);

/* Creates a pool in a new file. It may grow to poolsize, also after it is opened again. */
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

/* 1 if the pool is sound, 0 if not, -1 if the check failed. */
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

/* Moves the objects named by these OIDs, and nothing else, to free places in front of them, and stores the new place
 * in each of these OIDs. As with libpmemobj, every OID that names such an object must be listed: no other one is
 * changed, and one that is missing then names a freed place. No other thread may use the objects meanwhile. Large
 * objects (above 32 KiB), the root and objects beside it stay. A crash leaves each object at its old or its new
 * place, consistent with its OIDs in the pool. `total` is the number of listed objects, `relocated` that of moved
 * ones. Without a list nothing is done, as with libpmemobj: firn_collect_pool collects everything.
 * Fails with -1 and errno: EBUSY in a transaction; ENOMEM if the pool has no room for the log. Objects moved by then
 * stay moved, and their OIDs say so. */
int pmemobj_defrag(PMEMobjpool *pop, PMEMoid **oidv, size_t oidcnt, struct pobj_defrag_result *result)
	FIRN_POBJ_AS(defrag);

/* Declares that the thread holds no pointer into the pool: objects may move until it takes the next one.
 * Fails: FIRN_BUSY inside a transaction. */
firn_status firn_safepoint(PMEMobjpool *pop) FIRN_POBJ_AS(safepoint);

/* Pins all objects of this type, existing and new, until the pool is closed. Returns an errno. */
int firn_pin_type(PMEMobjpool *pop, uint64_t type_num) FIRN_POBJ_AS(pin_type);

/* Declares that the program has no OIDs outside the pool, and returns what was kept for them. All transactions wait
 * for as long as reading the pool takes. Returns an errno. */
int firn_forget_oids(PMEMobjpool *pop) FIRN_POBJ_AS(forget_oids);

/* Starts collecting the pool beside the program; stops that if `how` is null. All objects may move: the program
 * declares that it names them by OIDs. Returns an errno. */
int firn_collecting_pool(PMEMobjpool *pop, const firn_collecting *how) FIRN_POBJ_AS(collecting);

/* Collects everything now. All objects may move: the program declares that it names them by OIDs. The thread's
 * pointers become invalid. Returns an errno. */
int firn_collect_pool(PMEMobjpool *pop, const firn_collecting *how, uint64_t *moved_objects) FIRN_POBJ_AS(collect);

/* Bytes of pages that hold objects over the bytes of those objects. */
double firn_pool_ratio(PMEMobjpool *pop, firn_pages pages) FIRN_POBJ_AS(ratio);

#ifdef __cplusplus
}
#endif

#include "pmemobj/transactions.h"

#endif /* FIRN_PMEMOBJ_H */
