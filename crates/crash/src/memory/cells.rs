//! Words, lines, pages and marks: how memory is addressed.

use core::ops::Range;

use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

/// Words of a line.
pub(crate) const LINE_WORDS: u64 = LINE_BYTES / WORD_BYTES;
/// Words of a page.
pub(crate) const PAGE_WORDS: u64 = FRAME_BYTES / WORD_BYTES;
/// Lines of a page.
pub(crate) const PAGE_LINES: u64 = FRAME_BYTES / LINE_BYTES;

/// The content of a line: its words, followed by the mark. The mark says whether a `relocate` stored to the line
/// (FFCCD, section 4.2). It moves with the content, and once it reaches persistence the line counts as reached. It has
/// a word address of its own (`mark_of`), so that a crash leaves line and mark as they were at one moment.
pub type Line = [u64; LINE_CELLS];
/// The content of a page: its words, then the marks of its lines.
pub(crate) type PageWords = [u64; PAGE_CELLS];

/// Words of a line and its mark.
pub(crate) const LINE_CELLS: usize = LINE_WORDS as usize + 1;
/// The index of the mark.
pub(crate) const MARK: usize = LINE_WORDS as usize;
pub(crate) const PAGE_CELLS: usize = (PAGE_WORDS + PAGE_LINES) as usize;
/// Beyond every word's address.
const MARKS: u64 = 1 << 60;

/// The address of a line's mark, as a word's.
pub(crate) const fn mark_of(line: u64) -> u64 {
    MARKS | line
}

/// Whether an address is a mark's.
#[inline(always)]
pub(crate) const fn is_mark(word: u64) -> bool {
    word >= MARKS
}

/// The line of a word, or of a mark.
#[inline(always)]
pub(crate) const fn line_of(word: u64) -> u64 {
    if word < MARKS {
        word / LINE_WORDS
    } else {
        word - MARKS
    }
}

/// The word's place in its line.
#[inline(always)]
pub(crate) const fn index_of(word: u64) -> usize {
    if word < MARKS {
        (word % LINE_WORDS) as usize
    } else {
        MARK
    }
}

/// The word's page, and its place there.
#[inline(always)]
pub(crate) const fn cell_of(word: u64) -> (usize, usize) {
    if word < MARKS {
        ((word / PAGE_WORDS) as usize, (word % PAGE_WORDS) as usize)
    } else {
        let line = word - MARKS;
        let page = (line / PAGE_LINES) as usize;
        (page, (PAGE_WORDS + line % PAGE_LINES) as usize)
    }
}

/// The word, or mark, of a page's cell.
pub(crate) const fn word_of_cell(page: u64, cell: usize) -> u64 {
    let cell = cell as u64;
    if cell < PAGE_WORDS {
        page * PAGE_WORDS + cell
    } else {
        mark_of(page * PAGE_LINES + cell - PAGE_WORDS)
    }
}

/// The address of a line's first byte.
pub(crate) fn line_at(line: u64) -> VirtAddr {
    VirtAddr(line * LINE_BYTES)
}

/// Lines that a range of bytes touches.
pub(crate) fn lines_of(start: u64, len: u64) -> Range<u64> {
    let line_bytes = LINE_WORDS * WORD_BYTES;
    if len == 0 {
        0..0
    } else {
        start / line_bytes..(start + len).div_ceil(line_bytes)
    }
}
