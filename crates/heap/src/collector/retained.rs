//! What retained cycles cost a pool, and how their memory is given back.

use std::collections::BTreeSet;

use firn_format::frame::FrameUse;
use firn_format::geometry::{self, Chunk, Frame, FrameRun};
use firn_media::{Medium, MediumExt};
use firn_units::{FRAME_BYTES, VirtAddr};
use std::sync::Arc;

use crate::alloc::GROUP_FRAMES;
use crate::collector::PageSize;
use crate::collector::pairs::PairHealer;
use crate::error::Error;
use crate::inner::Inner;
use crate::pool::Pool;
use crate::relocation::media::{WriteBacks, store_head};
use crate::relocation::retained::RetainedCycle;
use crate::steps;
use crate::walk::each_allocated;

/// Emptied frames are retained up to this multiple of the bytes that the pool may have, and up to the least always.
const RETAINED_TIMES: u64 = 4;
const RETAINED_LEAST: u64 = 64 << 20;

impl<M: Medium> Inner<M> {
    /// Heals everything, then drops the retained cycles. No operation is open, and no cycle.
    ///
    /// Crash: the list on media is still there with everything that it retains, or it is empty and no reference names
    /// any of that.
    /// Errors: the frame table is damaged.
    pub(crate) fn drop_forwarding(&self) -> Result<(), Error> {
        let medium = &self.medium;
        let kept = self.collector.retained.table(medium);
        if kept.cycles().is_empty() {
            return Ok(());
        }
        let healer = PairHealer::of_retained(self, Arc::clone(&kept));
        if medium.keeps(&steps::KEPT_HEALED) {
            each_allocated(medium, None, |slot, header| {
                healer.heal(slot.at, slot.bytes, header)
            })?;
        }
        medium.fence_for(&steps::KEPT_HEALED_FENCE);
        if medium.keeps(&steps::KEPT_WORDS_AFTER_HEAD) {
            store_head(medium, None);
        }
        let stamp = self.redo.counter();
        let mut lines = WriteBacks::new(medium);
        for cycle in kept.cycles() {
            for run in cycle.emptied().chain([cycle.plan]) {
                for frame in run.each() {
                    medium.store_u64(frame.word_at(), FrameUse::Free.to_word());
                }
                lines.words(run.frame, run.frames);
                let mut space = self.allocator.space().lock(medium);
                space.may_lack_blocks(run);
                space.give(run, stamp);
            }
        }
        drop(lines);
        if medium.leaves_out(&steps::KEPT_WORDS_AFTER_HEAD) {
            store_head(medium, None);
        }
        self.allocator.space().lock(medium).forget_plans();
        self.collector.retained.forget(medium);
        Ok(())
    }

    /// Gives back the blocks of frames that ended cycles have emptied. Where neighbouring frames are in use, it gives
    /// back as much as possible, and the rest in a later call.
    ///
    /// Errors: the medium cannot discard; the frames are retained all the same.
    pub(crate) fn release_retained(&self, pages: PageSize, everything: bool) -> Result<u64, Error> {
        let medium = &self.medium;
        let kept = self.collector.retained.table(medium);
        let chunks = self.collector.retained.take_with_blocks(medium);
        if chunks.is_empty() {
            return Ok(0);
        }
        // A crash may have left frames in chunks that were not looked at yet.
        self.allocator.look_at_all(medium)?;
        let all = chunks.iter().flat_map(|chunk| kept.emptied_in(*chunk));
        let frames: Vec<Frame> = all.collect();
        let mut runs = Vec::new();
        let mut space = self.allocator.space().lock(medium);
        for emptied in frames.chunk_by(|a, b| a.chunk() == b.chunk()) {
            let chunk = emptied[0].chunk();
            // Where only plans are left in a page, there is no reason to keep it whole. A collection that moves
            // everything gets here all the time, and giving blocks back takes long.
            let has_gone = || space.each_taken(chunk).all(|frame| kept.holds(frame));
            match !everything && has_gone() {
                true => {
                    let together = self.frames_given_back(PageSize::Small);
                    runs.extend(space.take_gone(chunk, emptied, together));
                }
                false => {
                    let together = self.frames_given_back(pages);
                    runs.extend(space.take_finished(emptied, together));
                }
            }
        }
        drop(space);
        let discarded = self.discard(&runs);
        let mut space = self.allocator.space().lock(medium);
        for (index, &run) in runs.iter().enumerate() {
            space.finished(run, &frames, index < discarded.runs);
        }
        for &chunk in &chunks {
            // Holes between retained frames are of no use.
            if space.each_taken(chunk).all(|frame| kept.holds(frame)) {
                space.retire(chunk);
            }
        }
        let with_blocks = frames.iter().filter(|&&frame| !space.lacks_blocks(frame));
        let with_blocks: BTreeSet<Chunk> = with_blocks.map(|frame| frame.chunk()).collect();
        drop(space);
        self.collector
            .retained
            .still_have_blocks(medium, with_blocks);
        discarded.outcome.map(|()| discarded.bytes)
    }

    /// Whether a retained plan holds the blocks of its page, because the medium gives only whole pages back.
    pub(super) fn plans_hold_pages(&self) -> bool {
        self.keeps_addresses && self.medium.discard_bytes() > GROUP_FRAMES * FRAME_BYTES
    }

    /// The pages that stay because plans in them stay: emptying them wins nothing.
    pub(super) fn pages_of_plans(&self) -> BTreeSet<geometry::Chunk> {
        match self.plans_hold_pages() {
            true => self
                .collector
                .retained
                .table(&self.medium)
                .chunks_of_plans(),
            false => BTreeSet::new(),
        }
    }

    /// Bytes that a cycle may empty. Where addresses stay, retained plans take 1/64 of the emptied bytes, plus DRAM.
    /// Past a budget cycles stop: the pool of a program that never drops forwarding fragments, but does not fill up
    /// with plans.
    pub(super) fn may_empty(&self) -> u64 {
        if !self.keeps_addresses {
            return u64::MAX;
        }
        let medium = &self.medium;
        let kept = self.collector.retained.table(medium).emptied_frames() * FRAME_BYTES;
        let most = self.allocator.space().lock(medium).most_bytes(medium);
        let may_have = match most < medium.capacity() {
            true => most,
            false => medium.len().saturating_sub(kept),
        };
        (RETAINED_TIMES * may_have)
            .max(RETAINED_LEAST)
            .saturating_sub(kept)
    }
}

/// Vacated memory that stays empty, in a pool in which addresses stay.
impl<M: Medium> Pool<M> {
    /// The number of ended cycles whose addresses are retained, and the ranges emptied by those after the first `seen`.
    /// No thread may load or store there; no byte of them is reused before [`Pool::drop_forwarding`] or the pool's end.
    pub fn emptied_since(&self, seen: usize) -> (usize, Vec<(VirtAddr, u64)>) {
        let table = self.inner.collector.retained.table(&self.inner.medium);
        let cycles = table.cycles();
        let new = cycles.get(seen..).unwrap_or_default();
        let bytes = |run: FrameRun| (run.frame.start(), run.frames * FRAME_BYTES);
        let ranges = new.iter().flat_map(RetainedCycle::emptied).map(bytes);
        (cycles.len(), ranges.collect())
    }

    /// The object that contained the byte at `at` before a retained cycle moved it: the old and the current address of
    /// its header.
    pub fn moved_from(&self, at: VirtAddr) -> Option<(VirtAddr, VirtAddr)> {
        let table = self.inner.collector.retained.table(&self.inner.medium);
        table.object_around(at)
    }
}
