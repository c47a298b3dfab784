//! Objects that came and went with a transaction: counting them, and freeing their slots.

use firn_media::Medium;

use super::type_index;
use crate::alloc::Slot;
use crate::inner::Inner;
use crate::stat_shard::StatShard;
use crate::tx::changes::Change;

/// Counts objects that came (`sign` 1) or went (-1).
pub(super) fn count_all<M: Medium>(
    inner: &Inner<M>,
    tally: &mut StatShard,
    changes: &[Change],
    sign: i64,
) {
    tally.catch_up(inner.recounts());
    let alike =
        |a: &Change, b: &Change| a.slot.place.frame == b.slot.place.frame && a.type_id == b.type_id;
    for group in changes.chunk_by(alike) {
        let place = group[0].slot.place;
        let objects = group.len() as i64 * sign;
        let bytes = group.iter().map(|c| c.requested as i64).sum::<i64>() * sign;
        // The chunk's state was read when the slot was taken or located, so this cannot fail.
        let footprint = inner
            .allocator
            .count_live(&inner.medium, place, objects)
            .unwrap_or_default();
        tally.objects(
            &inner.medium,
            (type_index(group[0].type_id), place.class_index()),
            (objects, bytes),
        );
        tally.pages(&inner.medium, footprint);
    }
}

/// Frees slots, those of one bitmap word together.
pub(super) fn release_all<M: Medium>(inner: &Inner<M>, freed: &[Change]) {
    if inner.collector.defers_frees() && !freed.is_empty() {
        // M7: the marker or the healer may still look at these slots.
        inner
            .collector
            .defer(&inner.medium, freed.iter().map(|c| c.slot.place));
        return;
    }
    let stamp = inner.redo.counter();
    let word = |c: &Change| (c.slot.place.frame, c.slot.place.bit().0);
    for group in freed.chunk_by(|a, b| word(a) == word(b)) {
        let bits = group.iter().fold(0, |bits, c| bits | c.slot.place.bit().1);
        // The chunk's state was read when the objects were located, so this cannot fail.
        let _ = inner
            .allocator
            .release(&inner.medium, group[0].slot.place, bits, stamp);
    }
}

/// Frees a slot that no committed transaction has used.
pub(super) fn return_slot<M: Medium>(inner: &Inner<M>, slot: Slot) {
    // The chunk's state was read when the slot was taken, so this cannot fail.
    let _ = inner.allocator.release(
        &inner.medium,
        slot.place,
        slot.place.bit().1,
        inner.redo.counter(),
    );
}
