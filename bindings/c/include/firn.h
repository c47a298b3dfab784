/*
 * Firn: objects in a pool that survive crashes, with transactions, and a collector that compacts the pool while
 * the program runs.
 *
 *   pool         firn_create, firn_open, firn_close            one file
 *   session      firn_session_open, firn_session_close         a thread's access to a pool
 *   operation    firn_read_begin .. firn_read_end              to read
 *                firn_tx_begin .. firn_tx_commit               to change: all of it becomes durable, or nothing
 *   object       firn_alloc, FIRN_LOAD, FIRN_STORE             typed; a type says where its references are
 *   reference    firn_ref in the pool, FIRN_FOLLOW, FIRN_LINK  one word
 *
 * Pointers. A function that yields an object returns a pointer to its bytes in the pool. The pointer is valid until
 * the operation ends in which it was obtained: between operations the collector may move the object. To keep an object
 * longer, refer to it in the pool or through a handle (firn_handle_strong). The bytes are constant: they change only
 * through FIRN_STORE and FIRN_LINK, in a transaction.
 * To find pointers that are kept too long, set FIRN_COLLECT=safepoints in a test's environment when it opens the pool:
 * then everything moves at the end of every operation.
 *
 * Transactions buffer their stores and apply them at commit. So once a transaction has stored something, read objects
 * with FIRN_LOAD, which sees these stores; a pointer leads to the old bytes.
 * In an operation that only reads, the two are the same.
 *
 * Failures. A function returns a status, or a null pointer if it fails; firn_last_status and firn_last_message then
 * describe the failure, for each thread. If a call that changes something fails in a transaction, the transaction
 * cannot be committed: firn_tx_commit rolls it back and returns the first failure. Looking up something that is not
 * there is not such a failure.
 *
 * Threads. All threads may use a pool, each through a session of its own, which stays on the thread that opened it. To
 * read an object that another thread may be changing, take the lock that both agree on (firn_lock_shared,
 * firn_lock_exclusive).
 *
 * Processes. A forked child inherits its parent's pools, which the parent continues to use: in the child every call
 * fails with FIRN_FORKED. The child may exit, run destructors, open other pools, and open the same ones once the
 * parent has closed them. Accesses through pointers cannot fail: a child of fork(3) reads the bytes as of the fork or
 * later, and its stores stay private. vfork and posix_spawn work as usual.
 *
 * Durable data always survives the end of the process. It survives a power failure if the pool lies in persistent
 * memory (a file system with DAX). On an ordinary file, firn_sync makes everything up to that point survive one, too.
 *
 * Needs C11, or C++11 (see firn.hpp for C++20), with the extensions of GCC and Clang.
 */
#ifndef FIRN_H
#define FIRN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------ failures */

/* The result of a call. */
typedef enum firn_status {
	FIRN_OK = 0,
	/* An argument is null, out of range or contradicts another. Nothing was done. */
	FIRN_INVALID = 1,
	/* Called at the wrong time: outside an operation, on another thread, on something closed. Nothing was done. */
	FIRN_MISUSE = 2,
	/* There is no such file, root or type. */
	FIRN_NOT_FOUND = 3,
	/* The file or root already exists. */
	FIRN_EXISTS = 4,
	/* The pool is already open in another process, or in this one. */
	FIRN_IN_USE = 5,
	/* The operating system denied permission. */
	FIRN_PERMISSION = 6,
	/* The operating system reported an error. */
	FIRN_IO = 7,
	/* The pool, or the device below it, is full. */
	FIRN_NO_SPACE = 8,
	/* An object, a transaction or a name is too large, or all sessions, roots or types are in use. */
	FIRN_TOO_LARGE = 9,
	/* No object is allocated there: it was freed, is in another pool, or never existed. */
	FIRN_NOT_ALLOCATED = 10,
	/* An object or a stored type differs from what the program expects. */
	FIRN_WRONG_TYPE = 11,
	/* Two transactions wait for each other: roll back and restart. firn_transaction does so. */
	FIRN_CONFLICT = 12,
	/* An operation stayed open, a session is open, or a collection is running. */
	FIRN_BUSY = 13,
	/* The pool is open read-only. */
	FIRN_READ_ONLY = 14,
	/* The file is not a pool, or is one of another program. */
	FIRN_NOT_A_POOL = 15,
	/* The pool was not closed; open it for writing once. */
	FIRN_NEEDS_RECOVERY = 16,
	/* The pool is damaged. */
	FIRN_DAMAGED = 17,
	/* The body of a transaction requested a rollback. Never returned by the library itself. */
	FIRN_ABORTED = 18,
	/* A bug of the library; the message says where. */
	FIRN_INTERNAL = 19,
	/* This process is a forked child of the one that opened the pool. */
	FIRN_FORKED = 20
} firn_status;

/* The status of this thread's last failure, or FIRN_OK if there was none since it was last cleared. */
firn_status firn_last_status(void);

/* Its message, a sentence that names the thing and the way out; "" if there was none. Valid until the next call of
 * this thread. */
const char *firn_last_message(void);

/* Clears the last failure. */
void firn_clear_status(void);

/* The name of a status, "FIRN_OK" for instance. */
const char *firn_status_name(firn_status status);

/* The library's version, "0.1.0" for instance. */
const char *firn_version(void);

/* --------------------------------------------------------------------------------------------------- types */

/* A reference to an object, as stored in the pool. All zeros is the null reference. The word changes when the object
 * moves: to compare objects, compare what FIRN_FOLLOW yields, within one operation. */
typedef struct firn_ref {
	uint64_t word;
} firn_ref;

/* A reference among an object's bytes, or an array of them. */
typedef struct firn_field {
	const char *name;
	/* From the start of the object; a multiple of 8. */
	uint32_t offset;
	/* 8 for each reference. */
	uint32_t bytes;
} firn_field;

/* A type. It must stay at its address as long as a pool is open that it was used with: make it static.
 *
 * In a pool a type's name has one version and one layout. A type with another version or layout than the stored one
 * is refused, and so is a type whose declared references lead to such a type. So a program that has an object may
 * follow its references without a check. Only what the table declares can be compared; FIRN_LAYOUT declares
 * everything. */
typedef struct firn_type {
	/* Unique within a pool. */
	const char *name;
	/* A changed layout needs a higher one, and a migration (firn_migrate). */
	uint32_t version;
	/* Bytes of an object, at most 8 of alignment. */
	uint32_t size;
	/* Number of fields; with FIRN_MEMBERS added, these are the fields of that many firn_members. */
	uint32_t field_count;
	const firn_field *fields;
} firn_type;

/* In firn_type.field_count: `fields` points to the first member's field. */
#define FIRN_MEMBERS (UINT32_C(1) << 31)

/* What a member is. */
typedef enum firn_member_kind {
	/* A reference, or an array of them. */
	FIRN_REFERENCE = 0,
	FIRN_UNSIGNED = 1,
	FIRN_SIGNED = 2,
	FIRN_FLOAT = 3,
	/* Bytes that the library does not interpret. */
	FIRN_OPAQUE = 4
} firn_member_kind;

/* A complete description of a member of an object's structure. */
typedef struct firn_member {
	firn_field field;
	/* A firn_member_kind. */
	uint32_t kind;
	/* Bytes of an element if it is an array, otherwise its size. */
	uint32_t element;
	/* Returns the type that the references lead to, always the same one. Null if it is not declared: for objects
	 * of bytes, arrays of references, and objects of several types. */
	const firn_type *(*to)(void);
} firn_member;

/* Defines the static firn_type `variable` for objects of the C type `c_type`, with the names of all its fields that
 * are references or arrays of them, at least one and at most 64:
 *
 *     struct node { firn_ref next; firn_ref kids[4]; uint64_t key; };
 *     FIRN_TYPE(node_type, struct node, "node", 1, next, kids);
 *
 * A reference that is not named is not followed: an object that only it refers to is reclaimed. */
#define FIRN_TYPE(variable, c_type, name, version, ...)                                                                \
	static const firn_field variable##_fields[] = {FIRN_EACH(FIRN_FIELD, c_type, __VA_ARGS__)};                    \
	static const firn_type variable = {name, version, FIRN_SIZE_OF(c_type),                                        \
					   sizeof variable##_fields / sizeof variable##_fields[0], variable##_fields}

/* Defines the static firn_type `variable` with all its members, at most 64, each in parentheses: a reference with the
 * variable of its target's type, anything else alone. When the type is first used, this description and those of the
 * types that its references lead to are compared with the pool. At file scope, in any order:
 *
 *     struct list { firn_ref first; uint64_t len; };
 *     struct node { firn_ref next; firn_ref list; uint64_t key; };
 *     FIRN_LAYOUT(list_type, struct list, "list", 1, (first, node_type), (len));
 *     FIRN_LAYOUT(node_type, struct node, "node", 1, (next, node_type), (list, list_type), (key));
 *
 * The target of a reference to objects of several types, or to an object of bytes, is firn_any. */
#define FIRN_LAYOUT(variable, c_type, name, version, ...)                                                              \
	static inline const firn_type FIRN_EACH(FIRN_TYPE_LED_TO, c_type, __VA_ARGS__);                                \
	static const firn_member variable##_members[] = {FIRN_EACH(FIRN_MEMBER, c_type, __VA_ARGS__)};                 \
	static const firn_type variable = {                                                                            \
		name, version, FIRN_SIZE_OF(c_type),                                                                   \
		FIRN_MEMBERS + FIRN_CAST(uint32_t, sizeof variable##_members / sizeof variable##_members[0]),          \
		&variable##_members[0].field};                                                                         \
	/* Unused if no reference leads to it. */                                                                      \
	__attribute__((unused)) static inline const firn_type *variable##_led_to(void)                                 \
	{                                                                                                              \
		return &variable;                                                                                      \
	}                                                                                                              \
	static inline const firn_type *variable##_led_to(void)

/* The target of references for which FIRN_LAYOUT names no type. */
static inline const firn_type *firn_any_led_to(void)
{
	return NULL;
}

/* Defines a type without references, whose members are not described. */
#define FIRN_TYPE_WITHOUT_REFERENCES(variable, c_type, name, version)                                                  \
	static const firn_type variable = {name, version, FIRN_SIZE_OF(c_type), 0, NULL}

/* ---------------------------------------------------------------------------------------------------- pools */

/* An open pool. */
typedef struct firn_pool firn_pool;

/* What decides which objects live. */
typedef enum firn_kind {
	/* Objects reachable from a root. The rest is reclaimed, so nothing leaks; freeing explicitly is faster. */
	FIRN_TRACED = 0,
	/* Objects that were allocated and not freed. */
	FIRN_EXPLICIT = 1
} firn_kind;

/* What a pool's transactions survive. */
typedef enum firn_domain {
	/* That which the pool was in before. A new pool survives power failures on every disk: it is in FIRN_LOGGED, or needs
	 * no log on DAX. On tmpfs and in memory it survives no more than its file does. */
	FIRN_AS_IT_IS = 0,
	/* Memory that is persistent with write-backs and fences, whatever it is: to measure code for persistent
	 * memory elsewhere. Does not protect against a power failure. */
	FIRN_ASSUME_ADR = 1,
	/* The same, with persistent caches. */
	FIRN_ASSUME_EADR = 2,
	/* The death of the program. */
	FIRN_PROCESS = 3,
	/* Power failures, on any disk: a log lies beside the pool, as NAME.firn-log, while it is open and after a crash.
	 * Only a closed pool changes from one domain to another. */
	FIRN_LOGGED = 4
} firn_domain;

/* When a transaction of a pool in FIRN_LOGGED returns. */
typedef enum firn_level {
	/* When it is on the disk. */
	FIRN_SYNC = 0,
	/* When the system has it: it survives the program. A power failure takes the newest transactions back. */
	FIRN_WRITTEN = 1,
	/* At once. A crash takes back at most the transactions of the last `group_ms` milliseconds. */
	FIRN_GROUP = 2
} firn_level;

/* How a pool is created or opened. Zeros are the defaults. */
typedef struct firn_options {
	/* The name of the pool's content, up to 64 bytes; checked at open. Null is "". */
	const char *layout;
	/* Maximum size of the pool in bytes; stored with it, so the limit holds for every program that opens it. 0
	 * creates a pool that grows up to its capacity, and opens one with its stored limit; another number changes
	 * the limit, and UINT64_MAX removes it. While a transaction runs, its log may take as much space again;
	 * firn_close cuts that off. */
	uint64_t max_bytes;
	/* Bytes of address space to reserve: the maximum size while it is open; 0 for 1 TiB. */
	uint64_t capacity;
	/* Maximum number of sessions at one time, up to 64; 0 for 64. Used when the pool is created. */
	uint32_t sessions;
	/* Used when the pool is created. */
	firn_kind kind;
	firn_domain domain;
	/* Not 0: allows any file system. By default a pool is opened for writing only on file systems where a store
	 * to allocated blocks needs no new ones: ext2, ext3, ext4, xfs, tmpfs, DAX. Elsewhere (btrfs, overlayfs, NFS)
	 * a store to a full disk kills the program with SIGBUS. Pools in FIRN_LOGGED need no such promise. */
	int any_file_system;
	firn_level level;
	/* For FIRN_GROUP. */
	uint32_t group_ms;
	/* In FIRN_LOGGED: bytes of the pool that may take memory of the process. Beyond that, transactions wait until pages
	 * are on the disk and dropped. 0 for a quarter of the memory that the process may use. */
	uint64_t memory_bytes;
} firn_options;

/* Creates a pool in a new file, or in memory that ends with the process if `path` is null. `options` may be null. The
 * caller owns the pool and closes it.
 * The file appears complete: it is created as `.NAME.firn-new` and renamed last. A leftover file of a killed program
 * is removed. While another process creates the same pool, this fails with FIRN_EXISTS.
 * Fails: FIRN_EXISTS, FIRN_PERMISSION, FIRN_NO_SPACE, FIRN_INVALID, FIRN_IO; no file is left behind.
 * Durable on return: an empty pool. */
firn_status firn_create(const char *path, const firn_options *options, firn_pool **pool);

/* Opens the pool in a file, and recovers it if it was not closed: everything committed is there, and nothing else.
 * Recovery time depends on the work in flight, not on the pool's size.
 * A pool that was open on an ordinary file when the machine went down is FIRN_DAMAGED; firn_salvage makes a new one
 * from it.
 * Fails: FIRN_IN_USE if another process has it open, or this one has it or a copy of it open for writing (firn copy
 * --new-id makes copies with a new identity); FIRN_NOT_FOUND, FIRN_NOT_A_POOL, FIRN_DAMAGED, FIRN_PERMISSION,
 * FIRN_INVALID, FIRN_IO. */
firn_status firn_open(const char *path, const firn_options *options, firn_pool **pool);

/* Opens the pool in a file read-only, beside other readers.
 * Fails: as firn_open, and FIRN_NEEDS_RECOVERY. */
firn_status firn_open_read_only(const char *path, const firn_options *options, firn_pool **pool);

/* What firn_salvage found. */
typedef struct firn_salvaged {
	/* Objects in the new pool, and their bytes. */
	uint64_t objects;
	uint64_t bytes;
	/* References to lost objects: null in the new pool. */
	uint64_t lost_references;
	/* Roots whose objects are lost: missing in the new pool. */
	uint64_t lost_roots;
	/* Damaged places, at most a thousand. */
	uint64_t findings;
} firn_salvaged;

/* Makes a new pool, in the file `new_path`, from the intact objects of a pool that was open on an ordinary file when
 * the machine went down, which firn_open refuses with FIRN_DAMAGED. The old file is only read. Intact objects that
 * can be reached are copied; references to others become null. A pool of a libpmemobj program is copied as it is if
 * it is undamaged, or not at all. `tell`, if not null, is called with a sentence for each loss, valid during the
 * call, and with `context`. `salvaged`, if not null, receives the numbers.
 *
 * Non-reference bytes of an object have no checksum: nothing can tell whether they are the latest ones.
 *
 * `options` apply to both pools and may be null; the old pool determines the properties of the new one.
 * Fails: FIRN_NOT_FOUND, FIRN_IN_USE, FIRN_NOT_A_POOL, FIRN_DAMAGED, FIRN_EXISTS, FIRN_NO_SPACE, FIRN_PERMISSION,
 * FIRN_IO; there is no new file then. Durable on return: the new pool, closed. */
firn_status firn_salvage(const char *path, const char *new_path, const firn_options *options,
			 void (*tell)(const char *what, void *context), void *context, firn_salvaged *salvaged);

/* Closes a pool, which must not be used afterwards. Null is ignored. Any thread may call this.
 * Fails: FIRN_BUSY while sessions or handles are open or a collection is running: the pool then stays open. */
firn_status firn_close(firn_pool *pool);

/* A pool's maximum size in bytes; 0 if only its capacity limits it, and for a null pool. */
uint64_t firn_limit(firn_pool *pool);

/* Makes everything committed so far durable on the device, whatever its kind. This thread must have no operation
 * open.
 * Fails: FIRN_BUSY, FIRN_IO. */
firn_status firn_sync(firn_pool *pool);

/* Registers a type before its first use, so that no transaction has to. The types that its references lead to are
 * registered with it.
 * Fails: FIRN_WRONG_TYPE if one of them is stored with another layout or version; FIRN_INVALID; FIRN_TOO_LARGE if
 * there are too many. Durable on return: all of them, or none. */
firn_status firn_register(firn_pool *pool, const firn_type *type);

/* Converts an old object to a new one, each as long as its type. The new object is zero at first, except that
 * references are copied from the old one. The function must return. */
typedef void (*firn_convert)(const void *old_object, void *new_object, void *argument);

/* Converts every object of type `from` to type `to`, which has the same name and a higher version: every reachable
 * one, and in an explicit pool every allocated one. Bytes behind an old object's type are copied.
 * `*objects`, which may be null, receives the number of converted objects: 0 if the pool has that version already.
 * Must precede any session. If a migration has begun and not succeeded, no program can open a session.
 * Fails: FIRN_BUSY while sessions or handles are open or a collection is running, FIRN_WRONG_TYPE if the pool has
 * another version or layout, FIRN_MISUSE if the types do not belong together, FIRN_READ_ONLY, FIRN_NO_SPACE,
 * FIRN_DAMAGED, FIRN_INVALID. Durable on return; after a crash or a failure midway call it again. */
firn_status firn_migrate(firn_pool *pool, const firn_type *from, const firn_type *to, firn_convert convert,
			 void *argument, uint64_t *objects);

/* ------------------------------------------------------------------------------------------------- sessions */

/* A thread's access to a pool. The fields are private to the library's inline functions. */
typedef struct firn_session {
	/* Address in memory of byte 0 of the pool. */
	const unsigned char *objects;
	/* The bits of a reference that say where an object lies. */
	uint64_t mask;
	/* The bits of a reference that say in which pool. */
	uint64_t pool;
	/* Zero on the fast path: no object is being moved, nothing was stored. */
	uint64_t flags;
} firn_session;

/* In firn_session.flags: no operation is open; objects are being moved; the transaction has stored something. */
#define FIRN_QUIET UINT64_C(1)
#define FIRN_MOVING UINT64_C(2)
#define FIRN_STORED UINT64_C(4)

/* Opens a session for the calling thread, which closes it.
 * Fails: FIRN_TOO_LARGE if as many are open as the pool allows (firn_options.sessions, 64 at most), FIRN_NO_SPACE. */
firn_status firn_session_open(firn_pool *pool, firn_session **session);

/* Closes a session, which must not be used afterwards. Null is ignored.
 * Fails: FIRN_MISUSE if an operation is open or this is another thread: the session then stays open. */
firn_status firn_session_close(firn_session *session);

/* ----------------------------------------------------------------------------------------------- operations */

/* Begins a reading operation, or a nested one within it or within a transaction; each needs its own end.
 * Fails: FIRN_MISUSE on another thread. */
firn_status firn_read_begin(firn_session *session);

/* Ends it. The end of the outermost one invalidates everything obtained in it and releases its locks.
 * Fails: FIRN_MISUSE if none is open. */
firn_status firn_read_end(firn_session *session);

/* Begins a transaction, or a nested part of the open one, which can be rolled back by itself.
 * Fails: FIRN_MISUSE inside a reading operation, FIRN_READ_ONLY. */
firn_status firn_tx_begin(firn_session *session);

/* Commits. Durable on return, with one fence, or as durable as the pool's level says; before that fence nothing of it
 * survives a crash. Committing a nested part merges its changes into the transaction.
 * Fails: with the first failure of a call in it; FIRN_NO_SPACE, FIRN_TOO_LARGE. The transaction was then rolled back
 * and has ended. FIRN_MISUSE if none is open. */
firn_status firn_tx_commit(firn_session *session);

/* A place in the order of a pool's commits. */
typedef uint64_t firn_ticket;

/* Commits, and waits for no disk: in a pool in FIRN_LOGGED the transaction is durable when its ticket is. Everything that
 * committed before it is durable then, too. `ticket` may be null. Otherwise as firn_tx_commit. */
firn_status firn_tx_commit_deferred(firn_session *session, firn_ticket *ticket);

/* Waits until everything up to a ticket is durable. In another domain than FIRN_LOGGED it is.
 * Fails: FIRN_IO; then nothing more becomes durable until the pool is opened again. */
firn_status firn_wait_durable(firn_pool *pool, firn_ticket ticket);

/* Calls `call` with `with` when everything up to a ticket is durable, or with FIRN_IO if it never will be; at once if that
 * is known. Calls come in the order of their tickets, in a thread of the pool, and all before firn_close returns. They may
 * use the pool, but not close it. */
firn_status firn_when_durable(firn_pool *pool, firn_ticket ticket, void (*call)(void *with, firn_status status),
			      void *with);

/* The newest ticket: that of all commits so far. A program that acts on what it has read, outside the pool, waits for
 * it first: what a transaction has just committed can be read before it is durable. 0 if the pool is null. */
firn_ticket firn_newest_ticket(firn_pool *pool);

/* The ticket up to which everything is durable now; waits for nothing. 0 if the pool is null. */
firn_ticket firn_durable_ticket(firn_pool *pool);

/* Rolls back a transaction, or its innermost nested part.
 * Fails: FIRN_MISUSE if none is open. */
firn_status firn_tx_abort(firn_session *session);

/* The body of a transaction; returning anything but FIRN_OK rolls it back. */
typedef firn_status (*firn_body)(firn_session *session, void *argument);

/* Runs a transaction: begins it, calls `body`, and commits or rolls back. After FIRN_CONFLICT it restarts, so effects
 * of `body` outside the pool must be safe to repeat. Inside a transaction it runs a nested part.
 * Fails: with what `body` returns, and as firn_tx_commit. */
firn_status firn_transaction(firn_session *session, firn_body body, void *argument);

/* Takes the lock with this number for reading, until the operation ends. Structures with different numbers
 * (firn_new_lock) have different locks.
 * Fails: FIRN_CONFLICT in a transaction that would have to wait against the order of locks; FIRN_MISUSE if another
 * session of this thread holds the lock, so that the thread would wait for itself. */
firn_status firn_lock_shared(firn_session *session, uint64_t lock);

/* Takes it for writing, until the transaction ends.
 * Fails: FIRN_CONFLICT, FIRN_MISUSE outside a transaction. */
firn_status firn_lock_exclusive(firn_session *session, uint64_t lock);

/* A new lock number; store it in the structure that it guards. 0 for a null session. */
uint64_t firn_new_lock(firn_session *session);

/* -------------------------------------------------------------------------------------------------- objects */

/* Allocates an object and stores a copy of `front` in it, type->size bytes; zeros if `front` is null. Create
 * references in `front` with firn_reference. The object exists once the transaction has committed; in a traced pool
 * it is reclaimed when no root leads to it.
 * Fails (null): FIRN_NO_SPACE, FIRN_NOT_ALLOCATED for a reference that names no object of the pool, FIRN_WRONG_TYPE,
 * FIRN_MISUSE. */
const void *firn_alloc(firn_session *session, const firn_type *type, const void *front);

/* Allocates an object of `bytes` bytes, at least type->size. The first `front_bytes` are copied, the others are zero:
 * for a structure with an array at its end. Bytes behind type->size hold no references. */
const void *firn_alloc_sized(firn_session *session, const firn_type *type, const void *front, size_t front_bytes,
			     size_t bytes);

/* Allocates an object that holds a copy of `len` bytes, and its length. It has none of the program's types. */
const void *firn_alloc_bytes(firn_session *session, const void *bytes, size_t len);

/* Allocates an array of `len` null references. */
const void *firn_alloc_refs(firn_session *session, size_t len);

/* Frees an object when the transaction commits. In a traced pool nothing may refer to it then, because a remaining
 * reference would name whatever is allocated there next. The commit reports a double free.
 * Fails: FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_free(firn_session *session, const void *object);

/* Copies `len` bytes from byte `offset` of an object, as the transaction sees them.
 * Fails: FIRN_INVALID beyond its end, FIRN_NOT_ALLOCATED. */
firn_status firn_load(firn_session *session, const void *object, size_t offset, void *into, size_t len);

/* Stores `len` bytes from byte `offset` of an object on.
 * Fails: FIRN_INVALID beyond its end, or over a part of a reference; FIRN_NOT_ALLOCATED, also for a reference that
 * names no object of the pool; FIRN_MISUSE. Nothing is stored then. */
firn_status firn_store(firn_session *session, const void *object, size_t offset, const void *bytes, size_t len);

/* Makes the reference at byte `offset` of an object name `to`, or nothing if that is null.
 * Fails: FIRN_INVALID if no reference lies there, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_link(firn_session *session, const void *object, size_t offset, const void *to);

/* Bytes of an object, as requested; 0 if it is not one. An array's include its length. */
size_t firn_size(firn_session *session, const void *object);

/* Whether an object has this type. */
int firn_is(firn_session *session, const void *object, const firn_type *type);

/* Reads a field: a number, a structure or a reference, not an array. */
#define FIRN_LOAD(session, object, field) FIRN_LOADED(session, object, field)

/* Stores a field; returns a status. */
#define FIRN_STORE(session, object, field, stored)                                                                     \
	__extension__({                                                                                                \
		__typeof__((object)->field) firn_stored_ = (stored);                                                   \
		firn_store((session), (object), offsetof(__typeof__(*(object)), field), &firn_stored_,                 \
			   sizeof firn_stored_);                                                                       \
	})

/* The object that a reference field names, or null: the read barrier. */
#define FIRN_FOLLOW(session, object, field) firn_follow((session), &(object)->field)

/* Makes a reference field name an object, or nothing; returns a status. */
#define FIRN_LINK(session, object, field, to)                                                                          \
	firn_link((session), (object), offsetof(__typeof__(*(object)), field), (to))

/* An object of bytes ----------------------------------------------------------------------------------------- */

/* Number of bytes; 0 if it is not an object of bytes. */
size_t firn_bytes_len(firn_session *session, const void *object);

/* The bytes in place: for operations that only read. A transaction copies them with firn_bytes_copy.
 * Fails (null): FIRN_WRONG_TYPE, FIRN_MISUSE in a transaction. */
const void *firn_bytes(firn_session *session, const void *object, size_t *len);

/* Copies `len` of them from `offset` on.
 * Fails: FIRN_INVALID beyond their end, FIRN_WRONG_TYPE. */
firn_status firn_bytes_copy(firn_session *session, const void *object, size_t offset, void *into, size_t len);

/* Replaces `len` of them from `offset` on; their number stays.
 * Fails: FIRN_INVALID beyond their end, FIRN_WRONG_TYPE, FIRN_MISUSE. */
firn_status firn_bytes_store(firn_session *session, const void *object, size_t offset, const void *bytes, size_t len);

/* An array of references ------------------------------------------------------------------------------------- */

/* Number of references; 0 if it is not an array of references. */
size_t firn_refs_len(firn_session *session, const void *object);

/* The object that one of them names, or null.
 * Fails (null): FIRN_INVALID beyond the end, FIRN_WRONG_TYPE. */
const void *firn_refs_get(firn_session *session, const void *object, size_t index);

/* Makes one of them name an object, or nothing.
 * Fails: FIRN_INVALID beyond the end, FIRN_WRONG_TYPE, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_refs_set(firn_session *session, const void *object, size_t index, const void *to);

/* A word outside transactions -------------------------------------------------------------------------------- */

/* Stores `desired` in the word at byte `offset` if it holds `*expected`, in one locked instruction; otherwise stores
 * the word's value in `*expected`. Others see the change at once; it is durable after firn_persist. For counters and
 * flags, not for references. Call it in a reading operation, holding the lock that writers of the object take.
 * Fails: FIRN_CONFLICT if the word held something else; FIRN_INVALID, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_compare_exchange(firn_session *session, const void *object, size_t offset, uint64_t *expected,
				  uint64_t desired);

/* Makes the current value of the word at byte `offset`, or a later one, durable.
 * Fails: FIRN_INVALID, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_persist(firn_session *session, const void *object, size_t offset);

/* ---------------------------------------------------------------------------------------- roots and handles */

/* The object of the root `name`. If `type` is given, the object must have it.
 * Fails (null): FIRN_NOT_FOUND, FIRN_WRONG_TYPE. */
const void *firn_root(firn_session *session, const char *name, const firn_type *type);

/* The name of a root, for operations that look the root up often: each lookup takes a few loads. It means the same as
 * the name, in every pool and at any time, and any thread may use it. */
typedef struct firn_root_name firn_root_name;

/* Creates a root name; the root need not exist yet. The caller owns the name and drops it.
 * Fails (null): FIRN_INVALID for a name that no root can have. */
firn_root_name *firn_root_name_new(const char *name);

/* Drops a root name, which nobody may be using. Null is ignored. */
void firn_root_name_drop(firn_root_name *name);

/* As firn_root. */
const void *firn_root_named(firn_session *session, const firn_root_name *name, const firn_type *type);

/* Makes an object the root `name`, creating or replacing the root; removes the root if the object is null.
 * Fails: FIRN_TOO_LARGE for too many roots, FIRN_INVALID for the name, FIRN_NOT_FOUND for a missing root to remove,
 * FIRN_MISUSE. */
firn_status firn_set_root(firn_session *session, const char *name, const void *object);

/* A variable of the program that names an object across operations, wherever it is moved. */
typedef struct firn_handle firn_handle;

/* A handle that keeps its object alive. Created in an operation; the caller owns it and drops it.
 * Fails (null): FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_handle *firn_handle_strong(firn_session *session, const void *object);

/* A weak handle: it names nothing once its object was reclaimed. */
firn_handle *firn_handle_weak(firn_session *session, const void *object);

/* A handle's object; null for a weak handle whose object is gone, and for a handle of another pool. */
const void *firn_handle_get(firn_session *session, const firn_handle *handle);

/* Drops a handle. Null is ignored. Any thread may call this. */
void firn_handle_drop(firn_handle *handle);

/* ----------------------------------------------------------------------------------------------- collection */

/* Which pages count. */
typedef enum firn_pages {
	/* 2 MiB. */
	FIRN_HUGE_PAGES = 0,
	/* 4 KiB. */
	FIRN_SMALL_PAGES = 1
} firn_pages;

/* How a pool is kept compact. Zeros are the defaults. */
typedef struct firn_collecting {
	/* Ratio of page bytes to object bytes above which a collection starts; 0 for 1.5. */
	double trigger;
	/* Ratio at which it stops, at least 1 and below the trigger; 0 for 1.25. */
	double target;
	firn_pages pages;
	/* A pool with fewer bytes of pages is not collected; 0 for 4 MiB. */
	uint64_t least_bytes;
	/* Interval at which the ratio is polled, in microseconds; 0 for 10,000. */
	uint64_t interval_us;
} firn_collecting;

/* What a collection did. */
typedef struct firn_collected {
	uint64_t cycles;
	uint64_t moved_objects;
	uint64_t moved_bytes;
	/* Unreachable objects of a traced pool. */
	uint64_t reclaimed_objects;
	/* Bytes of pages held by objects above 1 MiB, which do not move. */
	uint64_t large_bytes;
	/* Not 0 if more could be gained but there was no room to move the first objects: the pool or its device is
	 * full to the last page. */
	int lacked_room;
} firn_collected;

/* Starts a thread that watches a pool and collects when its ratio is above the trigger (FFCCD, section 5). `how` may
 * be null.
 * Fails: FIRN_BUSY if one is running already, FIRN_INVALID, FIRN_IO. */
firn_status firn_init(firn_pool *pool, const firn_collecting *how);

/* Lets a running collection finish and ends the thread (FFCCD, section 5). firn_close does so, too.
 * Fails: with the error that stopped the thread, if any; it has ended all the same. FIRN_MISUSE if there is none. */
firn_status firn_exit(firn_pool *pool);

/* Completes what a crash interrupted: a collection, and the count of live objects (FFCCD, section 5). firn_open has
 * made the pool usable, so this is optional; until then, space that the crash left in doubt is not used. Takes time
 * proportional to the pool, during which all operations are stopped. This thread must have none open.
 * Fails: FIRN_BUSY, FIRN_READ_ONLY, FIRN_DAMAGED. */
firn_status firn_recovery(firn_pool *pool);

/* Collects now, down to the target: reclaims unreachable objects, compacts the others, and frees the emptied pages.
 * Other threads may continue meanwhile; this one must have no operation open. `how` and `collected` may be null.
 * Fails: FIRN_BUSY, FIRN_READ_ONLY, FIRN_DAMAGED, FIRN_NO_SPACE. */
firn_status firn_collect(firn_pool *pool, const firn_collecting *how, firn_collected *collected);

/* Bytes of pages that hold objects over the requested bytes of those objects; 1 for an empty pool, 0 for a null pool.
 */
double firn_ratio(firn_pool *pool, firn_pages pages);

/* Gives the blocks of free space back to the device; `*bytes`, which may be null, receives their size.
 * Fails: FIRN_IO. */
firn_status firn_release_free_space(firn_pool *pool, uint64_t *bytes);

/* Called for each problem found in a pool. */
typedef void (*firn_finding)(uint64_t at, const char *what, void *argument);

/* Checks the pool while no operation is open, and calls `finding`, which may be null, for each problem. `*findings`,
 * which may be null, receives their number.
 * Fails: FIRN_BUSY. */
firn_status firn_check(firn_pool *pool, firn_finding finding, void *argument, size_t *findings);

#ifdef __cplusplus
}
#endif

#include "firn/inline.h"

#endif /* FIRN_H */
