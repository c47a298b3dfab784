//! The bytes as all threads see them: what the caches hold.
//!
//! Pages exist once they are stored to, so a large window costs nothing. Everything here is
//! atomic with relaxed order: one OS thread carries all simulated ones, the order between them is
//! the store buffers' business.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use firn_units::{FRAME_BYTES, LINE_BYTES, WORD_BYTES};

/// Words of a line.
pub(crate) const LINE_WORDS: u64 = LINE_BYTES / WORD_BYTES;
/// Words of a page.
pub(crate) const PAGE_WORDS: u64 = FRAME_BYTES / WORD_BYTES;
/// Lines of a page.
pub(crate) const PAGE_LINES: u64 = FRAME_BYTES / LINE_BYTES;

/// The content of a line.
pub type Line = [u64; LINE_WORDS as usize];
/// The content of a page.
pub(crate) type PageWords = [u64; PAGE_WORDS as usize];

type Page = [AtomicU64; PAGE_WORDS as usize];

pub(crate) struct Memory {
    pages: Box<[OnceLock<Box<Page>>]>,
    /// Per frame, whether the device has blocks for it.
    backed: Box<[AtomicBool]>,
    len: AtomicU64,
}

impl Memory {
    pub(crate) fn new(len: u64, capacity: u64) -> Self {
        let frames = (capacity / FRAME_BYTES) as usize;
        let backed = |frame| AtomicBool::new((frame as u64) < len.div_ceil(FRAME_BYTES));
        Self {
            pages: (0..frames).map(|_| OnceLock::new()).collect(),
            backed: (0..frames).map(backed).collect(),
            len: AtomicU64::new(len),
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self, word: u64) -> u64 {
        match self
            .pages
            .get((word / PAGE_WORDS) as usize)
            .and_then(OnceLock::get)
        {
            Some(page) => page[(word % PAGE_WORDS) as usize].load(Relaxed),
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn store(&self, word: u64, value: u64) {
        let page = self.page((word / PAGE_WORDS) as usize);
        page[(word % PAGE_WORDS) as usize].store(value, Relaxed);
    }

    pub(crate) fn line(&self, line: u64) -> Line {
        let mut content = [0; LINE_WORDS as usize];
        if let Some(page) = self
            .pages
            .get((line / PAGE_LINES) as usize)
            .and_then(OnceLock::get)
        {
            let first = (line % PAGE_LINES * LINE_WORDS) as usize;
            for (word, from) in content.iter_mut().zip(&page[first..]) {
                *word = from.load(Relaxed);
            }
        }
        content
    }

    pub(crate) fn set_line(&self, line: u64, content: &Line) {
        let page = self.page((line / PAGE_LINES) as usize);
        let first = (line % PAGE_LINES * LINE_WORDS) as usize;
        for (word, into) in content.iter().zip(&page[first..]) {
            into.store(*word, Relaxed);
        }
    }

    /// Pages that were ever touched, with their number.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (u64, PageWords)> + '_ {
        self.pages.iter().enumerate().filter_map(|(number, page)| {
            let page = page.get()?;
            Some((
                number as u64,
                core::array::from_fn(|word| page[word].load(Relaxed)),
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
        self.backed[frame as usize].store(backed, Relaxed);
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
        self.pages[number]
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; PAGE_WORDS as usize]))
    }
}
