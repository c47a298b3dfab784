//! Volatile shared words: simulated threads see them through the same store buffers.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use firn_media::Words;

use crate::buffer::{Array, Pending};
use crate::shared::Shared;

/// The volatile words of a [`crate::Crash`]. They keep working on a dead medium, so that whatever
/// unwinds gives back its locks.
pub struct CrashWords {
    shared: Arc<Shared>,
    array: Array,
}

impl CrashWords {
    pub(crate) fn new(shared: Arc<Shared>, count: usize) -> Self {
        Self {
            shared,
            array: (0..count).map(|_| Default::default()).collect(),
        }
    }

    /// A locked instruction: empties the store buffer, then changes the word in one step.
    fn locked(&self, index: usize, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        self.shared.point();
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let word = &self.array[index];
        let old = word.load(Relaxed);
        if let Some(new) = change(old) {
            word.store(new, Relaxed);
            if new != old {
                state.progress();
            }
        }
        old
    }
}

impl Words for CrashWords {
    fn len(&self) -> usize {
        self.array.len()
    }

    fn load(&self, index: usize) -> u64 {
        if self.shared.simulating() {
            self.shared.point();
            if let Some(own) = self
                .shared
                .lock()
                .buffer()
                .forward_volatile(&self.array, index)
            {
                return own;
            }
        }
        self.array[index].load(Relaxed)
    }

    fn store(&self, index: usize, value: u64) {
        assert!(
            index < self.array.len(),
            "word {index} of {} does not exist",
            self.array.len()
        );
        self.shared.point();
        let mut state = self.shared.lock();
        let array = Arc::clone(&self.array);
        self.shared.issue(
            &mut state,
            Pending::Volatile {
                array,
                index,
                value,
            },
        );
    }

    fn swap(&self, index: usize, value: u64) -> u64 {
        self.locked(index, |_| Some(value))
    }

    fn compare_exchange(&self, index: usize, current: u64, new: u64) -> Result<u64, u64> {
        let old = self.locked(index, |old| (old == current).then_some(new));
        if old == current { Ok(old) } else { Err(old) }
    }

    fn fetch_add(&self, index: usize, value: u64) -> u64 {
        self.locked(index, |old| Some(old.wrapping_add(value)))
    }

    fn fetch_or(&self, index: usize, value: u64) -> u64 {
        self.locked(index, |old| Some(old | value))
    }

    fn fetch_and(&self, index: usize, value: u64) -> u64 {
        self.locked(index, |old| Some(old & value))
    }
}
