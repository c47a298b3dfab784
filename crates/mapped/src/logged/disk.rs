//! What is asked of the disk, in one place: so that a test can have one that is slow, full, or loses power.

use core::fmt::Debug;
use core::ops::Range;
use std::fs::File;
use std::io::{self, IoSlice};

use rustix::fs::{FallocateFlags, fallocate, fdatasync, ftruncate};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::file::{punch, retry};

/// One of the two files of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The log.
    Log,
    /// The pool's own file: home.
    Home,
}

/// A disk below a logged file. The calls are those of the system; what is written is durable after the next
/// [`Disk::sync`] of the same file, or on return where that is asked for.
///
/// Concurrency: several threads call at once; no lock of the medium is held that a program waits for.
pub trait Disk: Debug + Send + Sync {
    /// Writes bytes from byte `at` on. Returns how many were written, from the first on.
    ///
    /// Errors: what the system says.
    fn write(
        &self,
        file: (&File, Part),
        at: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<usize>;

    /// Makes durable what was written, and the file's length.
    ///
    /// Errors: what the system says.
    fn sync(&self, file: (&File, Part)) -> io::Result<()>;

    /// Gives a range blocks; the file grows if it ends before. New bytes are zeros, others stay.
    ///
    /// Errors: `Unsupported` where the file system has no such call; what the system says.
    fn allocate(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()>;

    /// Makes a range zeros and gives its blocks back.
    ///
    /// Errors: as [`Disk::allocate`].
    fn punch(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()>;

    /// Makes a range zeros that keep their blocks.
    ///
    /// Errors: as [`Disk::allocate`].
    fn zero(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()>;

    /// Sets the file's length.
    ///
    /// Errors: what the system says.
    fn set_len(&self, file: (&File, Part), len: u64) -> io::Result<()>;
}

/// When a write is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// On return (`RWF_DSYNC`).
    AtOnce,
    /// After the next sync.
    WithNextSync,
}

/// The system's own disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

fn supported(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
        other => Ok(other?),
    }
}

impl Disk for SystemDisk {
    fn write(
        &self,
        (file, _): (&File, Part),
        at: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<usize> {
        let flags = match durability {
            Durability::AtOnce => ReadWriteFlags::DSYNC,
            Durability::WithNextSync => ReadWriteFlags::empty(),
        };
        Ok(retry(|| pwritev2(file, &[IoSlice::new(bytes)], at, flags))?)
    }

    fn sync(&self, (file, _): (&File, Part)) -> io::Result<()> {
        Ok(retry(|| fdatasync(file))?)
    }

    fn allocate(&self, (file, _): (&File, Part), range: Range<u64>) -> io::Result<()> {
        let (flags, len) = (FallocateFlags::empty(), range.end - range.start);
        supported(retry(|| fallocate(file, flags, range.start, len)))
    }

    fn punch(&self, (file, _): (&File, Part), range: Range<u64>) -> io::Result<()> {
        supported(punch(file, &range))
    }

    fn zero(&self, (file, _): (&File, Part), range: Range<u64>) -> io::Result<()> {
        let (flags, len) = (FallocateFlags::ZERO_RANGE, range.end - range.start);
        supported(retry(|| fallocate(file, flags, range.start, len)))
    }

    fn set_len(&self, (file, _): (&File, Part), len: u64) -> io::Result<()> {
        Ok(retry(|| ftruncate(file, len))?)
    }
}

/// Writes all of the bytes, which are a multiple of `step`. A write that was cut short goes on with a whole step.
pub(super) fn write_all(
    disk: &dyn Disk,
    file: (&File, Part),
    at: u64,
    (bytes, step): (&[u8], usize),
    durability: Durability,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let from = done - done % step;
        let written = disk.write(file, at + from as u64, &bytes[from..], durability)?;
        if from + written <= done {
            return Err(io::ErrorKind::WriteZero.into());
        }
        done = from + written;
    }
    Ok(())
}

/// Whether the disk has no space for more, and is sound otherwise.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
