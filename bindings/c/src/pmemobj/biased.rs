//! A lock for content that one thread uses all the time, and other threads rarely.
//!
//! A thread uses its part of a pool in every call. A lock would be two locked instructions of some twenty cycles each,
//! or of hundreds: they wait for write-backs that are under way (Intel, `CLWB`). So the owner announces by a plain
//! store that it is inside, and checks for a claim. A claimant announces its claim and waits until the owner is
//! outside. The claimant pays for the barrier that is needed in between ([`firn_mapped::barrier`]).

use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use firn_mapped::barrier;

use crate::operation::this_thread;

/// A lock that is biased to the thread that made it.
pub(crate) struct Biased<T> {
    /// The owning thread, by [`this_thread`].
    owner: usize,
    /// Nested calls of the owner that are inside: one, and those that the program's own functions made meanwhile.
    inside: AtomicU32,
    claimed: AtomicBool,
    /// Held by the claimant.
    claims: Mutex<()>,
    content: T,
}

// SAFETY: one thread at a time uses the content: the owner inside, or a claimant while the owner is outside.
unsafe impl<T: Send> Send for Biased<T> {}
// SAFETY: `enter` and `with_any` let sharing threads use the content one after the other, which only needs `Send`.
unsafe impl<T: Send> Sync for Biased<T> {}

/// A call of the owner that is inside.
pub(crate) struct Inside<'a, T>(&'a Biased<T>);

/// A claim of another thread.
struct Claim<'a> {
    claimed: &'a AtomicBool,
    _claims: MutexGuard<'a, ()>,
}

impl<T> Biased<T> {
    /// A lock biased to this thread.
    pub(crate) fn new(content: T) -> Self {
        Self {
            owner: this_thread(),
            inside: AtomicU32::new(0),
            claimed: AtomicBool::new(false),
            claims: Mutex::new(()),
            content,
        }
    }

    /// Lets the owner in.
    ///
    /// # Safety
    ///
    /// The caller is the owner's thread.
    #[inline(always)]
    pub(crate) unsafe fn enter(&self) -> Inside<'_, T> {
        debug_assert_eq!(self.owner, this_thread());
        let calls = self.inside.load(Ordering::Relaxed);
        self.inside.store(calls + 1, Ordering::Relaxed);
        if calls == 0 {
            barrier::light();
            // The claimant's accesses happen before.
            if self.claimed.load(Ordering::Acquire) {
                self.wait();
            }
        }
        Inside(self)
    }

    #[cold]
    fn wait(&self) {
        while self.claimed.load(Ordering::Acquire) {
            self.inside.store(0, Ordering::Release);
            drop(self.lock());
            self.inside.store(1, Ordering::Relaxed);
            barrier::light();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `body` with the content, on any thread. Waits until the owner is outside.
    pub(crate) fn with_any<R>(&self, body: impl FnOnce(&T) -> R) -> R {
        if self.owner == this_thread() {
            // SAFETY: this thread is the owner, as was just checked.
            let inside = unsafe { self.enter() };
            return body(&inside);
        }
        let _claim = Claim {
            claimed: &self.claimed,
            _claims: self.lock(),
        };
        self.claimed.store(true, Ordering::Relaxed);
        barrier::heavy();
        // The owner's accesses happen before.
        let mut sleep = Duration::from_micros(20);
        while self.inside.load(Ordering::Acquire) != 0 {
            std::thread::sleep(sleep);
            sleep = (sleep + sleep / 16).min(Duration::from_millis(10));
        }
        body(&self.content)
    }
}

impl<T> Biased<T> {
    /// Calls `body` with the content of another thread's lock, unless its owner or another claimant is inside.
    pub(crate) fn try_with_any<R>(&self, body: impl FnOnce(&T) -> R) -> Option<R> {
        if self.owner == this_thread() {
            return None;
        }
        let claims = match self.claims.try_lock() {
            Ok(claims) => claims,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let _claim = Claim {
            claimed: &self.claimed,
            _claims: claims,
        };
        self.claimed.store(true, Ordering::Relaxed);
        barrier::heavy();
        // The owner's accesses happen before.
        let is_outside = self.inside.load(Ordering::Acquire) == 0;
        is_outside.then(|| body(&self.content))
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.content
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let calls = self.0.inside.load(Ordering::Relaxed);
        self.0.inside.store(calls - 1, Ordering::Release);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claimed.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::sync::atomic::AtomicBool;
    use std::sync::Arc;
    use std::thread;

    use super::*;

    /// A content that detects a second user, or a lost addition.
    #[derive(Default)]
    struct Alone {
        is_here: Cell<bool>,
        count: Cell<u64>,
    }

    /// Lets the test's thread in, which made the lock.
    fn enter(biased: &Biased<Alone>) -> Inside<'_, Alone> {
        // SAFETY: each test enters a lock that it made itself.
        unsafe { biased.enter() }
    }

    impl Alone {
        fn count(&self) {
            assert!(!self.is_here.replace(true));
            self.count.set(self.count.get() + 1);
            self.is_here.set(false);
        }
    }

    #[test]
    fn the_owner_and_claimants_exclude_each_other() {
        const CLAIMS: u64 = 3000;
        let biased = Arc::new(Biased::new(Alone::default()));
        let ended = Arc::new(AtomicBool::new(false));
        let claimants = [0, 1].map(|_| {
            let (biased, ended) = (Arc::clone(&biased), Arc::clone(&ended));
            thread::spawn(move || {
                (0..CLAIMS).for_each(|_| biased.with_any(Alone::count));
                ended.store(true, Ordering::Relaxed);
            })
        });
        let mut calls = 0;
        while !ended.load(Ordering::Relaxed) {
            let inside = enter(&biased);
            inside.count();
            // As a function of the program does that is called meanwhile.
            enter(&biased).count();
            biased.with_any(Alone::count);
            calls += 3;
            drop(inside);
        }
        for claimant in claimants {
            claimant.join().unwrap();
        }
        assert_eq!(enter(&biased).count.get(), calls + 2 * CLAIMS);
    }

    #[test]
    fn a_panic_lets_others_in() {
        let biased = Arc::new(Biased::new(Alone::default()));
        let other = Arc::clone(&biased);
        let panicked =
            thread::spawn(move || other.with_any(|_| panic!("as the test wants"))).join();
        assert!(panicked.is_err());
        let inside = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            let _inside = enter(&biased);
            panic!("as the test wants");
        }));
        assert!(inside.is_err());
        let other = Arc::clone(&biased);
        thread::spawn(move || other.with_any(Alone::count))
            .join()
            .unwrap();
        assert_eq!(enter(&biased).count.get(), 1);
    }
}
