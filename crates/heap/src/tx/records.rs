//! Storing the content of log records, when entries are replayed and batches are undone.

use firn_format::geometry;
use firn_format::lane::Record;
use firn_media::{Medium, MediumExt};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::error::Error;
use crate::steps;

/// LSNs that recovery leaves for later transactions; a header beyond them is damaged.
pub(crate) const HEADROOM: u64 = 1 << 40;

/// Carries out a record, and writes its stores back.
pub(crate) fn apply<M: Medium>(medium: &M, record: &Record<'_>) -> Result<(), Error> {
    let (home, len) = record.home();
    if home < geometry::ROOTS || home.0.checked_add(len).is_none_or(|end| end > medium.len()) {
        return Err(Error::Damaged {
            what: "the address in a log entry",
            at: home.0,
        });
    }
    match *record {
        Record::Line { at, mask, words } => {
            let mut words = words.iter();
            for word in (0..8).filter(|w| mask >> w & 1 != 0) {
                if let Some(&value) = words.next() {
                    medium.store_u64(at + word * 8, value);
                }
            }
        }
        Record::Bits { at, set, clear } => {
            medium.update_bits(at, set, clear);
        }
        Record::Range { at, words } => {
            medium.store_bytes(at, bytemuck::cast_slice(words));
        }
        Record::Masks { at, set, masks } => {
            for (word, &mask) in (0..).zip(masks).filter(|(_, mask)| **mask != 0) {
                let (set, clear) = if set { (mask, 0) } else { (0, mask) };
                medium.update_bits(at + word * WORD_BYTES, set, clear);
            }
        }
        // The words also hold bytes beside the range, which belonged to another thread: none of those is stored.
        Record::Bytes { at, len, words } => {
            let lead = (at.0 % WORD_BYTES) as usize;
            let held: &[u8] = bytemuck::cast_slice(words);
            match medium.keeps(&steps::UNDO_BYTES_ALONE) {
                true => medium.store_exact(at, &held[lead..lead + len as usize]),
                false => medium.store_bytes(VirtAddr(at.0 - lead as u64), held),
            }
        }
    }
    medium.write_back_for(&steps::REPLAY_WRITE_BACK, VirtAddr(home.0), len);
    Ok(())
}
