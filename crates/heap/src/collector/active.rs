//! The third state of a collection: a cycle is in force. The program moves what it touches; the collector moves the rest,
//! source by source in the order of their addresses.

use std::sync::Arc;

use firn_format::class::Class;
use firn_format::geometry::Frame;
use firn_format::plan::Entry;
use firn_media::Medium;
use firn_units::{FRAME_BYTES, LINE_BYTES};

use super::finished::release_sources;
use super::options::{CollectOptions, PageSize};
use crate::error::Error;
use crate::inner::Inner;
use crate::relocation::cycle::Cycle;
use crate::relocation::plan::frames_of;

/// Objects of a run that are prefetched, and bytes of each.
const PREFETCHED: usize = 16;
const PREFETCHED_BYTES: u64 = 192;
/// Bytes of sources whose blocks are given back together.
const RELEASED_BYTES: u64 = 8 << 20;

/// How far the collector has come with the sources of a cycle.
struct Progress {
    /// The plan's entries, ordered by source.
    order: Vec<u32>,
    /// How many of these have moved.
    done: usize,
    /// How many of these have given their blocks back.
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
    fn new<M: Medium>(cycle: &Cycle<M>) -> Self {
        // Addresses and indices of the sources; sorting them reads nothing else.
        let sources = cycle.entries.iter().map(|entry| entry.source);
        let mut order: Vec<(Frame, u32)> = sources.zip(0..).collect();
        order.sort_unstable();
        Self {
            order: order.into_iter().map(|(_, index)| index).collect(),
            done: 0,
            released: 0,
        }
    }

    /// Gives back the blocks of sources that have moved completely. Where whole chunks are given back, a chunk in which
    /// more must move keeps its blocks.
    fn release_moved<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        cycle: &Cycle<M>,
        pages: PageSize,
    ) -> Result<u64, Error> {
        let chunk = |index: u32| cycle.entries[index as usize].source.chunk();
        let mut end = self.done;
        if let (PageSize::Huge, Some(&next)) = (pages, self.order.get(end)) {
            let moved = &self.order[self.released..end];
            let same = moved
                .iter()
                .rev()
                .take_while(|&&index| chunk(index) == chunk(next));
            end -= same.count();
        }
        let moved = &self.order[self.released..end];
        let released = release_sources(inner, cycle, moved, pages)?;
        self.released = end;
        Ok(released)
    }
}

/// A cycle in force, and how far the collector itself has come with it.
pub(super) struct Active<'p, M: Medium> {
    pub(super) inner: &'p Inner<M>,
    pub(super) cycle: Arc<Cycle<M>>,
    /// `None` until the collector itself moves an object.
    progress: Option<Progress>,
}

impl<'p, M: Medium> Active<'p, M> {
    pub(super) fn new(inner: &'p Inner<M>, cycle: Arc<Cycle<M>>) -> Self {
        Self {
            inner,
            cycle,
            progress: None,
        }
    }

    /// The cycle in force: an earlier collection or a crash left it.
    pub(super) fn of_pool(inner: &'p Inner<M>) -> Option<Self> {
        let cycle = inner.collector.cycle(&inner.medium)?;
        Some(Self::new(inner, cycle))
    }

    /// Moves up to `limit` objects that nobody has touched yet.
    ///
    /// Errors: the medium cannot give blocks back.
    pub(super) fn compact(
        &mut self,
        limit: u64,
        options: &CollectOptions,
    ) -> Result<Compacted, Error> {
        let (cycle, medium) = (&*self.cycle, &self.inner.medium);
        let progress = self.progress.get_or_insert_with(|| Progress::new(cycle));
        let begin = medium.now_ns();
        let mut compacted = Compacted::default();
        let (mut bytes, mut unreleased) = (0, 0);
        while let Some(&index) = progress.order.get(progress.done) {
            let entry = &cycle.entries[index as usize];
            // The objects of the next run are prefetched while those of this one are copied.
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
                compacted.released_bytes +=
                    progress.release_moved(self.inner, cycle, options.pages)?;
                unreleased = 0;
            }
            if let Some(rate) = options.bytes_per_second {
                keep_rate(medium, begin, bytes, rate);
            }
        }
        if options.release_blocks {
            compacted.released_bytes += progress.release_moved(self.inner, cycle, options.pages)?;
        }
        compacted.all = true;
        Ok(compacted)
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

/// Waits until `bytes` bytes are due.
fn keep_rate<M: Medium>(medium: &M, begin: u64, bytes: u64, bytes_per_second: u64) {
    let due_ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    let mut attempt = 0;
    while u128::from(medium.now_ns().saturating_sub(begin)) < due_ns {
        medium.pause(attempt);
        attempt += 1;
    }
}
