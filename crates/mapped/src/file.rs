//! The file below a pool: opened, checked, locked.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use firn_units::FRAME_BYTES;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, fstatfs, open};
use rustix::io::Errno;

use crate::{Backing, MappedError};

/// How a file is opened and whom its lock keeps out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// A new file, exclusive.
    Create,
    /// Exclusive.
    ReadWrite,
    /// Shared with other readers.
    ReadOnly,
    /// No lock at all: a writer may be at work.
    Peek,
}

impl Access {
    pub(crate) fn writable(self) -> bool {
        matches!(self, Access::Create | Access::ReadWrite)
    }
}

/// An open file. Its lock goes when this is dropped, at the latest with the process.
#[derive(Debug)]
pub(crate) struct PoolFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// The process that took the lock; a forked child has a copy of this value, and no lock.
    owner: u32,
}

impl PoolFile {
    /// Opens `path`, checks that it is a regular file, and locks it.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, MappedError> {
        // Opening a pipe would wait for its other end; a regular file does not mind the flag.
        let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        flags |= match access {
            Access::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Access::ReadWrite => OFlags::RDWR,
            Access::ReadOnly | Access::Peek => OFlags::RDONLY,
        };
        let readable_by_group = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = retry(|| open(path, flags, readable_by_group))
            .map_err(|e| MappedError::opening(path, e.into()))?;
        let pool = Self {
            file: File::from(file),
            path: path.to_path_buf(),
            owner: std::process::id(),
        };
        pool.check_kind()?;
        pool.lock(access)?;
        Ok(pool)
    }

    /// What the file is called in errors.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The file's length in bytes, if it can be a pool's.
    pub(crate) fn pool_len(&self, access: Access) -> Result<u64, MappedError> {
        let stat = fstat(&self.file).map_err(|e| self.error("reading the length", e))?;
        let len = stat.st_size as u64;
        let whole = len - len % FRAME_BYTES;
        // A pool that is growing while one peeks at it may end anywhere.
        if whole == 0 || (whole != len && access != Access::Peek) {
            let path = self.path.clone();
            return Err(MappedError::BadLength { path, len });
        }
        Ok(whole)
    }

    /// What lies under the file, if its mapping is not [`Backing::Dax`].
    pub(crate) fn backing(&self) -> Result<Backing, MappedError> {
        const TMPFS_MAGIC: u64 = 0x0102_1994;
        const RAMFS_MAGIC: u64 = 0x8584_58f6;
        let system = fstatfs(&self.file).map_err(|e| self.error("asking the file system", e))?;
        Ok(match system.f_type as u64 {
            TMPFS_MAGIC | RAMFS_MAGIC => Backing::Tmpfs,
            _ => Backing::Disk,
        })
    }

    /// Makes the file's name durable.
    pub(crate) fn sync_directory(&self) -> Result<(), MappedError> {
        let parent = match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        File::open(parent)
            .and_then(|directory| directory.sync_all())
            .map_err(|e| self.error("making the file's name durable", e))
    }

    pub(crate) fn error(&self, doing: &'static str, source: impl Into<io::Error>) -> MappedError {
        MappedError::io(&self.name(), doing, source)
    }

    fn check_kind(&self) -> Result<(), MappedError> {
        let stat = fstat(&self.file).map_err(|e| self.error("looking at the file", e))?;
        let path = self.path.clone();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(MappedError::IsDirectory { path }),
            _ => Err(MappedError::NotRegular { path }),
        }
    }

    fn lock(&self, access: Access) -> Result<(), MappedError> {
        let operation = match access {
            Access::Create | Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
            Access::ReadOnly => FlockOperation::NonBlockingLockShared,
            Access::Peek => return Ok(()),
        };
        match retry(|| flock(&self.file, operation)) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(MappedError::InUse {
                path: self.path.clone(),
            }),
            Err(other) => Err(self.error("locking", other)),
        }
    }
}

impl Drop for PoolFile {
    /// Unlocks by name: closing would leave the lock to any child that shares the descriptor, as
    /// every child does between its fork and its exec.
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = flock(&self.file, FlockOperation::NonBlockingUnlock);
        }
    }
}

/// Calls until no signal interrupts.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
