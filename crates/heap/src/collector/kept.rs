//! What ended cycles cost a pool that keeps their addresses: blocks beside plans, and a budget.

use std::collections::BTreeSet;

use firn_format::geometry::{self, FrameRun};
use firn_media::Medium;
use firn_units::{FRAME_BYTES, VirtAddr};

use crate::alloc::GROUP_FRAMES;
use crate::inner::Inner;
use crate::pool::Pool;
use crate::relocation::kept::KeptCycle;

/// How many times as many bytes as a pool may have are emptied and kept at most; and how many always.
const KEPT_TIMES: u64 = 4;
const KEPT_LEAST: u64 = 64 << 20;

impl<M: Medium> Inner<M> {
    /// Whether a kept plan keeps the blocks of the page in which it lies, because the medium gives whole pages back.
    pub(super) fn plans_hold_pages(&self) -> bool {
        self.keeps_addresses && self.medium.discard_bytes() > GROUP_FRAMES * FRAME_BYTES
    }

    /// The pages that stay because plans in them do: emptying them wins nothing.
    pub(super) fn pages_of_plans(&self) -> BTreeSet<geometry::Chunk> {
        match self.plans_hold_pages() {
            true => self.collector.kept.table(&self.medium).chunks_of_plans(),
            false => BTreeSet::new(),
        }
    }

    /// Bytes that a cycle may empty. Where addresses stay, kept plans take 1/64 of the bytes that were emptied, and more in
    /// DRAM. Beyond a budget cycles stop: the pool of a program that never forgets addresses fragments, rather
    /// than fill up with plans.
    pub(super) fn may_empty(&self) -> u64 {
        if !self.keeps_addresses {
            return u64::MAX;
        }
        let medium = &self.medium;
        let kept = self.collector.kept.table(medium).emptied_frames() * FRAME_BYTES;
        let most = self.allocator.space().lock(medium).most_bytes(medium);
        let may_have = match most < medium.capacity() {
            true => most,
            false => medium.len().saturating_sub(kept),
        };
        (KEPT_TIMES * may_have).max(KEPT_LEAST).saturating_sub(kept)
    }
}

/// Memory that objects have left and that stays empty, in a pool in which addresses stay.
impl<M: Medium> Pool<M> {
    /// How many cycles have ended whose addresses are kept, and the ranges that those emptied that came after the
    /// first `seen` of them. Nobody has a right to load or store there; no byte of them is used again before
    /// [`Pool::forget_addresses`] or the pool's end.
    pub fn emptied_since(&self, seen: usize) -> (usize, Vec<(VirtAddr, u64)>) {
        let table = self.inner.collector.kept.table(&self.inner.medium);
        let cycles = table.cycles();
        let new = cycles.get(seen..).unwrap_or_default();
        let bytes = |run: FrameRun| (run.frame.start(), run.frames * FRAME_BYTES);
        let ranges = new.iter().flat_map(KeptCycle::emptied).map(bytes);
        (cycles.len(), ranges.collect())
    }

    /// The object that the byte at `at` was a part of before it was moved by a cycle whose addresses are kept: where
    /// its header was, and where it is.
    pub fn moved_from(&self, at: VirtAddr) -> Option<(VirtAddr, VirtAddr)> {
        let table = self.inner.collector.kept.table(&self.inner.medium);
        table.object_around(at)
    }
}
