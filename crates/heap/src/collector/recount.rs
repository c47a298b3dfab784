//! Counts the pool anew, while the program runs, after a crash has left its counters behind.
//!
//! The objects of one moment are counted, and the changes of sessions since then are added. In a traced pool marking
//! counts them. In an explicit one a walk over the allocation bits does: it skips slots that came into use since the
//! moment, which are noted as taken. Slots that were freed since keep their headers, because frees wait until the walk
//! has ended.

use std::sync::atomic::Ordering;

use firn_format::header::ObjectHeader;
use firn_format::statistics::{Counter, FIRST_CLASS, FIRST_EVENT, WORDS};
use firn_media::{Medium, MediumExt, Scope};

use super::noted::Noted;
use crate::alloc::{Footprint, Place, Slot};
use crate::error::Error;
use crate::inner::Inner;
use crate::object::requested_bytes;
use crate::stat_shard;
use crate::trace::Marks;
use crate::walk::each_allocated;

/// The sums so far.
struct Count<'p, M: Medium> {
    taken: Noted<'p, M>,
    counted: Marks,
    sums: Box<[i64; WORDS]>,
}

impl<M: Medium> Count<'_, M> {
    /// Counts an object of the beginning, once.
    fn add(&mut self, slot: &Slot, header: ObjectHeader) {
        let Place { frame, index, .. } = slot.place;
        if !self.taken.has(slot.place)
            && self.counted.mark(frame, index)
            && let Some(requested) = requested_bytes(header, slot.bytes)
        {
            let what = (header.type_id(), slot.place.class_index());
            stat_shard::count(&mut self.sums, what, (1, requested as i64));
        }
    }
}

/// Makes the counters of an explicit pool exact. No cycle is open.
///
/// Errors: an operation stayed open, the frame table is damaged; the counters still lag.
pub(super) fn recount_allocated<M: Medium>(inner: &Inner<M>) -> Result<(), Error> {
    let medium = &inner.medium;
    let _scope = medium.scope(Scope::Mark);
    inner.allocator.look_at_all(medium)?;
    let mut count = Count {
        taken: Noted::new(inner),
        counted: Marks::new(medium.len()),
        sums: Box::new([0; WORDS]),
    };
    let counters = inner.stop_for_cycle(|| {
        inner.allocator.drain_all(medium)?;
        count.taken.begin();
        inner.collector.set_deferring(true);
        Ok::<_, Error>(inner.begin_recount())
    })??;
    let walked = each_allocated(medium, None, |slot, header| count.add(&slot, header));
    let ended = inner.stop_for_cycle(|| inner.collector.set_deferring(false));
    // Given up: sessions that still defer do so in vain, and without harm.
    inner.collector.set_deferring(false);
    for place in inner.collector.take_deferred(medium) {
        let bytes = place.class.map_or(0, |class| class.slot_bytes());
        let at = place.frame.start() + place.index * bytes;
        if let Ok(slot) = inner.allocator.locate(medium, at) {
            count.add(&slot, ObjectHeader(medium.load_u64(at)));
        }
        inner
            .allocator
            .release_one(medium, place, inner.redo.counter());
    }
    drop(count.taken);
    walked?;
    ended?;
    recount(inner, &count.sums, &counters)?;
    inner.exact.store(true, Ordering::Release);
    Ok(())
}

/// Replaces `counters`, the counters of the moment when the count began, by `sums`. Sessions drop the changes that they
/// had not published at that moment ([`Inner::begin_recount`]). Pages are counted while no operation is open.
///
/// Errors: an operation stayed open.
pub(super) fn recount<M: Medium>(
    inner: &Inner<M>,
    sums: &[i64; WORDS],
    counters: &[i64; WORDS],
) -> Result<(), Error> {
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    for (word, change) in change.iter_mut().enumerate() {
        *change = sums[word] - counters[word];
    }
    change[FIRST_EVENT..FIRST_CLASS].fill(0);
    inner.stop_for_cycle(|| {
        let Footprint { frames, chunks } = inner.allocator.footprint();
        for (counter, count) in [(Counter::LiveFrames, frames), (Counter::LiveChunks, chunks)] {
            change[counter.word()] = count - inner.counter(counter);
        }
        stat_shard::add(&inner.medium, &change);
    })
}
