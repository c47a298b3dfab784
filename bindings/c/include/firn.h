/*
 * Firn: objects in a pool that survive crashes, with transactions, and a collector that moves them together while
 * the program runs.
 *
 *   pool         firn_create, firn_open, firn_close            one file
 *   session      firn_session_open, firn_session_close         a thread's access to a pool
 *   operation    firn_read_begin .. firn_read_end              to read
 *                firn_tx_begin .. firn_tx_commit               to change: all of it becomes durable, or nothing
 *   object       firn_alloc, FIRN_LOAD, FIRN_STORE             typed; a type says where its references are
 *   reference    firn_ref in the pool, FIRN_FOLLOW, FIRN_LINK  one word
 *
 * Pointers. A function that yields an object yields a pointer to its bytes in the pool. It is valid until the
 * operation ends in which it was obtained, and not a moment longer: between operations the collector may move the
 * object. What has to be kept longer is kept in the pool, or in a handle (firn_handle_strong). The bytes are
 * constant: they change through FIRN_STORE and FIRN_LINK alone, in a transaction.
 * A test finds pointers that are kept too long with FIRN_COLLECT=safepoints in its environment when it opens the pool:
 * then everything moves at the end of every operation.
 *
 * Transactions gather what they store and put it in place when they commit. So in a transaction that has stored
 * something an object is read with FIRN_LOAD, which sees it; the bytes that a pointer leads to are those of before.
 * In an operation that only reads, the two are the same.
 *
 * Failures. A function returns a status, or a pointer that is null when it fails; firn_last_status and
 * firn_last_message then say what went wrong, in this thread. A transaction in which a call failed that changes
 * something cannot be committed: firn_tx_commit rolls it back and returns the first failure. Looking something up
 * that is not there is no such failure.
 *
 * Threads. A pool may be used by all threads, each through a session of its own, which stays on the thread that
 * opened it. Reading an object that another thread may be changing needs the lock that both agree on
 * (firn_lock_shared, firn_lock_exclusive).
 *
 * Processes. A forked child of a program has its pools in its hands, and its parent goes on with them: every call fails
 * with FIRN_FORKED there. A child may exit, and destructors may run; it may open other pools, and the same ones once the
 * parent has closed them. Where a call cannot fail, through pointers, a child of fork(3) reads what was there at the
 * fork, or later, and what it stores stays its own. vfork and posix_spawn are as ever.
 *
 * Durable means: safe from the end of the process always; safe from a loss of power if the pool lies in persistent
 * memory (a file system with DAX). On an ordinary file firn_sync makes a point that survives that, too.
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

/* What became of a call. */
typedef enum firn_status {
	FIRN_OK = 0,
	/* An argument is null, out of range or contradicts another. Nothing was done. */
	FIRN_INVALID = 1,
	/* Called at the wrong moment: outside an operation, on another thread, on something closed. Nothing was done. */
	FIRN_MISUSE = 2,
	/* There is no such file, root or type. */
	FIRN_NOT_FOUND = 3,
	/* There is such a file, or such a root, already. */
	FIRN_EXISTS = 4,
	/* Another process, or another open of this one, has the pool. */
	FIRN_IN_USE = 5,
	/* The system refused. */
	FIRN_PERMISSION = 6,
	/* The system failed. */
	FIRN_IO = 7,
	/* The pool, or the device below it, is full. */
	FIRN_NO_SPACE = 8,
	/* An object, a transaction or a name is too large; all sessions, roots or types are taken. */
	FIRN_TOO_LARGE = 9,
	/* No object is allocated there: it was freed, belongs to another pool, or never was one. */
	FIRN_NOT_ALLOCATED = 10,
	/* An object, or a stored type, is not what the program takes it for. */
	FIRN_WRONG_TYPE = 11,
	/* Two transactions wait for each other: roll back and start over. firn_transaction does so. */
	FIRN_CONFLICT = 12,
	/* An operation stayed open, a session is open, or a collection is under way. */
	FIRN_BUSY = 13,
	/* The pool is open for reading. */
	FIRN_READ_ONLY = 14,
	/* The file is no pool, or one of another program. */
	FIRN_NOT_A_POOL = 15,
	/* The pool was not closed; open it for writing once. */
	FIRN_NEEDS_RECOVERY = 16,
	/* What lies in the pool makes no sense. */
	FIRN_DAMAGED = 17,
	/* The body of a transaction asked for its end. Never returned by the library on its own. */
	FIRN_ABORTED = 18,
	/* The library failed where it should not; the message says where. */
	FIRN_INTERNAL = 19,
	/* This is a forked child of the process that opened the pool, which goes on with it. */
	FIRN_FORKED = 20
} firn_status;

/* The status of this thread's last failure, FIRN_OK if there was none since it was last cleared. */
firn_status firn_last_status(void);

/* What it was, in a sentence that names the thing and the way out; "" if there was none. Valid until the next call
 * of this thread. */
const char *firn_last_message(void);

/* Forgets it. */
void firn_clear_status(void);

/* The name of a status, "FIRN_OK" for instance. */
const char *firn_status_name(firn_status status);

/* The library's version, "0.1.0" for instance. */
const char *firn_version(void);

/* --------------------------------------------------------------------------------------------------- types */

/* A reference to an object, as it lies in the pool. All zeros is the null reference. Its word changes when the
 * object is moved: compare what FIRN_FOLLOW yields instead, within one operation. */
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

/* A type. It must stay where it is as long as a pool is open that it was used with: make it static.
 *
 * In a pool a type's name has one version and one layout. A type that is used with another than is stored is refused,
 * and so is one whose references lead, as far as it says, to a type that would be. So a program that has an object
 * may follow its references without a check. What a table does not say cannot be compared; FIRN_LAYOUT says all. */
typedef struct firn_type {
	/* Unique within a pool. */
	const char *name;
	/* A changed layout needs a higher one, and a migration (firn_migrate). */
	uint32_t version;
	/* Bytes of an object, at most 8 of alignment. */
	uint32_t size;
	/* How many fields there are; with FIRN_MEMBERS added these are the fields of as many firn_members. */
	uint32_t field_count;
	const firn_field *fields;
} firn_type;

/* In firn_type.field_count: `fields` points to the first member's field. */
#define FIRN_MEMBERS ((uint32_t)1 << 31)

/* What a member is. */
typedef enum firn_member_kind {
	/* A reference, or an array of them. */
	FIRN_REFERENCE = 0,
	FIRN_UNSIGNED = 1,
	FIRN_SIGNED = 2,
	FIRN_FLOAT = 3,
	/* Bytes that the library knows no more of. */
	FIRN_OPAQUE = 4
} firn_member_kind;

/* A member of an object's structure, with all that is to be said of it. */
typedef struct firn_member {
	firn_field field;
	/* A firn_member_kind. */
	uint32_t kind;
	/* Bytes of an element, if it is an array; otherwise all of them. */
	uint32_t element;
	/* Yields the type that references lead to, the same each time. Null if that is not said: for objects of
	 * bytes, arrays of references, and objects of several types. */
	const firn_type *(*to)(void);
} firn_member;

/* Defines the static firn_type `variable` for objects of the C type `c_type`, with the names of all its fields that
 * are references or arrays of them, at least one and at most 16:
 *
 *     struct node { firn_ref next; firn_ref kids[4]; uint64_t key; };
 *     FIRN_TYPE(node_type, struct node, "node", 1, next, kids);
 *
 * A reference that is not named is not followed: what only it refers to is reclaimed. */
#define FIRN_TYPE(variable, c_type, name, version, ...)                                                                \
	static const firn_field variable##_fields[] = {FIRN_EACH(FIRN_FIELD, c_type, __VA_ARGS__)};                    \
	static const firn_type variable = {name, version, FIRN_SIZE_OF(c_type),                                        \
					   sizeof variable##_fields / sizeof variable##_fields[0], variable##_fields}

/* Defines the static firn_type `variable` with all its members, at most 16, each in parentheses: a reference with the
 * variable of the type that it leads to, anything else alone. What is so said is compared with the pool when the type
 * is used first, and so are the types that its references lead to. At file scope, in any order:
 *
 *     struct list { firn_ref first; uint64_t len; };
 *     struct node { firn_ref next; firn_ref list; uint64_t key; };
 *     FIRN_LAYOUT(list_type, struct list, "list", 1, (first, node_type), (len));
 *     FIRN_LAYOUT(node_type, struct node, "node", 1, (next, node_type), (list, list_type), (key));
 *
 * The type of a reference that may lead to more than one, or to an object of bytes, is firn_any. */
#define FIRN_LAYOUT(variable, c_type, name, version, ...)                                                              \
	static inline const firn_type FIRN_EACH(FIRN_TYPE_LED_TO, c_type, __VA_ARGS__);                                \
	static const firn_member variable##_members[] = {FIRN_EACH(FIRN_MEMBER, c_type, __VA_ARGS__)};                 \
	static const firn_type variable = {                                                                            \
		name, version, FIRN_SIZE_OF(c_type),                                                                   \
		FIRN_MEMBERS + (uint32_t)(sizeof variable##_members / sizeof variable##_members[0]),                   \
		&variable##_members[0].field};                                                                         \
	/* No reference need lead to the type. */                                                                      \
	__attribute__((unused)) static inline const firn_type *variable##_led_to(void)                                 \
	{                                                                                                              \
		return &variable;                                                                                      \
	}                                                                                                              \
	static inline const firn_type *variable##_led_to(void)

/* Where FIRN_LAYOUT does not say which type a reference leads to. */
static inline const firn_type *firn_any_led_to(void)
{
	return NULL;
}

/* The same for a type without references, of whose members nothing is said. */
#define FIRN_TYPE_WITHOUT_REFERENCES(variable, c_type, name, version)                                                  \
	static const firn_type variable = {name, version, FIRN_SIZE_OF(c_type), 0, NULL}

/* ---------------------------------------------------------------------------------------------------- pools */

/* An open pool. */
typedef struct firn_pool firn_pool;

/* What decides which objects live. */
typedef enum firn_kind {
	/* What can be reached from a root. The rest is reclaimed, so nothing leaks; freeing is possible and sooner. */
	FIRN_TRACED = 0,
	/* What was allocated and not freed. */
	FIRN_EXPLICIT = 1
} firn_kind;

/* How persistent the memory is taken to be. */
typedef enum firn_domain {
	/* As it is. */
	FIRN_AS_IT_IS = 0,
	/* Persistent with write-backs and fences, whatever it is: to measure code for persistent memory elsewhere. It
	 * promises nothing about a loss of power then. */
	FIRN_ASSUME_ADR = 1,
	/* The same, caches included. */
	FIRN_ASSUME_EADR = 2
} firn_domain;

/* How a pool is created or opened. Zeros are the defaults. */
typedef struct firn_options {
	/* What the program calls the pool's content, up to 64 bytes; checked when it is opened. Null is "". */
	const char *layout;
	/* The most bytes that the pool may have; stored with it, so the limit holds for every program that opens it. 0 makes
	 * a pool that grows up to its capacity, and opens one with the limit that it has; another number changes that, and
	 * UINT64_MAX takes it away. A transaction's log may take as much again while it runs; firn_close cuts that off. */
	uint64_t max_bytes;
	/* Bytes of address space to reserve: how far it can grow while it is open; 0 for 1 TiB. */
	uint64_t capacity;
	/* Sessions at one time, at most 64, which is what 0 stands for. Looked at when the pool is created. */
	uint32_t sessions;
	/* Looked at when the pool is created. */
	firn_kind kind;
	firn_domain domain;
	/* Not 0: the pool may lie on any file system. By itself a pool is opened for writing only where a store to blocks
	 * that it has needs no others: ext2, ext3, ext4, xfs, tmpfs, DAX. Elsewhere (btrfs, overlayfs, NFS) a store on a
	 * full disk ends the program with SIGBUS. */
	int any_file_system;
} firn_options;

/* Makes a pool in a new file, or in memory that goes with the process if `path` is null. `options` may be null.
 * The pool belongs to the caller, who closes it.
 * The file appears whole: it is made under another name, `.NAME.firn-new`, and gets its own last. What a killed
 * program left under the other name is removed; while another process makes the same pool, this fails with FIRN_EXISTS.
 * Fails: FIRN_EXISTS, FIRN_PERMISSION, FIRN_NO_SPACE, FIRN_INVALID, FIRN_IO; no file is left behind.
 * Durable on return: an empty pool. */
firn_status firn_create(const char *path, const firn_options *options, firn_pool **pool);

/* Opens the pool in a file, and recovers it if it was not closed: what was committed is there, what was not is not.
 * That takes time in the work that was in flight, not in the size of the pool.
 * A pool that was open on an ordinary file when the machine went down is FIRN_DAMAGED; firn_salvage makes a new one of it.
 * Fails: FIRN_IN_USE if another process has it open, or this one has it or a copy of it open for storing (firn copy
 * --new-id makes copies that are pools of their own); FIRN_NOT_FOUND, FIRN_NOT_A_POOL, FIRN_DAMAGED, FIRN_PERMISSION,
 * FIRN_INVALID, FIRN_IO. */
firn_status firn_open(const char *path, const firn_options *options, firn_pool **pool);

/* Opens the pool in a file without ever storing to it, beside other readers.
 * Fails: as firn_open, and FIRN_NEEDS_RECOVERY. */
firn_status firn_open_read_only(const char *path, const firn_options *options, firn_pool **pool);

/* What firn_salvage found. */
typedef struct firn_salvaged {
	/* Objects in the new pool, and their bytes. */
	uint64_t objects;
	uint64_t bytes;
	/* References to what is lost: null in the new pool. */
	uint64_t lost_references;
	/* Roots whose objects are lost: not in the new pool. */
	uint64_t lost_roots;
	/* Places that made no sense; a thousand are counted. */
	uint64_t findings;
} firn_salvaged;

/* Makes a new pool, in the file `new_path`, of what is whole in a pool that was open on an ordinary file when the
 * machine went down, which firn_open refuses with FIRN_DAMAGED. The old file is only read. What makes sense and can be
 * reached is copied; what refers to the rest becomes null. A pool of a program that was written for libpmemobj is taken
 * as it is, if nothing in it makes no sense, or not at all. `tell`, if it is not null, is called with a sentence for
 * each loss, which lasts as long as the call, and with `context`. `salvaged`, if it is not null, gets the numbers.
 *
 * Bytes of an object that are no references have no checksum: whether they are the last ones nothing can tell.
 *
 * `options` are those of both pools; what the new one is like the old one says. It may be null.
 * Fails: FIRN_NOT_FOUND, FIRN_IN_USE, FIRN_NOT_A_POOL, FIRN_DAMAGED, FIRN_EXISTS, FIRN_NO_SPACE, FIRN_PERMISSION,
 * FIRN_IO; there is no new file then. Durable on return: the new pool, closed. */
firn_status firn_salvage(const char *path, const char *new_path, const firn_options *options,
			 void (*tell)(const char *what, void *context), void *context, firn_salvaged *salvaged);

/* Closes a pool, which is not to be used afterwards. A null pool is none. Any thread may.
 * Fails: FIRN_BUSY while sessions or handles are open or a collection is under way: the pool stays open then. */
firn_status firn_close(firn_pool *pool);

/* Bytes beyond which a pool does not grow; 0 where only its capacity says, and of a pool that is none. */
uint64_t firn_limit(firn_pool *pool);

/* Makes everything committed so far durable on the device, whatever it is. This thread may have no operation open.
 * Fails: FIRN_BUSY, FIRN_IO. */
firn_status firn_sync(firn_pool *pool);

/* Registers a type before its first use, so that no transaction has to.
 * The types that its references lead to are registered along with it.
 * Fails: FIRN_WRONG_TYPE if one of them is stored with another layout or version; FIRN_INVALID; FIRN_TOO_LARGE if there
 * are too many. Durable on return: all of them, or none. */
firn_status firn_register(firn_pool *pool, const firn_type *type);

/* Makes a new object of an old one, which are as long as their types. The new one holds zeros before; references are
 * copied from the old one as they are. It must come back. */
typedef void (*firn_convert)(const void *old_object, void *new_object, void *argument);

/* Turns every object of type `from` into one of type `to`, which has the same name and a higher version: every one that
 * can be reached, and in an explicit pool every one that is allocated. What lies behind an old object's type goes along.
 * `*objects`, which may be null, is how many there were: none if the pool has that version already.
 * Comes before any session. Until it has succeeded a pool in which it has begun opens no session, in no program.
 * Fails: FIRN_BUSY while sessions or handles are open or a collection is under way, FIRN_WRONG_TYPE if the pool has
 * another version or layout, FIRN_MISUSE if the types do not belong together, FIRN_READ_ONLY, FIRN_NO_SPACE,
 * FIRN_DAMAGED, FIRN_INVALID. Durable on return; after a crash or a failure midway call it again. */
firn_status firn_migrate(firn_pool *pool, const firn_type *from, const firn_type *to, firn_convert convert,
			 void *argument, uint64_t *objects);

/* ------------------------------------------------------------------------------------------------- sessions */

/* A thread's access to a pool. The fields are the library's: its inline functions read them. */
typedef struct firn_session {
	/* Where in memory the object would begin that lies at byte 0 of the pool. */
	const unsigned char *objects;
	/* The bits of a reference that say where an object lies. */
	uint64_t mask;
	/* The bits of a reference that say in which pool. */
	uint64_t pool;
	/* Zero while reading needs no help: no object is being moved, nothing was stored. */
	uint64_t flags;
} firn_session;

/* In firn_session.flags: no operation is open; objects are being moved; the transaction has stored something. */
#define FIRN_QUIET ((uint64_t)1)
#define FIRN_MOVING ((uint64_t)2)
#define FIRN_STORED ((uint64_t)4)

/* Opens a session for the calling thread, who closes it.
 * Fails: FIRN_TOO_LARGE when all are in use, FIRN_NO_SPACE. */
firn_status firn_session_open(firn_pool *pool, firn_session **session);

/* Closes a session, which is not to be used afterwards. A null one is none.
 * Fails: FIRN_MISUSE if an operation is open or the thread is another: the session stays open then. */
firn_status firn_session_close(firn_session *session);

/* ----------------------------------------------------------------------------------------------- operations */

/* Begins an operation that reads, or one within it, or within a transaction; each needs its own end.
 * Fails: FIRN_MISUSE on another thread. */
firn_status firn_read_begin(firn_session *session);

/* Ends it. What was obtained in the outermost one is no longer valid, its locks are given back.
 * Fails: FIRN_MISUSE if none is open. */
firn_status firn_read_end(firn_session *session);

/* Begins a transaction, or a part of the one that is open, which can be rolled back by itself.
 * Fails: FIRN_MISUSE inside an operation that reads, FIRN_READ_ONLY. */
firn_status firn_tx_begin(firn_session *session);

/* Commits. Durable on return, with one fence; before that fence nothing of it survives a crash. The commit of a part
 * leaves what it did to the rest of the transaction.
 * Fails: with the first failure of a call in it; FIRN_NO_SPACE, FIRN_TOO_LARGE. It was rolled back then: there is
 * nothing left to end. FIRN_MISUSE if none is open. */
firn_status firn_tx_commit(firn_session *session);

/* Rolls a transaction, or the innermost part of it, back.
 * Fails: FIRN_MISUSE if none is open. */
firn_status firn_tx_abort(firn_session *session);

/* What a transaction does; any other status than FIRN_OK rolls it back. */
typedef firn_status (*firn_body)(firn_session *session, void *argument);

/* Runs a transaction: begins it, calls `body`, and commits or rolls back. After FIRN_CONFLICT it starts over, so
 * what `body` does outside the pool should be harmless to repeat. Inside a transaction it runs a part of it.
 * Fails: with what `body` returns, and as firn_tx_commit. */
firn_status firn_transaction(firn_session *session, firn_body body, void *argument);

/* Takes the lock with this number for reading, to the end of the operation. All structures that a number is chosen
 * for have locks of their own (firn_new_lock).
 * Fails: FIRN_CONFLICT in a transaction that would have to wait against the order of locks. */
firn_status firn_lock_shared(firn_session *session, uint64_t lock);

/* Takes it for writing, to the end of the transaction.
 * Fails: FIRN_CONFLICT, FIRN_MISUSE outside a transaction. */
firn_status firn_lock_exclusive(firn_session *session, uint64_t lock);

/* A new number for a lock; store it in the structure that it is for. 0 if the session is none. */
uint64_t firn_new_lock(firn_session *session);

/* -------------------------------------------------------------------------------------------------- objects */

/* Allocates an object and stores a copy of `front` in it, type->size bytes; zeros if that is null. References in
 * `front` are made by firn_reference. The object is there when the transaction has committed; in a traced pool it is
 * reclaimed once no root leads to it.
 * Fails (null): FIRN_NO_SPACE, FIRN_NOT_ALLOCATED for a reference that names no object of the pool, FIRN_WRONG_TYPE,
 * FIRN_MISUSE. */
const void *firn_alloc(firn_session *session, const firn_type *type, const void *front);

/* The same for an object of `bytes` bytes, at least type->size, of which the first `front_bytes` are copied and the
 * others zero: for a structure with an array at its end. What lies behind type->size holds no references. */
const void *firn_alloc_sized(firn_session *session, const firn_type *type, const void *front, size_t front_bytes,
			     size_t bytes);

/* Allocates an object that holds a copy of `len` bytes, and its length. It has no type of the program's. */
const void *firn_alloc_bytes(firn_session *session, const void *bytes, size_t len);

/* Allocates an array of `len` null references. */
const void *firn_alloc_refs(firn_session *session, size_t len);

/* Frees an object when the transaction commits. In a traced pool nothing may refer to it then; what still does would
 * come to name whatever is allocated there next. That it was freed twice the commit says.
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

/* Bytes of an object, as the program asked for them; 0 if it is none. Those of an array include its length. */
size_t firn_size(firn_session *session, const void *object);

/* Whether an object has this type. */
int firn_is(firn_session *session, const void *object, const firn_type *type);

/* Reads a field: a number, a structure or a reference, not an array. */
#define FIRN_LOAD(session, object, field)                                                                              \
	__extension__({                                                                                                \
		union {                                                                                                \
			unsigned char bytes[sizeof((object)->field)];                                                  \
			__typeof__((object)->field) value;                                                             \
		} firn_loaded_;                                                                                        \
		firn_load_field((session), (object), offsetof(__typeof__(*(object)), field), firn_loaded_.bytes,      \
				sizeof firn_loaded_.bytes);                                                            \
		firn_loaded_.value;                                                                                    \
	})

/* Stores a field; yields a status. */
#define FIRN_STORE(session, object, field, stored)                                                                     \
	__extension__({                                                                                                \
		__typeof__((object)->field) firn_stored_ = (stored);                                                   \
		firn_store((session), (object), offsetof(__typeof__(*(object)), field), &firn_stored_,                 \
			   sizeof firn_stored_);                                                                       \
	})

/* The object that a reference field names, or null: the read barrier. */
#define FIRN_FOLLOW(session, object, field) firn_follow((session), &(object)->field)

/* Makes a reference field name an object, or nothing; yields a status. */
#define FIRN_LINK(session, object, field, to)                                                                          \
	firn_link((session), (object), offsetof(__typeof__(*(object)), field), (to))

/* An object of bytes ----------------------------------------------------------------------------------------- */

/* How many bytes it holds; 0 if it is none. */
size_t firn_bytes_len(firn_session *session, const void *object);

/* The bytes, where they lie: for operations that only read. A transaction copies them with firn_bytes_copy.
 * Fails (null): FIRN_WRONG_TYPE, FIRN_MISUSE in a transaction. */
const void *firn_bytes(firn_session *session, const void *object, size_t *len);

/* Copies `len` of them from `offset` on.
 * Fails: FIRN_INVALID beyond their end, FIRN_WRONG_TYPE. */
firn_status firn_bytes_copy(firn_session *session, const void *object, size_t offset, void *into, size_t len);

/* Replaces `len` of them from `offset` on; their number stays.
 * Fails: FIRN_INVALID beyond their end, FIRN_WRONG_TYPE, FIRN_MISUSE. */
firn_status firn_bytes_store(firn_session *session, const void *object, size_t offset, const void *bytes, size_t len);

/* An array of references ------------------------------------------------------------------------------------- */

/* How many references it holds; 0 if it is none. */
size_t firn_refs_len(firn_session *session, const void *object);

/* The object that one of them names, or null.
 * Fails (null): FIRN_INVALID beyond the end, FIRN_WRONG_TYPE. */
const void *firn_refs_get(firn_session *session, const void *object, size_t index);

/* Makes one of them name an object, or nothing.
 * Fails: FIRN_INVALID beyond the end, FIRN_WRONG_TYPE, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_refs_set(firn_session *session, const void *object, size_t index, const void *to);

/* A word outside transactions -------------------------------------------------------------------------------- */

/* Stores `desired` in the word at byte `offset` if it holds `*expected`, in one locked instruction, and otherwise puts
 * what it holds in `*expected`. Others see it at once; durable it is after firn_persist. For counters and flags, not
 * for references. In an operation that reads, with the lock held that writers of the object take.
 * Fails: FIRN_CONFLICT if the word held something else; FIRN_INVALID, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_compare_exchange(firn_session *session, const void *object, size_t offset, uint64_t *expected,
				  uint64_t desired);

/* Makes the word at byte `offset` durable as it is, or later.
 * Fails: FIRN_INVALID, FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_status firn_persist(firn_session *session, const void *object, size_t offset);

/* ---------------------------------------------------------------------------------------- roots and handles */

/* The object of the root `name`. With a type it must have that one.
 * Fails (null): FIRN_NOT_FOUND, FIRN_WRONG_TYPE. */
const void *firn_root(firn_session *session, const char *name, const firn_type *type);

/* The name of a root, kept for operations that look the root up often: each turns it into the root's object in a few
 * loads. It means what the name means, in every pool and at every moment, and any thread may use it. */
typedef struct firn_root_name firn_root_name;

/* A name of a root, which need not be there yet. Belongs to the caller, who drops it.
 * Fails (null): FIRN_INVALID for a name that no root can have. */
firn_root_name *firn_root_name_new(const char *name);

/* Drops one. A null one is none. Nobody uses it meanwhile. */
void firn_root_name_drop(firn_root_name *name);

/* As firn_root. */
const void *firn_root_named(firn_session *session, const firn_root_name *name, const firn_type *type);

/* Makes an object the root `name`, a new one or instead of another; removes the root if it is null.
 * Fails: FIRN_TOO_LARGE for too many roots, FIRN_INVALID for the name, FIRN_NOT_FOUND for a root to be removed,
 * FIRN_MISUSE. */
firn_status firn_set_root(firn_session *session, const char *name, const void *object);

/* A variable of the program that names an object across operations, wherever it is moved. */
typedef struct firn_handle firn_handle;

/* A handle that keeps its object alive. Made in an operation; belongs to the caller, who drops it.
 * Fails (null): FIRN_NOT_ALLOCATED, FIRN_MISUSE. */
firn_handle *firn_handle_strong(firn_session *session, const void *object);

/* A handle that names nothing any more once its object was reclaimed. */
firn_handle *firn_handle_weak(firn_session *session, const void *object);

/* The object that a handle names; null for a weak one whose object is gone, and for one of another pool. */
const void *firn_handle_get(firn_session *session, const firn_handle *handle);

/* Drops a handle. A null one is none. Any thread may. */
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
	/* Bytes of pages over bytes of objects at which objects begin to move; 0 for 1.5. */
	double trigger;
	/* The same at which that ends, at least 1 and below the trigger; 0 for 1.25. */
	double target;
	firn_pages pages;
	/* Bytes of pages below which nothing moves; 0 for 4 MiB. */
	uint64_t least_bytes;
	/* How often the ratio is looked at, in microseconds; 0 for 10,000. */
	uint64_t interval_us;
} firn_collecting;

/* What a collection did. */
typedef struct firn_collected {
	uint64_t cycles;
	uint64_t moved_objects;
	uint64_t moved_bytes;
	/* Objects of a traced pool that nothing reached. */
	uint64_t reclaimed_objects;
	/* Bytes of pages that objects above 1 MiB hold, which do not move. */
	uint64_t large_bytes;
	/* Not 0 if nothing moved where something was to be won, because there was no room for the first objects: the pool
	 * is full to its last page, or its device is. */
	int lacked_room;
} firn_collected;

/* Starts a thread that watches a pool, and collects when its ratio is above the trigger (FFCCD, section 5). `how` may
 * be null.
 * Fails: FIRN_BUSY if one watches already, FIRN_INVALID, FIRN_IO. */
firn_status firn_init(firn_pool *pool, const firn_collecting *how);

/* Lets the collection that is under way finish and ends the thread (FFCCD, section 5). firn_close does so, too.
 * Fails: with what made the thread give up, if it did; it is ended all the same. FIRN_MISUSE if there is none. */
firn_status firn_exit(firn_pool *pool);

/* Ends what a crash interrupted: a collection, and the count of what lives (FFCCD, section 5). firn_open has made the
 * pool usable and this need not be called; until somebody does, space that the crash left in doubt is not used. Takes
 * time in the size of the pool, and stops all operations for it. This thread may have none open.
 * Fails: FIRN_BUSY, FIRN_READ_ONLY, FIRN_DAMAGED. */
firn_status firn_recovery(firn_pool *pool);

/* Collects now, down to the target: reclaims what cannot be reached, moves objects together, frees the pages they
 * leave. Other threads may go on meanwhile; this one may have no operation open. `how` and `collected` may be null.
 * Fails: FIRN_BUSY, FIRN_READ_ONLY, FIRN_DAMAGED, FIRN_NO_SPACE. */
firn_status firn_collect(firn_pool *pool, const firn_collecting *how, firn_collected *collected);

/* Bytes of pages that hold objects over the bytes of those objects, as they were asked for; 1 for an empty pool, 0 for
 * no pool. */
double firn_ratio(firn_pool *pool, firn_pages pages);

/* Gives the blocks of free space back to the device; `*bytes`, which may be null, says how many.
 * Fails: FIRN_IO. */
firn_status firn_release_free_space(firn_pool *pool, uint64_t *bytes);

/* Is told of each thing that is wrong with a pool. */
typedef void (*firn_finding)(uint64_t at, const char *what, void *argument);

/* Walks the pool while no operation is open, and tells `finding`, which may be null, of each thing that is wrong.
 * `*findings`, which may be null, is their number.
 * Fails: FIRN_BUSY. */
firn_status firn_check(firn_pool *pool, firn_finding finding, void *argument, size_t *findings);

/* ------------------------------------------------------------------------------------- what is inline of it */

/* The way of firn_follow where objects are being moved or the transaction has stored something. */
const void *firn_follow_slow(firn_session *session, const firn_ref *field);

#define FIRN_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* The object that the reference at `field`, in the pool, names, or null: the read barrier. One test, one load. */
static inline const void *firn_follow(firn_session *session, const firn_ref *field)
{
	if (FIRN_LIKELY(session->flags == 0)) {
		uint64_t word = __atomic_load_n(&field->word, __ATOMIC_RELAXED);
		return word & ~(uint64_t)15 ? session->objects + (word & session->mask) : NULL;
	}
	return firn_follow_slow(session, field);
}

/* The reference that names an object, or nothing: to be stored in this operation. */
static inline firn_ref firn_reference(const firn_session *session, const void *object)
{
	firn_ref reference = {0};
	if (object != NULL)
		reference.word = session->pool | (uint64_t)((const unsigned char *)object - session->objects);
	return reference;
}

/* Reads a field. */
static inline void firn_load_field(firn_session *session, const void *object, size_t offset, void *into, size_t len)
{
	if (FIRN_LIKELY((session->flags & (FIRN_STORED | FIRN_QUIET)) == 0))
		memcpy(into, (const unsigned char *)object + offset, len);
	else if (firn_load(session, object, offset, into, len) != FIRN_OK)
		memset(into, 0, len);
}

/* Macros over the fields of a type ---------------------------------------------------------------------------- */

#define FIRN_FIELD(c_type, field)                                                                                      \
	{                                                                                                              \
		#field, (uint32_t)offsetof(c_type, field),                                                             \
			(uint32_t)(sizeof(((c_type *)0)->field) +                                                      \
				   0 * sizeof(char[sizeof(((c_type *)0)->field) % sizeof(firn_ref) == 0 ? 1 : -1]))    \
	}
/* Of a member in parentheses, (field) or (field, type). */
#define FIRN_MEMBER(c_type, member) FIRN_MEMBER_OF(c_type, FIRN_UNPACKED member)
#define FIRN_MEMBER_OF(c_type, ...) FIRN_PICK_MEMBER(__VA_ARGS__, FIRN_LEADING, FIRN_OTHER, )(c_type, __VA_ARGS__)
#define FIRN_UNPACKED(...) __VA_ARGS__
#define FIRN_PICK_MEMBER(_1, _2, picked, ...) picked
#define FIRN_LEADING(c_type, field, type) {FIRN_FIELD(c_type, field), FIRN_REFERENCE, sizeof(firn_ref), type##_led_to}
#define FIRN_OTHER(c_type, field)                                                                                      \
	{                                                                                                              \
		{#field, (uint32_t)offsetof(c_type, field), (uint32_t)sizeof(((c_type *)0)->field)}, FIRN_OPAQUE,      \
			(uint32_t)sizeof(((c_type *)0)->field) + FIRN_IS_NO_REFERENCE(c_type, field), NULL             \
	}
/* Zero; a reference whose type is not said does not compile, because nothing would follow it. */
#ifdef __cplusplus
#define FIRN_IS_NO_REFERENCE(c_type, field) 0
#else
#define FIRN_IS_NO_REFERENCE(c_type, field)                                                                            \
	0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((c_type *)0)->field), firn_ref) ? -1 : 1])
#endif
/* Declares what yields its type, which may be defined further down. */
#define FIRN_TYPE_LED_TO(c_type, member) FIRN_TYPE_LED_TO_OF(FIRN_UNPACKED member)
#define FIRN_TYPE_LED_TO_OF(...) FIRN_PICK_MEMBER(__VA_ARGS__, FIRN_DECLARED, FIRN_UNDECLARED, )(__VA_ARGS__)
#define FIRN_DECLARED(field, type) *type##_led_to(void)
#define FIRN_UNDECLARED(field) *firn_any_led_to(void)
/* Objects are aligned to 8 bytes. */
#define FIRN_SIZE_OF(c_type) ((uint32_t)(sizeof(c_type) + 0 * sizeof(char[__alignof__(c_type) <= 8 ? 1 : -1])))
#define FIRN_EACH(what, c_type, ...)                                                                                   \
	FIRN_PICK(__VA_ARGS__, FIRN_16, FIRN_15, FIRN_14, FIRN_13, FIRN_12, FIRN_11, FIRN_10, FIRN_9, FIRN_8, FIRN_7,  \
		  FIRN_6, FIRN_5, FIRN_4, FIRN_3, FIRN_2, FIRN_1, )                                                    \
	(what, c_type, __VA_ARGS__)
#define FIRN_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, picked, ...) picked
#define FIRN_1(what, c_type, field) what(c_type, field)
#define FIRN_2(what, c_type, field, ...) what(c_type, field), FIRN_1(what, c_type, __VA_ARGS__)
#define FIRN_3(what, c_type, field, ...) what(c_type, field), FIRN_2(what, c_type, __VA_ARGS__)
#define FIRN_4(what, c_type, field, ...) what(c_type, field), FIRN_3(what, c_type, __VA_ARGS__)
#define FIRN_5(what, c_type, field, ...) what(c_type, field), FIRN_4(what, c_type, __VA_ARGS__)
#define FIRN_6(what, c_type, field, ...) what(c_type, field), FIRN_5(what, c_type, __VA_ARGS__)
#define FIRN_7(what, c_type, field, ...) what(c_type, field), FIRN_6(what, c_type, __VA_ARGS__)
#define FIRN_8(what, c_type, field, ...) what(c_type, field), FIRN_7(what, c_type, __VA_ARGS__)
#define FIRN_9(what, c_type, field, ...) what(c_type, field), FIRN_8(what, c_type, __VA_ARGS__)
#define FIRN_10(what, c_type, field, ...) what(c_type, field), FIRN_9(what, c_type, __VA_ARGS__)
#define FIRN_11(what, c_type, field, ...) what(c_type, field), FIRN_10(what, c_type, __VA_ARGS__)
#define FIRN_12(what, c_type, field, ...) what(c_type, field), FIRN_11(what, c_type, __VA_ARGS__)
#define FIRN_13(what, c_type, field, ...) what(c_type, field), FIRN_12(what, c_type, __VA_ARGS__)
#define FIRN_14(what, c_type, field, ...) what(c_type, field), FIRN_13(what, c_type, __VA_ARGS__)
#define FIRN_15(what, c_type, field, ...) what(c_type, field), FIRN_14(what, c_type, __VA_ARGS__)
#define FIRN_16(what, c_type, field, ...) what(c_type, field), FIRN_15(what, c_type, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif /* FIRN_H */
