//! The progress of a campaign's threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts the work of all threads.
#[derive(Debug, Default)]
pub(super) struct Ticker {
    states: AtomicU64,
    steps: AtomicU64,
}

impl Ticker {
    /// A crash state was checked.
    pub(super) fn state(&self) {
        self.states.fetch_add(1, Relaxed);
    }

    /// This many sequences were crashed everywhere, or this many crashes injected.
    pub(super) fn step(&self, steps: u64) {
        self.steps.fetch_add(steps, Relaxed);
    }

    pub(super) fn states(&self) -> u64 {
        self.states.load(Relaxed)
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }
}
