//! Volatile shared words: in volatile memory, behind the caches.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use firn_media::Words;
use firn_units::{PhysAddr, WORD_BYTES};

use crate::computer::Overlap;
use crate::machine::Shared;
use crate::state::State;

/// The volatile words of a [`crate::Machine`]. They keep working without power, so that unwinding threads can release
/// their locks.
pub struct MachineWords {
    shared: Arc<Shared>,
    at: PhysAddr,
    array: Box<[AtomicU64]>,
}

impl MachineWords {
    pub(crate) fn new(shared: Arc<Shared>, count: usize) -> Self {
        let at = shared.state.with(|state| state.volatile(count as u64));
        Self {
            shared,
            at,
            array: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline(always)]
    fn act(&self, index: usize, touch: impl FnOnce(&mut State, PhysAddr)) -> &AtomicU64 {
        let word = &self.array[index];
        self.shared.act(|state| {
            if state.happens() {
                touch(state, self.at + index as u64 * WORD_BYTES);
            }
        });
        word
    }

    /// A locked instruction. Other threads run before it at the latest.
    fn locked(&self, index: usize, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        let word = self.act(index, |state, at| state.computer.locked(state.core(), at));
        let old = word.load(Relaxed);
        if let Some(new) = change(old) {
            word.store(new, Relaxed);
            if new != old {
                self.shared.state.with(|state| state.idle_pauses = 0);
            }
        }
        old
    }
}

impl Words for MachineWords {
    fn len(&self) -> usize {
        self.array.len()
    }

    #[inline]
    fn load(&self, index: usize) -> u64 {
        let load = |state: &mut State, at| {
            state.computer.load(state.core(), at, Overlap::Independent);
        };
        self.act(index, load).load(Relaxed)
    }

    #[inline]
    fn store(&self, index: usize, value: u64) {
        let store = |state: &mut State, at| {
            state.idle_pauses = 0;
            state.computer.store(state.core(), at);
            state.computer.volatile_stored(state.core(), at);
        };
        self.act(index, store).store(value, Relaxed);
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
