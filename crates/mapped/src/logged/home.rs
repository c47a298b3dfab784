//! Home: the pool's file, written from the log and from nothing else.

use core::ops::Range;
use std::io;

use firn_log::Home;
use firn_units::FRAME_BYTES;
use rangemap::RangeSet;

use super::disk::{Disk, Durability, Part, is_full, write_all};
use super::log_file::read_up_to;
use crate::file::PoolFile;

/// What the program has done to the pool's space since, which a checkpoint that is older must leave in place.
#[derive(Debug, Default)]
pub(super) struct Since {
    /// Bytes of the pool now.
    pub(super) len: u64,
    /// Ranges that were reserved: their blocks stay.
    pub(super) reserved: RangeSet<u64>,
}

/// Bytes that are written with one call at most, but for a longer run.
const MOST_TOGETHER: usize = 256 << 10;

/// Runs of words that are written with one call.
#[derive(Debug, Default)]
struct Together {
    at: u64,
    bytes: Vec<u8>,
}

impl Together {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Whether a run at byte `at` goes along: it begins in the page in which the last one ends, or right behind it.
    fn takes(&self, at: u64) -> bool {
        self.bytes.is_empty()
            || self.bytes.len() < MOST_TOGETHER && at < self.end().next_multiple_of(FRAME_BYTES)
    }

    fn add(&mut self, home: HomeFile<'_>, at: u64, content: &[u8]) -> io::Result<()> {
        if self.bytes.is_empty() {
            self.at = at;
        }
        let gap = self.bytes.len();
        self.bytes.resize((at - self.at) as usize, 0);
        home.read(self.at + gap as u64, &mut self.bytes[gap..])?;
        self.bytes.extend_from_slice(content);
        Ok(())
    }

    fn write(&mut self, home: HomeFile<'_>) -> io::Result<()> {
        home.write_at(&self.bytes, self.at)?;
        self.bytes.clear();
        Ok(())
    }
}

/// The pool's file, and the disk that it is on.
#[derive(Clone, Copy, Debug)]
pub(super) struct HomeFile<'f> {
    pub(super) file: &'f PoolFile,
    pub(super) disk: &'f dyn Disk,
}

impl HomeFile<'_> {
    /// Changes the file's space as a checkpoint says.
    pub(super) fn give_back(self, home: &Home, since: &Since) -> io::Result<()> {
        let len = self.len()?;
        let wanted = since.len.max(home.at_least);
        if let Some(cut) = home.cut {
            self.zero(cut.min(len)..len.min(wanted).max(cut.min(len)))?;
            if wanted.max(cut) < len {
                self.disk.set_len(self.on_disk(), wanted.max(cut))?;
            }
        }
        let len = self.len()?;
        if home.at_least > len {
            match self.disk.allocate(self.on_disk(), len..home.at_least) {
                Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                    self.disk.set_len(self.on_disk(), home.at_least)?;
                }
                other => other?,
            }
        }
        let clamped = |range: &Range<u64>| range.start.min(len)..range.end.min(len);
        for range in home.discarded.iter().map(clamped) {
            for part in since.reserved.gaps(&range) {
                match self.disk.punch(self.on_disk(), part.clone()) {
                    Err(e) if e.kind() == io::ErrorKind::Unsupported => self.zero(part)?,
                    other => other?,
                }
            }
            for part in since.reserved.overlapping(&range) {
                self.zero(part.start.max(range.start)..part.end.min(range.end))?;
            }
        }
        home.zeroed
            .iter()
            .map(clamped)
            .try_for_each(|range| self.zero(range))
    }

    /// Writes words home. They are durable after the next [`HomeFile::sync`].
    ///
    /// Runs that lie in one page are written together, with what the file has between them: one call instead of many.
    /// Nobody else writes to such a page: the statistics, which a program shares with the file, have pages of their own.
    pub(super) fn write(self, home: &Home) -> io::Result<()> {
        let mut together = Together::default();
        for (at, content) in home.words.iter() {
            if !together.takes(at) {
                together.write(self)?;
            }
            together.add(self, at, content)?;
        }
        together.write(self)
    }

    /// Makes what was written home durable (L6).
    pub(super) fn sync(self) -> io::Result<()> {
        self.disk.sync(self.on_disk())
    }

    fn on_disk(&self) -> (&std::fs::File, Part) {
        (&self.file.file, Part::Home)
    }

    fn len(self) -> io::Result<u64> {
        Ok(self.file.file.metadata()?.len())
    }

    fn write_at(self, bytes: &[u8], at: u64) -> io::Result<()> {
        let (file, bytes) = (self.on_disk(), (bytes, 1));
        write_all(self.disk, file, at, bytes, Durability::WithNextSync)
    }

    /// Reads what the file has from byte `at` on; zeros behind its end.
    fn read(self, at: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(0);
        read_up_to(&self.file.file, at, into).map(drop)
    }

    /// Makes a range read as zeros; it keeps its blocks.
    fn zero(self, range: Range<u64>) -> io::Result<()> {
        const STEP: usize = 64 << 10;
        if range.is_empty() {
            return Ok(());
        }
        match self.disk.zero(self.on_disk(), range.clone()) {
            // There is no such call, or a full disk has no block for the file system's list of the file's parts, which gets
            // longer. The range has its blocks, so zeros can be written to it.
            Err(e) if e.kind() == io::ErrorKind::Unsupported || is_full(&e) => {}
            other => return other,
        }
        let zeros = [0; STEP];
        range.clone().step_by(STEP).try_for_each(|at| {
            let len = (range.end - at).min(STEP as u64) as usize;
            self.write_at(&zeros[..len], at)
        })
    }
}
