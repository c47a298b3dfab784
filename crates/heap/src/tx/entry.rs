//! Log entries on media: storing long ones, and reading them.

use firn_format::geometry::FrameRun;
use firn_format::lane::{self, ENTRY_HEADER_WORDS, EntryHeader, SLOT_PAYLOAD_WORDS};
use firn_media::{Medium, MediumExt};
use firn_units::VirtAddr;

use crate::steps;

/// Whether a payload of this many words fits into a slot.
pub(crate) fn fits_slot(words: usize) -> bool {
    words <= SLOT_PAYLOAD_WORDS
}

/// Stores an entry whose payload follows its header, or lies in `overflow`.
pub(super) fn store_long<M: Medium>(
    medium: &M,
    at: VirtAddr,
    mut header: EntryHeader,
    payload: &[u64],
    overflow: &[FrameRun],
) {
    if overflow.is_empty() {
        header.checksum = header.checksum(bytemuck::cast_slice(payload));
        let words = header.to_words();
        let len = (ENTRY_HEADER_WORDS + payload.len()) as u64 * 8;
        medium.store_bytes(at, bytemuck::cast_slice(&words));
        medium.store_bytes(
            at + size_of_val(&words) as u64,
            bytemuck::cast_slice(payload),
        );
        medium.write_back_for(&steps::UNDO_LOG_WRITE_BACK, at, len);
        return;
    }
    let mut inline = vec![0; ENTRY_HEADER_WORDS];
    let mut rest = payload;
    for run in overflow {
        let words = rest.len().min(run.bytes() as usize / 8);
        let (now, later) = rest.split_at(words);
        medium.store_bytes(run.start(), bytemuck::cast_slice(now));
        medium.write_back_for(&steps::OVERFLOW_WRITE_BACK, run.start(), words as u64 * 8);
        inline.extend([run.start().0, words as u64]);
        rest = later;
    }
    assert!(rest.is_empty(), "the overflow was sized for the payload");
    let covered = [&inline[ENTRY_HEADER_WORDS..], payload].concat();
    header.checksum = header.checksum(bytemuck::cast_slice(&covered));
    inline[..ENTRY_HEADER_WORDS].copy_from_slice(&header.to_words());
    medium.store_bytes(at, bytemuck::cast_slice(&inline));
    medium.write_back_for(&steps::LONG_ENTRY_WRITE_BACK, at, inline.len() as u64 * 8);
}

/// Reads the header of a slot.
pub(crate) fn load_header<M: Medium>(medium: &M, at: VirtAddr) -> EntryHeader {
    EntryHeader::from_words(core::array::from_fn(|i| medium.load_u64(at + i as u64 * 8)))
}

/// Reads an entry's payload and checks it; `None` if the entry is not valid.
pub(crate) fn load_payload<M: Medium>(
    medium: &M,
    at: VirtAddr,
    header: EntryHeader,
) -> Option<Vec<u64>> {
    let body = at + ENTRY_HEADER_WORDS as u64 * 8;
    if header.lsn == 0 || header.payload_words * 8 > medium.len() {
        return None;
    }
    if header.extents == 0 {
        if header.payload_words as usize > SLOT_PAYLOAD_WORDS {
            return None;
        }
        let mut payload = vec![0; header.payload_words as usize];
        let into = bytemuck::cast_slice_mut(&mut payload);
        let is_whole = |covered: &[u8]| is_whole(medium, header, covered);
        return medium.load_checked(body, into, is_whole).then_some(payload);
    }
    if header.extents > lane::MAX_EXTENTS {
        return None;
    }
    let mut covered = load_words(medium, body, header.extents * 2);
    let extents = covered.clone();
    let mut left = header.payload_words;
    for extent in extents.chunks_exact(2) {
        let (start, words) = (extent[0], extent[1]);
        if words > left || !start.is_multiple_of(8) || start.checked_add(words * 8)? > medium.len()
        {
            return None;
        }
        covered.extend(load_words(medium, VirtAddr(start), words as usize));
        left -= words;
    }
    if left != 0 || !is_whole(medium, header, bytemuck::cast_slice(&covered)) {
        return None;
    }
    Some(covered.split_off(header.extents * 2))
}

/// Whether the words that an entry's checksum covers are the original ones.
fn is_whole<M: Medium>(medium: &M, header: EntryHeader, covered: &[u8]) -> bool {
    header.checksum(covered) == header.checksum || medium.leaves_out(&steps::ENTRY_CHECKSUM)
}

fn load_words<M: Medium>(medium: &M, at: VirtAddr, count: usize) -> Vec<u64> {
    let mut words = vec![0u64; count];
    medium.load_bytes(at, bytemuck::cast_slice_mut(&mut words));
    words
}
