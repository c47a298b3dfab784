//! Which sessions of one thread hold which locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Which locks each lane's session holds, and which thread the session belongs to.
///
/// Concurrency: a lane's row is changed by the thread of its session alone, and is looked at by that thread alone: each
/// thread looks only at the rows of its own sessions. So nothing here needs an order.
pub(crate) struct Holders {
    /// One a lane; zero for none.
    threads: Box<[AtomicU64]>,
    /// A row a lane: how often each lock is held.
    counts: Box<[AtomicU32]>,
    locks: usize,
}

impl Holders {
    pub(crate) fn new(lanes: usize, locks: usize) -> Self {
        let counts = (0..lanes * locks).map(|_| AtomicU32::new(0));
        Self {
            threads: (0..lanes).map(|_| AtomicU64::new(0)).collect(),
            counts: counts.collect(),
            locks,
        }
    }

    /// Says which thread a lane's session belongs to.
    pub(crate) fn set_thread(&self, lane: usize, thread: u64) {
        self.threads[lane].store(thread, Ordering::Relaxed);
    }

    /// The other lanes whose sessions belong to the thread of this one's.
    pub(crate) fn of_same_thread(&self, lane: usize) -> impl Iterator<Item = usize> {
        let thread = self.threads[lane].load(Ordering::Relaxed);
        let of = move |other: &usize| self.threads[*other].load(Ordering::Relaxed) == thread;
        (0..self.threads.len()).filter(move |&other| other != lane && thread != 0 && of(&other))
    }

    fn count(&self, lane: usize, index: usize) -> &AtomicU32 {
        &self.counts[lane * self.locks + index]
    }

    /// A lane's session has taken a lock.
    #[inline]
    pub(crate) fn note(&self, lane: usize, index: usize) {
        let count = self.count(lane, index);
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// A lane's session gives a lock back.
    #[inline]
    pub(crate) fn forget(&self, lane: usize, index: usize) {
        let count = self.count(lane, index);
        count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// Whether a lane's session holds a lock.
    pub(crate) fn holds(&self, lane: usize, index: usize) -> bool {
        self.count(lane, index).load(Ordering::Relaxed) != 0
    }
}
