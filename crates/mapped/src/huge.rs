//! Huge pages on tmpfs.
//!
//! Unless it was mounted with huge pages, tmpfs hands out pages of 4 KiB, whatever `MADV_HUGEPAGE` says. On demand it
//! gathers the pages of an aligned 2 MiB into a huge page (`MADV_COLLAPSE`, since Linux 6.1). If the range has at most
//! its first page, it gets a huge page from the start, sooner than the kernel would prepare 512 small ones.

use core::ops::Range;
use std::fs::File;

use firn_units::{CHUNK_BYTES, FRAME_BYTES};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use crate::file::retry;
use crate::window::{Aside, FileMapping};

/// Whether to keep asking: when memory is fragmented, the kernel moves pages about before it refuses.
#[derive(Debug, Default)]
pub(crate) struct Luck {
    /// Huge pages to skip before the next try.
    left_out: u32,
    /// Huge pages that were skipped after the last failure.
    patience: u32,
}

impl Luck {
    const LEAST: u32 = 8;
    const MOST: u32 = 1024;

    fn wants_to_try(&mut self) -> bool {
        let tries = self.left_out == 0;
        self.left_out = self.left_out.saturating_sub(1);
        tries
    }

    fn learn(&mut self, won: bool) {
        if won {
            self.patience = 0;
        } else {
            self.patience = (self.patience * 2).clamp(Self::LEAST, Self::MOST);
            self.left_out = self.patience;
        }
    }
}

/// Allocates huge pages, while there are some, for the parts of the range that are aligned and hold no data. The caller
/// still has to allocate the range's blocks. The file grows by this, and stays longer even on failure.
pub(crate) fn allocate(luck: &mut Luck, file: &File, range: Range<u64>) {
    let first = range.start.next_multiple_of(CHUNK_BYTES);
    for at in (first..range.end).step_by(CHUNK_BYTES as usize) {
        let page = at..at + CHUNK_BYTES;
        if page.end <= range.end && is_hole(file, &page) && luck.wants_to_try() {
            luck.learn(gather(file, page).is_ok());
        }
    }
}

/// Turns a hole, to which nobody stores, into one huge page.
fn gather(file: &File, page: Range<u64>) -> Result<(), Errno> {
    retry(|| fallocate(file, FallocateFlags::empty(), page.start, FRAME_BYTES))?;
    let how = FileMapping {
        writable: true,
        dax: false,
        private: false,
    };
    Aside::map(page, file, how)?.gather_huge_pages()
}

/// Whether the file has no data in the range.
fn is_hole(file: &File, range: &Range<u64>) -> bool {
    match seek(file, SeekFrom::Data(range.start)) {
        Ok(data) => data >= range.end,
        // There is no data from here on, or this is beyond the file's end.
        Err(refused) => refused == Errno::NXIO,
    }
}

#[cfg(test)]
mod tests {
    use super::Luck;

    #[test]
    fn failures_are_repeated_ever_less() {
        let mut luck = Luck::default();
        let mut tries = 0;
        for _ in 0..100_000 {
            if luck.wants_to_try() {
                tries += 1;
                luck.learn(false);
            }
        }
        assert!((50..150).contains(&tries), "{tries} tries");
        while !luck.wants_to_try() {}
        luck.learn(true);
        assert!((0..1000).all(|_| luck.wants_to_try()));
    }
}
