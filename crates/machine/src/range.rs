//! Ranges of memory, line by line.

use firn_units::{LINE_BYTES, VirtAddr};

/// A part of a range within one line.
pub(crate) struct Piece {
    pub(crate) at: VirtAddr,
    pub(crate) len: u64,
}

/// The parts of a range, line by line.
pub(crate) fn lines_of(at: VirtAddr, len: u64) -> impl Iterator<Item = Piece> {
    let end = at + len;
    let mut next = at;
    core::iter::from_fn(move || {
        let at = next;
        if at >= end {
            return None;
        }
        next = VirtAddr((at.line_start() + LINE_BYTES).bytes().min(end.bytes()));
        Some(Piece { at, len: next - at })
    })
}
