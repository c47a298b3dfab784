//! Allocation bits in log entries.

use firn_format::lane::Record;
use firn_units::VirtAddr;

use crate::tx::changes::Change;

/// The bits of these objects, merged by bitmap word, in ascending order.
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
/// The records are compact enough that any number of frees fits into the log space that the pool keeps free: a lone bit
/// takes two words, and a word's bits take at most three bytes for each object of the least size.
pub(super) fn push(records: &mut Vec<u64>, changes: &[Change], set: bool) {
    if !changes.is_empty() {
        Record::push_masks(records, set, &by_word(changes));
    }
}
