//! Home: the pool's file, written from the log and from nothing else.

use core::ops::Range;
use std::io;

use firn_log::Home;
use rangemap::RangeSet;

use super::disk::{Disk, Durability, Part, is_full, write_all};
use crate::file::PoolFile;

/// What the program has done to the pool's space since, which a checkpoint that is older must leave in place.
#[derive(Debug, Default)]
pub(super) struct Since {
    /// Bytes of the pool now.
    pub(super) len: u64,
    /// Ranges that were reserved: their blocks stay.
    pub(super) reserved: RangeSet<u64>,
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
    pub(super) fn write(self, home: &Home) -> io::Result<()> {
        home.writes
            .iter()
            .try_for_each(|write| self.write_at(&write.bytes, write.at))
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
        let parts: (&[&[u8]], usize) = (&[bytes], bytes.len());
        write_all(
            self.disk,
            self.on_disk(),
            at,
            parts,
            Durability::WithNextSync,
        )
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
