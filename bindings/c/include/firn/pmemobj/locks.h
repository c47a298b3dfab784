/*
 * Locks in a pool. A part of firn/pmemobj.h, which includes it.
 */
#ifndef FIRN_PMEMOBJ_LOCKS_H
#define FIRN_PMEMOBJ_LOCKS_H

#include "objects.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------- locks */

/* Volatile locks in persistent memory: a zeroed lock is free, and so is a lock that another process left. */
typedef union {
	uint64_t align;
	char padding[64];
} PMEMmutex;
typedef PMEMmutex PMEMrwlock;
typedef PMEMmutex PMEMcond;

void *firn_pobj_lock(PMEMobjpool *pop, void *lock) FIRN_POBJ_AS(lock);
void firn_pobj_lock_zero(PMEMobjpool *pop, void *lock) FIRN_POBJ_AS(lock_zero);

/* For C99, whose time.h does not declare it. */
typedef const struct timespec firn_pobj_moment;

/* The system's locks, called from the program so that ThreadSanitizer sees them. Their own header declares only some of
 * them for a program in strict ISO C (-std=c11), which libpmemobj's takes. */
#define FIRN_POBJ_SYSTEM(name) __asm__("pthread_" #name)

int firn_pobj_mutex_lock(void *lock) FIRN_POBJ_SYSTEM(mutex_lock);
int firn_pobj_mutex_timedlock(void *lock, firn_pobj_moment *until) FIRN_POBJ_SYSTEM(mutex_timedlock);
int firn_pobj_mutex_trylock(void *lock) FIRN_POBJ_SYSTEM(mutex_trylock);
int firn_pobj_mutex_unlock(void *lock) FIRN_POBJ_SYSTEM(mutex_unlock);
int firn_pobj_rwlock_rdlock(void *lock) FIRN_POBJ_SYSTEM(rwlock_rdlock);
int firn_pobj_rwlock_wrlock(void *lock) FIRN_POBJ_SYSTEM(rwlock_wrlock);
int firn_pobj_rwlock_timedrdlock(void *lock, firn_pobj_moment *until) FIRN_POBJ_SYSTEM(rwlock_timedrdlock);
int firn_pobj_rwlock_timedwrlock(void *lock, firn_pobj_moment *until) FIRN_POBJ_SYSTEM(rwlock_timedwrlock);
int firn_pobj_rwlock_tryrdlock(void *lock) FIRN_POBJ_SYSTEM(rwlock_tryrdlock);
int firn_pobj_rwlock_trywrlock(void *lock) FIRN_POBJ_SYSTEM(rwlock_trywrlock);
int firn_pobj_rwlock_unlock(void *lock) FIRN_POBJ_SYSTEM(rwlock_unlock);
int firn_pobj_cond_signal(void *cond) FIRN_POBJ_SYSTEM(cond_signal);
int firn_pobj_cond_broadcast(void *cond) FIRN_POBJ_SYSTEM(cond_broadcast);
int firn_pobj_cond_wait(void *cond, void *lock) FIRN_POBJ_SYSTEM(cond_wait);
int firn_pobj_cond_timedwait(void *cond, void *lock, firn_pobj_moment *until) FIRN_POBJ_SYSTEM(cond_timedwait);

#define FIRN_POBJ_ON(pop, lock, call)                                                                                  \
	void *volatile_lock_ = firn_pobj_lock((pop), (lock));                                                          \
	if (volatile_lock_ == NULL)                                                                                    \
		return EINVAL;                                                                                         \
	return call

static inline void pmemobj_mutex_zero(PMEMobjpool *pop, PMEMmutex *lock)
{
	firn_pobj_lock_zero(pop, lock);
}

static inline int pmemobj_mutex_lock(PMEMobjpool *pop, PMEMmutex *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_mutex_lock(volatile_lock_));
}

static inline int pmemobj_mutex_timedlock(PMEMobjpool *pop, PMEMmutex *lock, const struct timespec *until)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_mutex_timedlock(volatile_lock_, until));
}

static inline int pmemobj_mutex_trylock(PMEMobjpool *pop, PMEMmutex *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_mutex_trylock(volatile_lock_));
}

static inline int pmemobj_mutex_unlock(PMEMobjpool *pop, PMEMmutex *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_mutex_unlock(volatile_lock_));
}

static inline void pmemobj_rwlock_zero(PMEMobjpool *pop, PMEMrwlock *lock)
{
	firn_pobj_lock_zero(pop, lock);
}

static inline int pmemobj_rwlock_rdlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_rdlock(volatile_lock_));
}

static inline int pmemobj_rwlock_wrlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_wrlock(volatile_lock_));
}

static inline int pmemobj_rwlock_timedrdlock(PMEMobjpool *pop, PMEMrwlock *lock, const struct timespec *until)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_timedrdlock(volatile_lock_, until));
}

static inline int pmemobj_rwlock_timedwrlock(PMEMobjpool *pop, PMEMrwlock *lock, const struct timespec *until)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_timedwrlock(volatile_lock_, until));
}

static inline int pmemobj_rwlock_tryrdlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_tryrdlock(volatile_lock_));
}

static inline int pmemobj_rwlock_trywrlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_trywrlock(volatile_lock_));
}

static inline int pmemobj_rwlock_unlock(PMEMobjpool *pop, PMEMrwlock *lock)
{
	FIRN_POBJ_ON(pop, lock, firn_pobj_rwlock_unlock(volatile_lock_));
}

static inline void pmemobj_cond_zero(PMEMobjpool *pop, PMEMcond *cond)
{
	firn_pobj_lock_zero(pop, cond);
}

static inline int pmemobj_cond_signal(PMEMobjpool *pop, PMEMcond *cond)
{
	FIRN_POBJ_ON(pop, cond, firn_pobj_cond_signal(volatile_lock_));
}

static inline int pmemobj_cond_broadcast(PMEMobjpool *pop, PMEMcond *cond)
{
	FIRN_POBJ_ON(pop, cond, firn_pobj_cond_broadcast(volatile_lock_));
}

static inline int pmemobj_cond_wait(PMEMobjpool *pop, PMEMcond *cond, PMEMmutex *lock)
{
	void *mutex = firn_pobj_lock(pop, lock);
	if (mutex == NULL)
		return EINVAL;
	FIRN_POBJ_ON(pop, cond, firn_pobj_cond_wait(volatile_lock_, mutex));
}

static inline int pmemobj_cond_timedwait(PMEMobjpool *pop, PMEMcond *cond, PMEMmutex *lock,
					 const struct timespec *until)
{
	void *mutex = firn_pobj_lock(pop, lock);
	if (mutex == NULL)
		return EINVAL;
	FIRN_POBJ_ON(pop, cond, firn_pobj_cond_timedwait(volatile_lock_, mutex, until));
}

#ifdef __cplusplus
}
#endif

#endif /* FIRN_PMEMOBJ_LOCKS_H */
