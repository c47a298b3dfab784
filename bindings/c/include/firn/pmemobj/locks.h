/*
 * Locks that lie in a pool. A part of firn/pmemobj.h, which includes it.
 */
#ifndef FIRN_PMEMOBJ_LOCKS_H
#define FIRN_PMEMOBJ_LOCKS_H

#include "objects.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* FIRN_PMEMOBJ_LOCKS_H */
