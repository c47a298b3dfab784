//! A session's own slots: allocation without a lock and without a shared line.
//!
//! The session uses them while it is inside an operation, the collector while the world is stopped. Entering an
//! operation and finding all of them quiet are locked instructions on the same flag, so each side sees the other's
//! earlier stores. The atomics are plain loads and stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use firn_format::class::{CLASSES, Class};
use firn_format::geometry::Frame;

/// Bit of an active run's second word: the session owns the run.
const OWNED: u64 = 1 << 63;

/// The run of slots of one class from which a session allocates, and the free slots taken out of it.
#[derive(Default)]
pub(super) struct ActiveRun {
    /// Free slots taken out, of one bitmap word.
    bits: AtomicU64,
    /// The index of that bitmap word, and whether the run is owned.
    word: AtomicU64,
    frame: AtomicU64,
}

impl ActiveRun {
    pub(super) fn frame(&self) -> Frame {
        Frame(self.frame.load(Relaxed))
    }

    pub(super) fn is_owned(&self) -> bool {
        self.word.load(Relaxed) & OWNED != 0
    }

    /// Takes the next free slot: its number in the run.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        let bits = self.bits.load(Relaxed);
        if bits == 0 {
            return None;
        }
        self.bits.store(bits & (bits - 1), Relaxed);
        Some((self.word.load(Relaxed) & !OWNED) * 64 + u64::from(bits.trailing_zeros()))
    }

    /// Whether there are free slots.
    pub(super) fn has_slots(&self) -> bool {
        self.bits.load(Relaxed) != 0
    }

    /// Makes a run the active one, with none of its slots yet.
    pub(super) fn own(&self, frame: Frame) {
        self.frame.store(frame.0, Relaxed);
        self.bits.store(0, Relaxed);
        self.word.store(OWNED, Relaxed);
    }

    /// Takes free slots out of the run.
    pub(super) fn fill(&self, word: u64, bits: u64) {
        self.bits.store(bits, Relaxed);
        self.word.store(word | OWNED, Relaxed);
    }

    /// Retires the run. Returns the bitmap word's index and its slots that are still free.
    pub(super) fn retire(&self) -> (u64, u64) {
        let word = self.word.swap(0, Relaxed) & !OWNED;
        (word, self.bits.swap(0, Relaxed))
    }
}

/// The active runs of one lane's session, one per class.
pub(super) struct ActiveRuns([ActiveRun; CLASSES]);

impl ActiveRuns {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(core::array::from_fn(|_| ActiveRun::default())))
    }

    #[inline]
    pub(super) fn of(&self, class: Class) -> &ActiveRun {
        &self.0[class.index()]
    }
}

/// A session's side of the allocator.
pub(crate) struct Cache {
    /// The session's lane: the owner of its runs.
    pub(super) lane: usize,
    pub(super) active: Arc<ActiveRuns>,
    /// First frames of runs whose words must reach media with the next commit.
    pub(crate) fresh: Vec<Frame>,
}

impl Cache {
    pub(super) fn new(lane: usize, active: Arc<ActiveRuns>) -> Self {
        Self {
            lane,
            active,
            fresh: Vec::new(),
        }
    }
}
