//! Space: blocks are allocated before they are stored to, and given back.
//!
//! On a disk this works in whole pieces. The kernel may hold a file in folios of up to 2 MiB, aligned to their length,
//! for instance after reading ahead for another program that copies the file. The first store to a folio allocates
//! every block that it lacks, and raises SIGBUS if none is left. So no piece of the file has some blocks and lacks
//! others, except pieces to which nobody stores until the next try to reserve them.
//!
//! Concurrency: one thread at a time, under the mutex around [`SpaceState`]; other threads load and store meanwhile. A
//! range that is remapped reads the same before, during and after, except for the change that the caller asked for.

use core::ops::Range;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{MutexGuard, PoisonError};

use firn_media::{MediumError, MediumExt, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr, WORD_BYTES};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstat, ftruncate, seek};
use rustix::io::Errno;

use crate::extents::{self, Blocks, incomplete};
use crate::file::{PoolFile, punch, retry};
use crate::holes::Holes;
use crate::mapped::asked_of;
use crate::window::{FileMapping, Stores};
use crate::{Backing, HugePages, Mapped, calls, huge};

/// The state that the mutex around changes of space protects.
#[derive(Debug, Default)]
pub(crate) struct SpaceState {
    /// Ranges where zeros are mapped instead of the file, on tmpfs.
    holes: Holes,
    luck: huge::Luck,
}

impl Mapped {
    pub(crate) fn reserve_space(&self, range: Range<u64>) -> Result<(), MediumError> {
        let mut space = self.lock_space()?;
        if range.end > self.window.bytes() {
            return Err(MediumError::BeyondCapacity {
                medium: self.display_name(),
                asked: range.end,
                capacity: self.window.bytes(),
            });
        }
        let old_len = self.len();
        if let Some(file) = &self.file {
            for blocks in self.pieces_of(&range, old_len) {
                self.allocate_blocks(&mut space, file, blocks, old_len)
                    .map_err(|refused| self.refusal("allocating blocks", range.clone(), refused))?;
            }
            self.fill_in(&mut space, file, range.clone())?;
        }
        if range.end > old_len {
            self.map_more(old_len..range.end).map_err(|refused| {
                if let Some(file) = &self.file {
                    let _ = retry(|| ftruncate(&file.file, old_len));
                }
                self.refusal("mapping more of the pool", range.clone(), refused)
            })?;
            self.set_len(range.end);
        }
        Ok(())
    }

    pub(crate) fn discard_space(&self, range: Range<u64>) -> Result<(), MediumError> {
        let mut space = self.lock_space()?;
        let range = range.start.min(self.len())..range.end.min(self.len());
        if range.is_empty() {
            return Ok(());
        }
        let Some(file) = &self.file else {
            // If the range were only forgotten, the original's pages would reappear.
            let forgotten = match self.original.is_some() {
                true => self.window.map_memory(range),
                false => self.window.forget(range),
            };
            return forgotten.map_err(|e| self.io("discarding a range", e));
        };
        let whole = self.whole_pieces(&range);
        if whole.is_empty() {
            self.erase(range);
            return Ok(());
        }
        match punch(&file.file, &whole) {
            Ok(()) => self.cover(&mut space, whole.clone()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.erase(whole.clone()),
            Err(other) => return Err(self.io("discarding a range", other)),
        }
        self.erase(range.start..whole.start);
        self.erase(whole.end..range.end);
        Ok(())
    }

    /// Bytes of a piece, which has all its blocks or none (see the head of this file). In memory each page is a piece.
    /// DAX has no folios, but maps 2 MiB at once where it can, and allocates blocks for that.
    pub(crate) fn piece_bytes(&self) -> u64 {
        match self.backing {
            Backing::Tmpfs | Backing::Anonymous => FRAME_BYTES,
            Backing::Disk | Backing::Dax => CHUNK_BYTES,
        }
    }

    /// The whole pieces of a range. The medium's last piece ends at its length.
    fn whole_pieces(&self, range: &Range<u64>) -> Range<u64> {
        let piece = self.piece_bytes();
        let start = range.start.next_multiple_of(piece);
        let end = match range.end == self.len() {
            true => range.end,
            false => range.end - range.end % piece,
        };
        start..end.max(start)
    }

    /// Makes a range read as zeros. Frames that do so already are not stored to: they may have no blocks.
    fn erase(&self, range: Range<u64>) {
        for frame in range.step_by(FRAME_BYTES as usize) {
            let words = (frame..frame + FRAME_BYTES).step_by(WORD_BYTES as usize);
            if words.map(VirtAddr).any(|at| self.load_u64(at) != 0) {
                self.zero(VirtAddr(frame), FRAME_BYTES);
            }
        }
    }

    /// The pieces that need blocks when a range is reserved: those that hold the range, up to the file's new end, and,
    /// if the file grows, the rest of the piece that holds its old end.
    fn pieces_of(&self, range: &Range<u64>, old_len: u64) -> Vec<Range<u64>> {
        let piece = self.piece_bytes();
        let len = old_len.max(range.end);
        let start = range.start - range.start % piece;
        let whole = start..range.end.next_multiple_of(piece).min(len);
        let cut = old_len - old_len % piece;
        if range.end <= old_len || cut == old_len || start <= cut {
            return vec![whole];
        }
        vec![cut..(cut + piece).min(len), whole]
    }

    /// Allocates the missing blocks of every piece that has some, and replaces blocks shared with another file by the
    /// pool's own. Older versions leave such pieces, and so do copies that skipped zeros or have copied nothing yet.
    ///
    /// Errors: no space; the content is unchanged.
    pub(crate) fn complete_pieces(&self) -> Result<(), MediumError> {
        let Some(file) = self
            .file
            .as_ref()
            .filter(|_| self.piece_bytes() > FRAME_BYTES)
        else {
            return Ok(());
        };
        let len = self.len();
        let asking = |e| self.io("asking for the file's blocks", e);
        let known = extents::blocks(&file.file, 0..len).map_err(asking)?;
        let blocks = match known {
            Some(blocks) => blocks,
            None => {
                let ranges = self.ranges_with_data()?.unwrap_or_default();
                let owned = |range| Blocks {
                    range,
                    shared: false,
                };
                ranges.into_iter().map(owned).collect()
            }
        };
        for part in incomplete(&blocks, self.piece_bytes(), len) {
            self.allocate_blocks(&mut SpaceState::default(), file, part.clone(), len)
                .map_err(|refused| self.refusal("allocating blocks", part, refused))?;
        }
        for Blocks { range, .. } in blocks.into_iter().filter(|blocks| blocks.shared) {
            let (unshare, bytes) = (FallocateFlags::UNSHARE_RANGE, range.end - range.start);
            match retry(|| fallocate(&file.file, unshare, range.start, bytes)) {
                // File systems that promise nothing have no such call either.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(refused) => {
                    return Err(self.refusal(
                        "copying blocks that another file shares",
                        range,
                        refused,
                    ));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn truncate_space(&self, len: u64) -> Result<(), MediumError> {
        let mut space = self.lock_space()?;
        let old_len = self.len();
        if len >= old_len {
            return Ok(());
        }
        // The length first, the file last, so that nobody touches a page past the file's end.
        self.set_len(len);
        space.holes.remove(len..old_len);
        let result = self.window.map_zeros(len..old_len).and_then(|()| {
            let Some(file) = &self.file else {
                return Ok(());
            };
            retry(|| ftruncate(&file.file, len))
        });
        result.map_err(|refused| {
            if self.map_more(len..old_len).is_ok() {
                self.set_len(old_len);
            }
            self.io("truncating", refused)
        })
    }

    pub(crate) fn sync_space(&self) -> Result<(), MediumError> {
        if !self.writable {
            return Ok(());
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        // The lock that guards the length is not taken: a sync that waits for a disk must not keep others from growing.
        // Stores to the space that they add meanwhile may or may not be included.
        calls::write_out(&self.window, 0..self.len())
            .and_then(|()| calls::sync_file(&file.file))
            .map_err(|e| self.io("syncing", e))
    }

    pub(crate) fn publish_file(&self) -> Result<(), MediumError> {
        let Some(file) = self.file.as_ref().filter(|file| file.is_draft()) else {
            return Ok(());
        };
        // Content first: a name that led to incomplete content would be a pool that cannot be opened.
        self.sync_space()?;
        file.publish().map_err(|refused| match refused {
            Errno::EXIST => MediumError::Exists {
                medium: self.display_name(),
            },
            other => self.io("naming the file", other),
        })
    }

    pub(crate) fn allocated_bytes(&self) -> Result<u64, MediumError> {
        /// The unit of `st_blocks`, whatever the file system's block size is.
        const STAT_BLOCK_BYTES: u64 = 512;
        // What is shown of a file stands for it.
        let shown = self.original.as_ref().filter(|_| !self.writable);
        let Some(file) = self.file.as_deref().or(shown) else {
            return Ok(self.len());
        };
        let stat = fstat(&file.file).map_err(|e| self.io("reading the file's size", e))?;
        Ok(stat.st_blocks as u64 * STAT_BLOCK_BYTES)
    }

    pub(crate) fn ranges_with_data(&self) -> Result<Option<Vec<Range<u64>>>, MediumError> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let error = |e| self.io("looking for the file's data", e);
        let (len, mut ranges, mut at) = (self.len(), Vec::new(), 0);
        while at < len {
            let start = match seek(&file.file, SeekFrom::Data(at)) {
                Ok(start) => start,
                // There are only holes from here on.
                Err(Errno::NXIO) => break,
                Err(Errno::OPNOTSUPP | Errno::INVAL) => return Ok(None),
                Err(other) => return Err(error(other)),
            };
            let hole = next_hole(&file.file, start, len).map_err(error)?.start;
            if start < len {
                ranges.push(start..hole.min(len));
            }
            // Another program may discard the data just found, so always advance.
            at = hole.max(start + 1);
        }
        Ok(Some(ranges))
    }

    pub(crate) fn io(&self, doing: &'static str, source: impl Into<std::io::Error>) -> MediumError {
        MediumError::Io {
            medium: self.display_name(),
            doing,
            source: source.into(),
        }
    }

    fn lock_space(&self) -> Result<MutexGuard<'_, SpaceState>, MediumError> {
        if !self.writable {
            return Err(MediumError::ReadOnly {
                medium: self.display_name(),
            });
        }
        Ok(self.space.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Maps zeros over a punched range on tmpfs, where a load from a hole of the file would allocate it again.
    fn cover(&self, space: &mut SpaceState, range: Range<u64>) {
        let worthwhile = self.backing == Backing::Tmpfs && space.holes.has_room();
        if worthwhile && self.window.map_zeros(range.clone()).is_ok() {
            space.holes.insert(range);
        }
    }

    /// Maps the file again over the parts of the range that [`Self::cover`] covered.
    fn fill_in(
        &self,
        space: &mut SpaceState,
        file: &PoolFile,
        range: Range<u64>,
    ) -> Result<(), MediumError> {
        let mut covered = space.holes.remove(range);
        while let Some(part) = covered.pop() {
            if let Err(refused) = self.map_of(file, part.clone()) {
                covered.push(part.clone());
                covered
                    .into_iter()
                    .for_each(|part| space.holes.insert(part));
                return Err(self.refusal("mapping reserved space", part, refused));
            }
        }
        Ok(())
    }

    /// Maps the part by which the pool grew.
    fn map_more(&self, grown: Range<u64>) -> Result<(), Errno> {
        match &self.file {
            Some(file) => self.map_of(file, grown),
            None => {
                self.window.map_memory(grown.clone())?;
                self.window
                    .advise_huge_pages(grown, asked_of(self.backing, &self.options));
                Ok(())
            }
        }
    }

    fn map_of(&self, file: &PoolFile, range: Range<u64>) -> Result<(), Errno> {
        self.window
            .map_file(range.clone(), &file.file, self.mapping())?;
        // Neighbouring mappings with equal advice become one.
        self.window
            .advise_huge_pages(range, asked_of(self.backing, &self.options));
        Ok(())
    }

    fn mapping(&self) -> FileMapping {
        FileMapping {
            writable: self.writable,
            dax: self.backing == Backing::Dax,
            private: self.stores == Stores::Private,
        }
    }

    /// Allocates the range's blocks. A failure leaves the file's length and content as they were.
    pub(crate) fn allocate_blocks(
        &self,
        space: &mut SpaceState,
        file: &PoolFile,
        range: Range<u64>,
        old_len: u64,
    ) -> Result<(), Errno> {
        if self.backing == Backing::Tmpfs && self.options.huge_pages == HugePages::Ask {
            huge::allocate(&mut space.luck, &file.file, range.clone());
        }
        let len = range.end - range.start;
        let plain = FallocateFlags::empty();
        let result = match retry(|| fallocate(&file.file, plain, range.start, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let mut filled = Vec::new();
                // Written zeros look like data, so the next open would go on filling the piece.
                fill_holes(file, range, old_len, &mut filled).inspect_err(|_| {
                    for hole in &filled {
                        // If a hole stays filled, the next try finds it.
                        let _ = punch(&file.file, hole);
                    }
                })
            }
            // xfs wants as much space as the range is long, even where it has its blocks.
            Err(refused @ (Errno::NOSPC | Errno::DQUOT)) if range.end <= old_len => {
                allocate_holes(file, range, refused)
            }
            other => other,
        };
        result.inspect_err(|_| {
            // Blocks allocated inside the old length read as zeros; the next try finds them.
            let _ = retry(|| ftruncate(&file.file, old_len));
        })
    }

    fn refusal(&self, doing: &'static str, range: Range<u64>, refused: Errno) -> MediumError {
        match refused {
            Errno::NOSPC | Errno::DQUOT | Errno::NOMEM => MediumError::NoSpace {
                medium: self.display_name(),
                bytes: range.end - range.start,
            },
            other => self.io(doing, other),
        }
    }
}

/// Allocates what a range within the file lacks, hole by hole, after it was `refused` as a whole.
fn allocate_holes(file: &PoolFile, range: Range<u64>, refused: Errno) -> Result<(), Errno> {
    let holes = extents::holes(&file.file, &range)?.ok_or(refused)?;
    if holes == [range] {
        return Err(refused);
    }
    holes.into_iter().try_for_each(|hole| {
        let (plain, len) = (FallocateFlags::empty(), hole.end - hole.start);
        retry(|| fallocate(&file.file, plain, hole.start, len))
    })
}

/// Allocates blocks if the file system has no call for it, by writing zeros into the range's holes. Nobody stores to a
/// hole before it is reserved, so no store is lost.
///
/// `filled` receives the holes that were written to.
fn fill_holes(
    file: &PoolFile,
    range: Range<u64>,
    old_len: u64,
    filled: &mut Vec<Range<u64>>,
) -> Result<(), Errno> {
    const STEP_BYTES: u64 = 64 << 10;
    static ZEROS: [u8; STEP_BYTES as usize] = [0; STEP_BYTES as usize];
    let mut at = range.start;
    while at < range.end {
        let hole = next_hole(&file.file, at, old_len)?;
        at = hole.start.min(range.end);
        let end = hole.end.min(range.end);
        if at < end {
            filled.push(at..end);
        }
        while at < end {
            let step = (end - at).min(STEP_BYTES);
            let zeros = &ZEROS[..step as usize];
            let written = file.file.write_all_at(zeros, at);
            written.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
            at += step;
        }
    }
    Ok(())
}

/// The first hole at or after `at`. Everything from the file's length `len` on is one hole.
fn next_hole(file: &File, at: u64, len: u64) -> Result<Range<u64>, Errno> {
    if at >= len {
        return Ok(at..u64::MAX);
    }
    let start = seek(file, SeekFrom::Hole(at))?;
    match seek(file, SeekFrom::Data(start)) {
        Ok(end) => Ok(start..end),
        // No data follows the hole.
        Err(Errno::NXIO) => Ok(start..u64::MAX),
        Err(other) => Err(other),
    }
}
