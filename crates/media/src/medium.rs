//! The contract as a whole.

use firn_units::{VirtAddr, WORD_BYTES};

use crate::{Hardware, Memory, Probe, Runtime, Scope, ScopeGuard, Space, Step};

/// The memory and machine below a heap, in five parts: [`Memory`], [`Space`], [`Runtime`], [`Probe`] and [`Hardware`].
///
/// Every operation of every part may be called from any thread. A type that implements the five parts is a medium.
pub trait Medium:
    Memory + Space + Runtime + Probe + Hardware + Send + Sync + Sized + 'static
{
}

impl<M> Medium for M where
    M: Memory + Space + Runtime + Probe + Hardware + Send + Sync + Sized + 'static
{
}

/// Operations that every medium has because of the contract.
pub trait MediumExt: Medium {
    /// Attributes the time until the guard is dropped to `scope`.
    #[inline(always)]
    fn scope(&self, scope: Scope) -> ScopeGuard<'_, Self> {
        ScopeGuard::enter(self, scope)
    }

    /// Writes back the range and fences.
    fn persist(&self, at: VirtAddr, len: u64) {
        self.write_back(at, len);
        self.fence();
    }

    /// Whether the code keeps this step; see [`Probe::leaves_out`].
    #[inline(always)]
    fn keeps(&self, step: &Step) -> bool {
        !self.leaves_out(step)
    }

    /// [`Memory::write_back`], unless the step is left out.
    #[inline(always)]
    fn write_back_for(&self, step: &Step, at: VirtAddr, len: u64) {
        if self.keeps(step) {
            self.write_back(at, len);
        }
    }

    /// [`Memory::fence`], unless the step is left out.
    #[inline(always)]
    fn fence_for(&self, step: &Step) {
        if self.keeps(step) {
            self.fence();
        }
    }

    /// [`MediumExt::persist`], unless the step is left out.
    #[inline(always)]
    fn persist_for(&self, step: &Step, at: VirtAddr, len: u64) {
        if self.keeps(step) {
            self.persist(at, len);
        }
    }

    /// Stores `from` at any address `at`, in ascending order: whole words like [`Memory::store_bytes`], and only the
    /// range's own bytes of a word at either end, by [`Memory::store_part`]. A number that lies at a multiple of its
    /// length is stored in one piece.
    #[inline]
    fn store_exact(&self, at: VirtAddr, from: &[u8]) {
        let to_word = at.0.wrapping_neg() % WORD_BYTES;
        let (head, rest) = from.split_at(from.len().min(to_word as usize));
        let (words, tail) = rest.split_at(rest.len() - rest.len() % WORD_BYTES as usize);
        store_parts(self, at, head);
        let at = at + head.len() as u64;
        if !words.is_empty() {
            self.store_bytes(at, words);
        }
        store_parts(self, at + words.len() as u64, tail);
    }

    /// Stores zeros over the range; start and length are multiples of a word.
    fn zero(&self, at: VirtAddr, len: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut done = 0;
        while done < len {
            let step = (len - done).min(ZEROS.len() as u64);
            self.store_bytes(at + done, &ZEROS[..step as usize]);
            done += step;
        }
    }

    /// Sets and clears bits of the word at `at` in one locked step. Returns the word before.
    fn update_bits(&self, at: VirtAddr, set: u64, clear: u64) -> u64 {
        let mut old = self.load_u64(at);
        loop {
            match self.compare_exchange_u64(at, old, (old | set) & !clear) {
                Ok(before) => return before,
                Err(now) => old = now,
            }
        }
    }
}

impl<M: Medium> MediumExt for M {}

/// Stores a few bytes of one word, in pieces as wide as their alignment and number allow.
fn store_parts<M: Medium>(medium: &M, mut at: VirtAddr, mut from: &[u8]) {
    while !from.is_empty() {
        let aligned = 1 << at.0.trailing_zeros().min(2);
        let fits = 1 << from.len().ilog2();
        let (now, later) = from.split_at(aligned.min(fits));
        medium.store_part(at, now);
        (at, from) = (at + now.len() as u64, later);
    }
}
