//! Compaction by the collector itself: what nobody has touched yet is moved, source by source in the
//! order of their addresses.

use firn_format::class::Class;
use firn_format::geometry::Frame;
use firn_format::plan::Entry;
use firn_media::Medium;
use firn_units::{FRAME_BYTES, LINE_BYTES};

use super::collection::CollectOptions;
use super::summary::PageSize;
use crate::error::Error;
use crate::inner::Inner;
use crate::relocation::cycle::Cycle;
use crate::relocation::plan::frames_of;

/// Objects of a run that are asked for ahead, and bytes of each.
const PREFETCHED: usize = 16;
const PREFETCHED_BYTES: u64 = 192;
/// Bytes of sources whose blocks are given back together.
const RELEASED_BYTES: u64 = 8 << 20;

/// How far the collector has come with the sources of a cycle.
pub(super) struct Progress {
    /// The plan's entries in the order of their sources.
    order: Vec<u32>,
    /// Of these, how many have moved.
    done: usize,
    /// Of these, how many have given their blocks back.
    released: usize,
}

/// What a step of compaction did.
#[derive(Default)]
pub(super) struct Compacted {
    /// Objects that were moved.
    pub(super) moved: u64,
    /// Bytes of blocks that were given back.
    pub(super) released_bytes: u64,
    /// Whether everything has moved.
    pub(super) all: bool,
}

impl Progress {
    pub(super) fn new<M: Medium>(cycle: &Cycle<M>) -> Self {
        // Where they come and which they are: sorting them looks at nothing else.
        let sources = cycle.entries.iter().map(|entry| entry.source);
        let mut order: Vec<(Frame, u32)> = sources.zip(0..).collect();
        order.sort_unstable();
        Self {
            order: order.into_iter().map(|(_, index)| index).collect(),
            done: 0,
            released: 0,
        }
    }
}

impl<M: Medium> Inner<M> {
    /// Moves up to `limit` objects.
    ///
    /// Errors: the medium cannot give blocks back.
    pub(super) fn compact(
        &self,
        cycle: &Cycle<M>,
        progress: &mut Progress,
        limit: u64,
        options: &CollectOptions,
    ) -> Result<Compacted, Error> {
        let medium = &self.medium;
        let begin = medium.now_ns();
        let mut compacted = Compacted::default();
        let (mut bytes, mut unreleased) = (0, 0);
        while let Some(&index) = progress.order.get(progress.done) {
            let entry = &cycle.entries[index as usize];
            // The objects of the next run are asked for while those of this one are copied.
            if let Some(&next) = progress.order.get(progress.done + 1) {
                prefetch(medium, cycle, &cycle.entries[next as usize]);
            }
            for (unit, from) in cycle.units_of(entry) {
                if compacted.moved >= limit {
                    return Ok(compacted);
                }
                let moved = cycle.relocate_from(medium, unit, from);
                let slot = entry
                    .class
                    .map_or(entry.split * FRAME_BYTES, Class::slot_bytes);
                compacted.moved += moved;
                bytes += moved * slot;
            }
            progress.done += 1;
            unreleased += frames_of(entry) * FRAME_BYTES;
            if options.release_blocks && unreleased >= RELEASED_BYTES {
                compacted.released_bytes += self.release_moved(cycle, progress, options.pages)?;
                unreleased = 0;
            }
            if let Some(rate) = options.bytes_per_second {
                keep_rate(medium, begin, bytes, rate);
            }
        }
        if options.release_blocks {
            compacted.released_bytes += self.release_moved(cycle, progress, options.pages)?;
        }
        compacted.all = true;
        Ok(compacted)
    }

    /// Gives blocks of sources back of which everything has moved; where whole chunks are given back, not
    /// those of a chunk in which there is more to move.
    fn release_moved(
        &self,
        cycle: &Cycle<M>,
        progress: &mut Progress,
        pages: PageSize,
    ) -> Result<u64, Error> {
        let chunk = |index: u32| cycle.entries[index as usize].source.chunk();
        let mut end = progress.done;
        if let (PageSize::Huge, Some(&next)) = (pages, progress.order.get(end)) {
            let moved = &progress.order[progress.released..end];
            let same = moved
                .iter()
                .rev()
                .take_while(|&&index| chunk(index) == chunk(next));
            end -= same.count();
        }
        let moved = &progress.order[progress.released..end];
        let released = self.release_sources(cycle, moved, pages)?;
        progress.released = end;
        Ok(released)
    }
}

fn prefetch<M: Medium>(medium: &M, cycle: &Cycle<M>, entry: &Entry) {
    let bytes = entry
        .class
        .map_or(0, Class::slot_bytes)
        .min(PREFETCHED_BYTES);
    for (_, from) in cycle.units_of(entry).take(PREFETCHED) {
        (0..bytes)
            .step_by(LINE_BYTES as usize)
            .for_each(|at| medium.prefetch(from + at));
    }
}

/// Waits until so many bytes are due.
fn keep_rate<M: Medium>(medium: &M, begin: u64, bytes: u64, bytes_per_second: u64) {
    let due_ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    let mut attempt = 0;
    while u128::from(medium.now_ns().saturating_sub(begin)) < due_ns {
        medium.pause(attempt);
        attempt += 1;
    }
}
