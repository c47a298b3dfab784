//! Allocation bits in log entries.

use firn_format::lane::Record;
use firn_units::VirtAddr;

use crate::tx::changes::Change;

/// The bits of these objects, those of one bitmap word together, in ascending order.
pub(super) fn by_word(changes: &[Change]) -> Vec<(VirtAddr, u64)> {
    let bit = |change: &Change| {
        (
            change.slot.place.bitmap_word_at(),
            change.slot.place.bit().1,
        )
    };
    let mut words: Vec<(VirtAddr, u64)> = changes.iter().map(bit).collect();
    words.sort_unstable_by_key(|&(at, _)| at);
    words.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 |= if same { next.1 } else { 0 };
        same
    });
    words
}

/// Appends records that set these objects' bits, or clear them: A6, as bits, so that neighbours' transactions do not
/// collide.
///
/// So compact that what frees objects fits into what the pool keeps free for logs, however many they are: a bit of its
/// own word takes two words, those of a word three bytes and less for an object of 16, which is the least.
pub(super) fn push(records: &mut Vec<u64>, changes: &[Change], set: bool) {
    if !changes.is_empty() {
        Record::push_masks(records, set, &by_word(changes));
    }
}
