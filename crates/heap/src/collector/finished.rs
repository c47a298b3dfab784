//! Gives blocks of sources back while the cycle goes on, once everything in them has moved.
//!
//! Until its cycle ends a source keeps its addresses, because references may name them. Its content is no longer needed
//! once every copy counts on media: the copies are durable before their settled words (rule 4), and the words before
//! the blocks go, so recovery never copies again from a source without blocks.

use core::sync::atomic::Ordering;

use firn_format::geometry::Frame;
use firn_format::statistics::{Counter, WORDS};
use firn_format::superblock::PoolKind;
use firn_media::{Medium, MediumExt, Scope};

use super::options::PageSize;
use crate::error::Error;
use crate::inner::Inner;
use crate::relocation::cycle::Cycle;
use crate::relocation::plan::frames_of;
use crate::stat_shard;

/// Settles all objects in the sources of these entries, which have moved, and discards the sources' blocks. Returns how
/// many bytes. Two fences, however many objects.
///
/// Errors: the medium cannot discard; nothing is lost then.
pub(super) fn release_sources<M: Medium>(
    inner: &Inner<M>,
    cycle: &Cycle<M>,
    entries: &[u32],
    pages: PageSize,
) -> Result<u64, Error> {
    let medium = &inner.medium;
    let _scope = medium.scope(Scope::Finish);
    let entries = || entries.iter().map(|&index| &cycle.entries[index as usize]);
    entries().for_each(|entry| cycle.write_back_copies(medium, entry));
    medium.fence();
    entries().for_each(|entry| cycle.settle_all(medium, entry));
    medium.fence();
    entries().for_each(|entry| cycle.settled_all_durably(entry));
    let mut frames: Vec<Frame> = Vec::new();
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    for entry in entries() {
        let count = frames_of(entry);
        frames.extend((0..count).map(|i| entry.source.plus(i)));
        // A traced pool is counted anew after a crash, so these frames may be counted out at once.
        if inner.kind == PoolKind::Traced {
            let live = inner
                .allocator
                .set_run_live(medium, entry.source, count, 0)?;
            change[Counter::LiveFrames.word()] += live.frames;
            change[Counter::LiveChunks.word()] += live.chunks;
        }
    }
    frames.sort_unstable();
    cycle.lacks_blocks.store(true, Ordering::Relaxed);
    let together = inner.frames_given_back(pages);
    let runs = inner
        .allocator
        .space()
        .lock(medium)
        .take_finished(&frames, together);
    let discarded = inner.discard(&runs);
    let mut space = inner.allocator.space().lock(medium);
    for (index, &run) in runs.iter().enumerate() {
        space.finished(run, &frames, index < discarded.runs);
    }
    drop(space);
    change[Counter::ReleasedBytes.word()] = discarded.bytes as i64;
    stat_shard::add(medium, &change);
    discarded.outcome?;
    Ok(discarded.bytes)
}
