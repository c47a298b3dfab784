//! The bytes as all threads see them: the content of the caches.
//!
//! Pages are made when first stored to, so a large window costs nothing. Everything here is atomic with relaxed order:
//! one OS thread carries all simulated ones, and store buffers govern the order between them.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use firn_units::{FRAME_BYTES, WORD_BYTES};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::cells::{
    LINE_WORDS, Line, MARK, PAGE_CELLS, PAGE_LINES, PAGE_WORDS, PageWords, cell_of, mark_of,
    word_of_cell,
};

struct Page {
    cells: [AtomicU64; PAGE_CELLS],
    /// A bit for each cell: whether its next load is to be recorded. Stored cells are known.
    fresh: [AtomicU64; PAGE_CELLS.div_ceil(64)],
}

impl Page {
    #[inline(always)]
    fn is_fresh(&self, index: usize) -> bool {
        self.fresh[index / 64].load(Relaxed) >> (index % 64) & 1 != 0
    }

    fn change_fresh(&self, first: usize, bits: u64, fresh: bool) {
        let mask = bits << (first % 64);
        let into = &self.fresh[first / 64];
        let before = into.load(Relaxed);
        let after = if fresh { before | mask } else { before & !mask };
        if after != before {
            into.store(after, Relaxed);
        }
    }
}

/// A bit for each word of a line.
const LINE_BITS: u64 = (1 << LINE_WORDS) - 1;

pub(crate) struct Memory {
    pages: Box<[OnceLock<Box<Page>>]>,
    /// Per frame, whether the device has blocks for it.
    backed: Box<[AtomicBool]>,
    /// Hash of the frames whose backing differs from the beginning.
    backing: AtomicU64,
    len: AtomicU64,
}

impl Memory {
    pub(crate) fn new(len: u64, capacity: u64) -> Self {
        let frames = (capacity / FRAME_BYTES) as usize;
        let backed = |frame| AtomicBool::new((frame as u64) < len.div_ceil(FRAME_BYTES));
        Self {
            pages: (0..frames).map(|_| OnceLock::new()).collect(),
            backed: (0..frames).map(backed).collect(),
            backing: AtomicU64::new(0),
            len: AtomicU64::new(len),
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self, word: u64) -> u64 {
        let (page, cell) = cell_of(word);
        match self.pages.get(page).and_then(OnceLock::get) {
            Some(page) => page.cells[cell].load(Relaxed),
            None => 0,
        }
    }

    /// Words of one page.
    pub(crate) fn copy_words(&self, first: u64, into: &mut [[u8; WORD_BYTES as usize]]) {
        let page = self.pages.get((first / PAGE_WORDS) as usize);
        match page.and_then(OnceLock::get) {
            Some(page) => {
                let words = &page.cells[(first % PAGE_WORDS) as usize..];
                for (into, word) in into.iter_mut().zip(words) {
                    *into = word.load(Relaxed).to_le_bytes();
                }
            }
            None => into.fill([0; WORD_BYTES as usize]),
        }
    }

    /// The word, and whether this load is to be recorded.
    #[inline(always)]
    pub(crate) fn look(&self, word: u64) -> (u64, bool) {
        let (page, cell) = cell_of(word);
        match self.pages.get(page).and_then(OnceLock::get) {
            Some(page) => (page.cells[cell].load(Relaxed), page.is_fresh(cell)),
            None => (0, false),
        }
    }

    /// Makes every word of a line fresh: its next load is recorded.
    pub(crate) fn mark_fresh(&self, line: u64) {
        self.set_fresh(line, true);
    }

    pub(crate) fn clear_fresh(&self, line: u64) {
        self.set_fresh(line, false);
    }

    fn set_fresh(&self, line: u64, fresh: bool) {
        let page = self.page((line / PAGE_LINES) as usize);
        let first = (line % PAGE_LINES * LINE_WORDS) as usize;
        page.change_fresh(first, LINE_BITS, fresh);
        page.change_fresh(cell_of(mark_of(line)).1, 1, fresh);
    }

    /// Marks the word's load as recorded.
    pub(crate) fn clear_fresh_word(&self, word: u64) {
        let (page, cell) = cell_of(word);
        self.page(page).change_fresh(cell, 1, false);
    }

    /// Whether a load of the line would be recorded.
    #[inline]
    pub(crate) fn has_fresh(&self, line: u64) -> bool {
        let first = (line % PAGE_LINES * LINE_WORDS) as usize;
        self.pages
            .get((line / PAGE_LINES) as usize)
            .and_then(OnceLock::get)
            .is_some_and(|page| {
                page.fresh[first / 64].load(Relaxed) >> (first % 64) & LINE_BITS != 0
            })
    }

    /// Words whose load would be recorded.
    pub(crate) fn fresh_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for (number, page) in self.pages.iter().enumerate() {
            if let Some(page) = page.get() {
                let fresh = (0..PAGE_CELLS).filter(|&cell| page.is_fresh(cell));
                words.extend(fresh.map(|cell| word_of_cell(number as u64, cell)));
            }
        }
        words
    }

    #[inline]
    pub(crate) fn store(&self, word: u64, value: u64) {
        let (page, cell) = cell_of(word);
        let page = self.page(page);
        page.cells[cell].store(value, Relaxed);
        page.change_fresh(cell, 1, false);
    }

    pub(crate) fn line(&self, line: u64) -> Line {
        let mut content = Line::default();
        if let Some(page) = self
            .pages
            .get((line / PAGE_LINES) as usize)
            .and_then(OnceLock::get)
        {
            let first = (line % PAGE_LINES * LINE_WORDS) as usize;
            for (word, from) in content[..MARK].iter_mut().zip(&page.cells[first..]) {
                *word = from.load(Relaxed);
            }
            content[MARK] = page.cells[cell_of(mark_of(line)).1].load(Relaxed);
        }
        content
    }

    pub(crate) fn set_line(&self, line: u64, content: &Line) {
        let page = self.page((line / PAGE_LINES) as usize);
        let first = (line % PAGE_LINES * LINE_WORDS) as usize;
        for (word, into) in content[..MARK].iter().zip(&page.cells[first..]) {
            into.store(*word, Relaxed);
        }
        page.cells[cell_of(mark_of(line)).1].store(content[MARK], Relaxed);
        self.set_fresh(line, false);
    }

    /// Pages that were ever touched, with their number.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (u64, PageWords)> + '_ {
        self.pages.iter().enumerate().filter_map(|(number, page)| {
            let page = page.get()?;
            Some((
                number as u64,
                core::array::from_fn(|cell| page.cells[cell].load(Relaxed)),
            ))
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Relaxed)
    }

    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Relaxed);
    }

    #[inline]
    pub(crate) fn is_backed(&self, frame: u64) -> bool {
        self.backed[frame as usize].load(Relaxed)
    }

    pub(crate) fn set_backed(&self, frame: u64, backed: bool) {
        if self.backed[frame as usize].swap(backed, Relaxed) != backed {
            let hash = xxh3_64(&frame.to_le_bytes());
            self.backing
                .store(self.backing.load(Relaxed) ^ hash, Relaxed);
        }
    }

    /// A hash of which frames have blocks.
    pub(crate) fn backing(&self) -> u64 {
        self.backing.load(Relaxed)
    }

    pub(crate) fn backed_frames(&self) -> u64 {
        self.backed
            .iter()
            .filter(|frame| frame.load(Relaxed))
            .count() as u64
    }

    /// Frames under the length that have no blocks.
    pub(crate) fn holes(&self) -> Vec<u64> {
        let frames = self.len().div_ceil(FRAME_BYTES);
        (0..frames)
            .filter(|&frame| !self.is_backed(frame))
            .collect()
    }

    fn page(&self, number: usize) -> &Page {
        self.pages[number].get_or_init(|| {
            Box::new(Page {
                cells: [const { AtomicU64::new(0) }; PAGE_CELLS],
                fresh: [const { AtomicU64::new(0) }; PAGE_CELLS.div_ceil(64)],
            })
        })
    }
}
