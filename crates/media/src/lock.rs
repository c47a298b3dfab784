//! Locks that wait through the medium.
//!
//! A mutex of the operating system would block the one OS thread that carries all simulated ones. So both locks here
//! only ever *try*, and call [`Runtime::pause`] in between.

use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::{Runtime, Words};

/// A mutual exclusion around volatile data.
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock. A panic while it was held does not poison it: the data is volatile, and its owner leaves it
    /// consistent between statements.
    pub fn lock<'a, M: Runtime>(&'a self, medium: &'a M) -> LockGuard<'a, T, M> {
        let mut attempt = 0;
        medium.acquire_point();
        loop {
            if let Some(held) = self.attempt() {
                return LockGuard { held, medium };
            }
            medium.pause(attempt);
            attempt += 1;
        }
    }

    /// Takes the lock if it is free.
    pub fn try_lock<'a, M: Runtime>(&'a self, medium: &'a M) -> Option<LockGuard<'a, T, M>> {
        medium.acquire_point();
        self.attempt().map(|held| LockGuard { held, medium })
    }

    /// The data, which nobody else can have locked now.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempt(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Releases its [`Lock`] when dropped.
pub struct LockGuard<'a, T, M: Runtime> {
    held: MutexGuard<'a, T>,
    medium: &'a M,
}

impl<T, M: Runtime> Deref for LockGuard<'_, T, M> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T, M: Runtime> DerefMut for LockGuard<'_, T, M> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T, M: Runtime> Drop for LockGuard<'_, T, M> {
    fn drop(&mut self) {
        self.medium.release_point();
    }
}

/// The bit of a lock word that is set while a writer holds the lock.
const WRITER: u64 = 1 << 63;
/// One waiting writer. Readers let it go first.
const WAITING: u64 = 1 << 32;
/// All waiting writers.
const WAITING_MASK: u64 = 0x7fff_ffff << 32;
/// Pauses for which a waiting writer holds new readers off at a time.
const HOLD_OFF: u32 = 96;
/// Pauses for which it then lets new readers in.
const LET_IN: u32 = 16;
/// The longest pause of a waiting writer, as an attempt. It is limited because new readers are held off meanwhile.
const LONGEST: u32 = 512;
/// Pauses in each round of an unlimited wait.
const PATIENCE: u32 = 1 << 16;
/// Words from one lock to the next, so that each has a cache line of its own.
const STRIDE: usize = 8;

/// A fixed table of readers-writer locks on volatile words, preferring writers.
pub struct RwLockTable<M: Runtime> {
    words: M::Words,
}

impl<M: Runtime> RwLockTable<M> {
    /// Makes `count` free locks.
    pub fn new(medium: &M, count: usize) -> Self {
        Self {
            words: medium.words(count * STRIDE),
        }
    }

    /// Number of locks.
    pub fn len(&self) -> usize {
        self.words.len() / STRIDE
    }

    /// Whether there are no locks.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Takes lock `index` for reading if no writer holds or awaits it.
    pub fn try_read(&self, index: usize) -> bool {
        let word = index * STRIDE;
        let mut seen = self.words.load(word);
        while seen & (WRITER | WAITING_MASK) == 0 {
            match self.words.compare_exchange(word, seen, seen + 1) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Takes lock `index` for writing if nobody holds it.
    pub fn try_write(&self, index: usize) -> bool {
        let word = index * STRIDE;
        let mut seen = self.words.load(word);
        while seen & !WAITING_MASK == 0 {
            match self.words.compare_exchange(word, seen, seen | WRITER) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Whether a writer holds lock `index`.
    pub fn is_written(&self, index: usize) -> bool {
        self.words.load(index * STRIDE) & WRITER != 0
    }

    /// Turns the caller's own read lock into a write lock if nobody else holds or awaits it.
    pub fn try_upgrade(&self, index: usize) -> bool {
        self.words
            .compare_exchange(index * STRIDE, 1, WRITER)
            .is_ok()
    }

    /// Takes lock `index` for reading and waits if necessary. Does not wait in a forked child: no thread is left there
    /// to release it.
    pub fn read(&self, medium: &M, index: usize) {
        let mut attempt = 0;
        while !self.try_read(index) && medium.is_ours() {
            medium.pause(attempt);
            attempt += 1;
        }
    }

    /// Takes lock `index` for writing and waits if necessary.
    pub fn write(&self, medium: &M, index: usize) {
        if self.try_write(index) {
            return;
        }
        while !self.write_within(medium, index, PATIENCE) {}
    }

    /// Takes lock `index` for writing and waits for at most `patience` pauses. Returns whether it was taken.
    ///
    /// While it waits it holds new readers off, but not for ever: a reader that already holds the lock may need it once
    /// more before it can release it.
    pub fn write_within(&self, medium: &M, index: usize, patience: u32) -> bool {
        let mut attempt = 0;
        while attempt < patience {
            self.words.fetch_add(index * STRIDE, WAITING);
            let taken = self.try_write_for(medium, index, &mut attempt, HOLD_OFF);
            self.words.fetch_add(index * STRIDE, WAITING.wrapping_neg());
            if taken || self.try_write_for(medium, index, &mut attempt, LET_IN) {
                return true;
            }
        }
        false
    }

    fn try_write_for(&self, medium: &M, index: usize, attempt: &mut u32, pauses: u32) -> bool {
        for _ in 0..pauses {
            if self.try_write(index) {
                return true;
            }
            medium.pause(LONGEST.min(*attempt));
            *attempt += 1;
        }
        self.try_write(index)
    }

    /// Takes lock `index` for reading and waits for at most `patience` pauses. Returns whether it was taken.
    pub fn read_within(&self, medium: &M, index: usize, patience: u32) -> bool {
        for attempt in 0..patience {
            if self.try_read(index) {
                return true;
            }
            medium.pause(attempt);
        }
        self.try_read(index)
    }

    /// Releases a lock taken for reading.
    pub fn unlock_read(&self, index: usize) {
        self.words.fetch_add(index * STRIDE, 1u64.wrapping_neg());
    }

    /// Releases a lock taken for writing.
    pub fn unlock_write(&self, index: usize) {
        self.words.fetch_and(index * STRIDE, !WRITER);
    }
}
