/*
 * Transactions with their stages. A part of firn/pmemobj.h, which includes it.
 */
#ifndef FIRN_PMEMOBJ_TRANSACTIONS_H
#define FIRN_PMEMOBJ_TRANSACTIONS_H

#include "locks.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/* Older names. */
#define TX_LOCK_NONE TX_PARAM_NONE
#define TX_LOCK_MUTEX TX_PARAM_MUTEX
#define TX_LOCK_RWLOCK TX_PARAM_RWLOCK
#define TX_BEGIN_LOCK TX_BEGIN_PARAM

typedef void (*pmemobj_tx_callback)(PMEMobjpool *pop, enum pobj_tx_stage stage, void *arg);

#define POBJ_XADD_NO_FLUSH POBJ_FLAG_NO_FLUSH
#define POBJ_XADD_NO_SNAPSHOT POBJ_FLAG_NO_SNAPSHOT
#define POBJ_XADD_ASSUME_INITIALIZED POBJ_FLAG_ASSUME_INITIALIZED
#define POBJ_XADD_NO_ABORT POBJ_FLAG_TX_NO_ABORT
#define POBJ_XADD_VALID_FLAGS                                                                                          \
	(POBJ_XADD_NO_FLUSH | POBJ_XADD_NO_SNAPSHOT | POBJ_XADD_ASSUME_INITIALIZED | POBJ_XADD_NO_ABORT)
#define POBJ_XLOCK_NO_ABORT POBJ_FLAG_TX_NO_ABORT
#define POBJ_XLOCK_VALID_FLAGS POBJ_XLOCK_NO_ABORT
#define POBJ_XFREE_NO_ABORT POBJ_FLAG_TX_NO_ABORT
#define POBJ_XFREE_VALID_FLAGS POBJ_XFREE_NO_ABORT

int firn_pobj_tx_begin(PMEMobjpool *pop, void *environment, pmemobj_tx_callback callback, void *arg)
	FIRN_POBJ_AS(tx_begin);
int firn_pobj_tx_keep_lock(void *lock, void (*unlock)(void *)) FIRN_POBJ_AS(tx_keep_lock);
int firn_pobj_tx_holds(void *lock) FIRN_POBJ_AS(tx_holds);
void *firn_pobj_tx_environment(void) FIRN_POBJ_AS(tx_environment);
void firn_pobj_tx_abort(int errnum) FIRN_POBJ_AS(tx_abort);
int firn_pobj_tx_end(void) FIRN_POBJ_AS(tx_end);
enum pobj_tx_stage firn_pobj_tx_process(void) FIRN_POBJ_AS(tx_process);
int firn_pobj_tx_add_range(PMEMoid oid, uint64_t off, size_t size, uint64_t flags) FIRN_POBJ_AS(tx_add_range);
int firn_pobj_tx_add_direct(const void *ptr, size_t size, uint64_t flags) FIRN_POBJ_AS(tx_add_direct);
PMEMoid firn_pobj_tx_alloc(size_t size, uint64_t type_num, uint64_t flags, const void *from, size_t len)
	FIRN_POBJ_AS(tx_alloc);
PMEMoid firn_pobj_tx_realloc(PMEMoid oid, size_t size, uint64_t type_num) FIRN_POBJ_AS(tx_realloc);
int firn_pobj_tx_free(PMEMoid oid, uint64_t flags) FIRN_POBJ_AS(tx_free);
int firn_pobj_tx_check_lock(int type, uint64_t flags) FIRN_POBJ_AS(tx_check_lock);

/* What a failed call does in a transaction: it aborts it, or only returns the failure. A nested transaction begins with
 * the behavior of the one around it. */
enum pobj_tx_failure_behavior { POBJ_TX_FAILURE_ABORT, POBJ_TX_FAILURE_RETURN };

void pmemobj_tx_set_failure_behavior(enum pobj_tx_failure_behavior behavior) FIRN_POBJ_AS(tx_set_failure_behavior);
enum pobj_tx_failure_behavior pmemobj_tx_get_failure_behavior(void) FIRN_POBJ_AS(tx_failure_behavior);
int firn_pobj_tx_returns(void) FIRN_POBJ_AS(tx_returns);

/* A word of the program that is attached to the open transaction; null when it begins. */
void pmemobj_tx_set_user_data(void *data) FIRN_POBJ_AS(tx_set_user_data);
void *pmemobj_tx_get_user_data(void) FIRN_POBJ_AS(tx_user_data);

enum pobj_tx_stage pmemobj_tx_stage(void) FIRN_POBJ_AS(tx_stage);
int pmemobj_tx_errno(void) FIRN_POBJ_AS(tx_errno);
void pmemobj_tx_commit(void) FIRN_POBJ_AS(tx_commit);

/* Aborts the innermost transaction and enters its stage ONABORT. */
static inline void pmemobj_tx_abort(int errnum)
{
	jmp_buf *environment = (jmp_buf *)firn_pobj_tx_environment();
	int is_at_work = pmemobj_tx_stage() == TX_STAGE_WORK;
	firn_pobj_tx_abort(errnum);
	if (is_at_work && environment != NULL)
		longjmp(*environment, 1);
}

/* A call failed: the transaction is aborted unless the flags, or its failure behavior, say otherwise. */
static inline int firn_pobj_tx_result(int failed, uint64_t flags)
{
	if (failed != 0) {
		errno = failed;
		if ((flags & POBJ_XADD_NO_ABORT) == 0 && !firn_pobj_tx_returns())
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
	(void)firn_pobj_mutex_unlock(lock);
}

static inline void firn_pobj_unlock_rwlock(void *lock)
{
	(void)firn_pobj_rwlock_unlock(lock);
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
	failed = type == TX_PARAM_MUTEX ? firn_pobj_mutex_lock(lock) : firn_pobj_rwlock_wrlock(lock);
	if (failed == 0)
		failed = firn_pobj_tx_keep_lock(lock, type == TX_PARAM_MUTEX ? firn_pobj_unlock_mutex
									       : firn_pobj_unlock_rwlock);
	return failed;
}

static inline int pmemobj_tx_xlock(enum pobj_tx_param type, void *lockp, uint64_t flags)
{
	int failed = firn_pobj_tx_check_lock((int)type, flags);
	if (failed == 0) {
		PMEMobjpool *pop = pmemobj_pool_by_ptr(lockp);
		failed = pop == NULL ? EINVAL : firn_pobj_tx_take(pop, type, lockp);
	}
	return firn_pobj_tx_result(failed, flags);
}

/* A failure is returned, and does not abort the transaction. */
static inline int pmemobj_tx_lock(enum pobj_tx_param type, void *lockp)
{
	return pmemobj_tx_xlock(type, lockp, POBJ_XLOCK_NO_ABORT);
}

/* Begins a transaction, or a nested one. The arguments after `environment` are parameters, each followed by its own
 * arguments, then TX_PARAM_NONE. Returns an errno. */
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
	for (i = 0; failed == 0 && i < count; i++) {
		failed = firn_pobj_tx_take(pop, types[i], locks[i]);
		if (failed != 0) {
			errno = failed;
			pmemobj_tx_abort(failed);
		}
	}
	return failed;
}

/* Ends the innermost transaction. If it was aborted, so is the enclosing one. */
static inline int pmemobj_tx_end(void)
{
	int failed = firn_pobj_tx_end();
	if (failed != 0 && pmemobj_tx_stage() == TX_STAGE_WORK)
		pmemobj_tx_abort(failed);
	return failed;
}

/* Enters the next stage; in the work stage that is the commit. */
static inline void pmemobj_tx_process(void)
{
	(void)firn_pobj_tx_process();
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
	return firn_pobj_tx_object(firn_pobj_tx_alloc(size, type_num, flags, NULL, 0), flags);
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
		(void)firn_pobj_tx_result(firn_pobj_tx_free(oid, 0), 0);
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
	return firn_pobj_tx_object(firn_pobj_tx_alloc(len, type_num, flags, from, len), flags);
}

static inline PMEMoid pmemobj_tx_xstrdup(const char *s, uint64_t type_num, uint64_t flags)
{
	return firn_pobj_tx_dup(s, s == NULL ? 0 : strlen(s) + 1, type_num, flags);
}

static inline PMEMoid pmemobj_tx_strdup(const char *s, uint64_t type_num)
{
	return pmemobj_tx_xstrdup(s, type_num, 0);
}

static inline PMEMoid pmemobj_tx_xwcsdup(const wchar_t *s, uint64_t type_num, uint64_t flags)
{
	return firn_pobj_tx_dup(s, s == NULL ? 0 : (wcslen(s) + 1) * sizeof(wchar_t), type_num, flags);
}

static inline PMEMoid pmemobj_tx_wcsdup(const wchar_t *s, uint64_t type_num)
{
	return pmemobj_tx_xwcsdup(s, type_num, 0);
}

static inline int pmemobj_tx_xfree(PMEMoid oid, uint64_t flags)
{
	return firn_pobj_tx_result(firn_pobj_tx_free(oid, flags), flags);
}

static inline int pmemobj_tx_free(PMEMoid oid)
{
	return pmemobj_tx_xfree(oid, 0);
}

/* Copies to memory that was added to the transaction, which flushes it. */
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
#define TX_XWCSDUP(s, type_num, flags) pmemobj_tx_xwcsdup((s), (type_num), (flags))
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
		firn_tx_stage_ = pmemobj_tx_stage();                                                                   \
		while (firn_tx_stage_ != TX_STAGE_NONE) {                                                              \
			switch (firn_tx_stage_) {                                                                      \
			case TX_STAGE_WORK:

#define TX_BEGIN(pop) FIRN_POBJ_TX(firn_pobj_tx_begin((pop), firn_tx_env_, NULL, NULL))
#define TX_BEGIN_PARAM(pop, ...) FIRN_POBJ_TX(pmemobj_tx_begin((pop), firn_tx_env_, __VA_ARGS__, TX_PARAM_NONE))
#define TX_BEGIN_CB(pop, cb, arg) FIRN_POBJ_TX(firn_pobj_tx_begin((pop), firn_tx_env_, (cb), (arg)))

#define TX_ONABORT                                                                                                     \
	firn_tx_stage_ = firn_pobj_tx_process();                                                                       \
	break;                                                                                                         \
	case TX_STAGE_ONABORT:

#define TX_ONCOMMIT                                                                                                    \
	firn_tx_stage_ = firn_pobj_tx_process();                                                                       \
	break;                                                                                                         \
	case TX_STAGE_ONCOMMIT:

#define TX_FINALLY                                                                                                     \
	firn_tx_stage_ = firn_pobj_tx_process();                                                                       \
	break;                                                                                                         \
	case TX_STAGE_FINALLY:

#define TX_END                                                                                                         \
	firn_tx_stage_ = firn_pobj_tx_process();                                                                       \
	break;                                                                                                         \
	default:                                                                                                       \
		firn_tx_stage_ = firn_pobj_tx_process();                                                               \
		break;                                                                                                 \
	}                                                                                                              \
	}                                                                                                              \
	firn_tx_errno_ = pmemobj_tx_end();                                                                             \
	if (firn_tx_errno_ != 0)                                                                                       \
		errno = firn_tx_errno_;                                                                                \
	}

#ifdef __cplusplus
}
#endif

#endif /* FIRN_PMEMOBJ_TRANSACTIONS_H */
