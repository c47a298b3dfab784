//! Pages of which the process holds a copy: those that were stored to since they were last dropped.
//!
//! A page that is mapped privately is copied by the first store to it, and the copy takes memory. The log counts the
//! copies. At a bound, transactions wait until everything is home. Then copies are dropped that hold what the file holds:
//! the next load maps the file's page again.
//!
//! # Why dropping a copy changes nothing
//!
//! Nobody stores meanwhile, and the copy was just compared with the file's page, so a load sees the same bytes. They stay
//! the same until the next store: a checkpoint writes to that page of the file only for records that are not home, and a
//! page with such a record keeps its copy. Comparing alone is not enough. A copy that went from one content to another
//! and back equals the file's page, but the record of the content in between is still on its way there.

use core::ops::Range;

use firn_units::{CHUNK_BYTES, FRAME_BYTES, LINE_BYTES};

/// Pages of a chunk.
const PAGES: usize = (CHUNK_BYTES / FRAME_BYTES) as usize;
/// Lines of a page.
const LINES: u64 = FRAME_BYTES / LINE_BYTES;

/// For each page that the process holds a copy of, the number of the newest record with a line of it.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// By the pool's chunks. A page without a copy has zero.
    chunks: Vec<Option<Box<[u64; PAGES]>>>,
    count: usize,
    /// The page with which dropping goes on.
    next: usize,
}

impl Copies {
    /// Number of copies.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Notes that a record holds lines, which are ascending.
    pub(super) fn note(&mut self, lines: impl Iterator<Item = u64>, record: u64) {
        let mut last = None;
        for page in lines.map(|line| (line / LINES) as usize) {
            if last.replace(page) == Some(page) {
                continue;
            }
            let (chunk, within) = (page / PAGES, page % PAGES);
            if chunk >= self.chunks.len() {
                self.chunks.resize_with(chunk + 1, || None);
            }
            let pages = self.chunks[chunk].get_or_insert_with(|| Box::new([0; PAGES]));
            self.count += usize::from(pages[within] == 0);
            pages[within] = record;
        }
    }

    /// The newest record with a line of a page; `None` for a page without a copy.
    pub(super) fn record(&self, page: usize) -> Option<u64> {
        let pages = self.chunks.get(page / PAGES)?.as_ref()?;
        Some(pages[page % PAGES]).filter(|&record| record > 0)
    }

    /// The next page with a copy that dropping comes to; `None` at the end, after which it begins again.
    pub(super) fn next(&mut self) -> Option<usize> {
        let end = self.chunks.len() * PAGES;
        while self.next < end {
            let page = self.next;
            self.next = match &self.chunks[page / PAGES] {
                Some(_) => page + 1,
                None => (page / PAGES + 1) * PAGES,
            };
            if self.record(page).is_some() {
                return Some(page);
            }
        }
        self.next = 0;
        None
    }

    /// The pages with copies that dropping comes to next, at most so many, whose records are home.
    pub(super) fn following(&self, most: usize, home: u64) -> Vec<usize> {
        let is_home = |page: &usize| self.record(*page).is_some_and(|record| record <= home);
        let pages = self.next..self.chunks.len() * PAGES;
        pages.filter(is_home).take(most).collect()
    }

    /// Dropping goes on from a page, if it has not come as far.
    pub(super) fn go_on_from(&mut self, page: usize) {
        self.next = self.next.max(page);
    }

    /// Notes that a range of the pool has no copies any more.
    pub(super) fn forget(&mut self, range: &Range<u64>) {
        for page in range.start / FRAME_BYTES..range.end.div_ceil(FRAME_BYTES) {
            let page = page as usize;
            let Some(chunk) = self.chunks.get_mut(page / PAGES) else {
                return;
            };
            if let Some(pages) = chunk {
                self.count -= usize::from(pages[page % PAGES] > 0);
                pages[page % PAGES] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_once_and_come_in_turn() {
        let mut copies = Copies::default();
        let far = (3 * PAGES as u64 + 7) * LINES;
        copies.note([0, 1, LINES - 1, LINES, far].into_iter(), 5);
        copies.note([1].into_iter(), 9);
        assert_eq!(copies.count(), 3);
        let all: Vec<_> = std::iter::from_fn(|| copies.next()).collect();
        assert_eq!(all, [0, 1, 3 * PAGES + 7]);
        let records = [0, 1, 2, PAGES].map(|page| copies.record(page));
        assert_eq!(records, [Some(9), Some(5), None, None]);
        copies.go_on_from(1);
        assert_eq!(copies.next(), Some(1));
        copies.forget(&(FRAME_BYTES..1 << 40));
        assert_eq!((copies.count(), copies.next()), (1, None));
        assert_eq!(copies.next(), Some(0));
    }
}
