//! Volatile shared words: simulated threads see them through the same store buffers.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use firn_media::Words;

use crate::medium::shared::Shared;
use crate::memory::buffer::{Array, Pending};

/// The volatile words of a [`crate::Crash`]. They keep working on a dead medium, so that unwinding code can release its
/// locks.
pub struct CrashWords {
    shared: Arc<Shared>,
    len: usize,
    /// Made at the first store: a recovery never touches most of a pool's volatile words.
    array: OnceLock<Array>,
}

impl CrashWords {
    pub(crate) fn new(shared: Arc<Shared>, count: usize) -> Self {
        Self {
            shared,
            len: count,
            array: OnceLock::new(),
        }
    }

    fn check(&self, index: usize) {
        assert!(
            index < self.len,
            "word {index} of {} does not exist",
            self.len
        );
    }

    fn array(&self) -> &Array {
        let zeros = || (0..self.len).map(|_| Default::default()).collect();
        self.array.get_or_init(zeros)
    }

    /// The current value of a word, without a scheduling point.
    pub(crate) fn peek(&self, index: usize) -> u64 {
        self.array
            .get()
            .map_or(0, |array| array[index].load(Relaxed))
    }

    /// Identifies a word.
    pub(crate) fn name(&self, index: usize) -> (usize, usize) {
        (Arc::as_ptr(self.array()).addr(), index)
    }

    /// A locked instruction: empties the store buffer, then changes the word in one step.
    fn locked(&self, index: usize, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        self.shared.point();
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let word = &self.array()[index];
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
        self.len
    }

    fn load(&self, index: usize) -> u64 {
        self.check(index);
        if self.shared.simulating() {
            self.shared.point();
        }
        let Some(array) = self.array.get() else {
            return 0;
        };
        if self.shared.simulating()
            && let Some(own) = self.shared.lock().buffer().forward_volatile(array, index)
        {
            return own;
        }
        array[index].load(Relaxed)
    }

    fn store(&self, index: usize, value: u64) {
        self.check(index);
        self.shared.point();
        let mut state = self.shared.lock();
        if !self.shared.simulating() {
            if self.array()[index].swap(value, Relaxed) != value {
                state.progress();
            }
            return;
        }
        let array = Arc::clone(self.array());
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
