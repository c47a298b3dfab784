//! The file below a pool: opened, checked, locked.

use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use firn_units::FRAME_BYTES;
use rustix::fs::{
    FallocateFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, fallocate, fchmod, flock,
    fstat, lstat, open, seek,
};
use rustix::io::Errno;

use crate::draft::{Draft, Instead, sync_directory};
use crate::file_system::FileSystem;
use crate::{Backing, MappedError};

/// How a file is opened, and which other opens its lock excludes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Exclusive.
    ReadWrite,
    /// Shared with other readers.
    ReadOnly,
    /// No lock at all: a writer may be at work.
    Peek,
}

impl Access {
    pub(crate) fn writable(self) -> bool {
        self == Access::ReadWrite
    }
}

/// An open file. Its lock is released when this is dropped, or at the latest when the process ends.
#[derive(Debug)]
pub(crate) struct PoolFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// A new file's temporary name, and what its final name may replace.
    draft: Mutex<Option<(Draft, Instead)>>,
    /// Whether a medium in the file leaves the naming to somebody else.
    is_backup: bool,
    /// The process that took the lock; a forked child has a copy of this value, and no lock.
    owner: u32,
}

impl PoolFile {
    /// Opens `path`, checks that it is a regular file, and locks it.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, MappedError> {
        // Without the flag, opening a pipe would wait for its other end; a regular file ignores it.
        let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        flags |= match access {
            Access::ReadWrite => OFlags::RDWR,
            Access::ReadOnly | Access::Peek => OFlags::RDONLY,
        };
        let file = retry(|| open(path, flags, Mode::empty()))
            .map_err(|e| MappedError::opening(path, e.into()))?;
        let pool = Self::owned(File::from(file), path, None);
        pool.check_kind()?;
        pool.lock(access)?;
        Ok(pool)
    }

    /// Creates a new, locked file. It is called `path` once [`PoolFile::publish`] returns, and is removed if it is
    /// dropped before.
    ///
    /// Errors: `Exists`, `BeingCreated`, and the system's errors.
    pub(crate) fn create(path: &Path) -> Result<Self, MappedError> {
        // Checked before any work is done. A file that appears later is found when this one is named.
        match lstat(path) {
            Ok(_) => {
                let path = path.to_path_buf();
                return Err(MappedError::Exists { path });
            }
            Err(Errno::NOENT) => {}
            Err(other) => return Err(MappedError::opening(path, other.into())),
        }
        let (draft, file) = Draft::begin(path)?;
        Ok(Self::owned(file, path, Some((draft, Instead::Nothing))))
    }

    /// Like [`PoolFile::create`], for a copy that gets its name when no medium is in it any more.
    pub(crate) fn create_backup(path: &Path) -> Result<Self, MappedError> {
        let mut made = Self::create(path)?;
        made.is_backup = true;
        Ok(made)
    }

    /// Like [`PoolFile::create`], but replaces the file `path`, which must hold only zeros and stays until then.
    ///
    /// Errors: `Exists` if the file holds anything, `InUse`, and the system's errors.
    pub(crate) fn create_over(path: &Path) -> Result<Self, MappedError> {
        let old = Self::open(path, Access::ReadWrite)?;
        if !old.holds_nothing()? {
            let path = path.to_path_buf();
            return Err(MappedError::Exists { path });
        }
        let (draft, file) = Draft::begin(path)?;
        let instead = Instead::Of(Box::new(old));
        Ok(Self::owned(file, path, Some((draft, instead))))
    }

    fn owned(file: File, path: &Path, draft: Option<(Draft, Instead)>) -> Self {
        Self {
            file,
            path: path.to_path_buf(),
            draft: Mutex::new(draft),
            is_backup: false,
            owner: std::process::id(),
        }
    }

    /// Whether the file is new and still has its temporary name.
    pub(crate) fn is_draft(&self) -> bool {
        self.lock_draft().is_some()
    }

    /// Whether this is a copy that gets its name when no medium is in it any more.
    pub(crate) fn is_backup(&self) -> bool {
        self.is_backup
    }

    /// Gives a new file its name; the name is durable on return. Does nothing if the file has it already.
    ///
    /// Errors: the system's errors; `EXIST` if another file has taken the name. The file is still a draft then, unless
    /// only making the name durable failed.
    pub(crate) fn publish(&self) -> Result<(), Errno> {
        let mut draft = self.lock_draft();
        let Some((named, instead)) = draft.as_ref() else {
            return Ok(());
        };
        named.name(&self.path, instead)?;
        *draft = None;
        sync_directory(&self.path).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    }

    /// Sets the file's permission bits.
    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), MappedError> {
        fchmod(&self.file, Mode::from_raw_mode(mode))
            .map_err(|e| self.error("setting the file's permissions", e))
    }

    fn lock_draft(&self) -> std::sync::MutexGuard<'_, Option<(Draft, Instead)>> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's name in errors.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The file's length in bytes, if it can be the length of a pool.
    pub(crate) fn pool_len(&self, access: Access) -> Result<u64, MappedError> {
        let stat = fstat(&self.file).map_err(|e| self.error("reading the length", e))?;
        let len = stat.st_size as u64;
        let whole = len - len % FRAME_BYTES;
        // A pool that grows while it is peeked at may end anywhere.
        if whole == 0 || (whole != len && access != Access::Peek) {
            let path = self.path.clone();
            return Err(MappedError::BadLength { path, len });
        }
        Ok(whole)
    }

    /// What backs the file if its mapping is not [`Backing::Dax`].
    pub(crate) fn backing(&self) -> Result<Backing, MappedError> {
        Ok(match self.file_system()? {
            FileSystem::Memory => Backing::Tmpfs,
            FileSystem::InPlace | FileSystem::Unsure(..) => Backing::Disk,
        })
    }

    pub(crate) fn file_system(&self) -> Result<FileSystem, MappedError> {
        FileSystem::below(&self.file).map_err(|e| self.error("asking the file system", e))
    }

    /// Whether every byte of the file is zero.
    fn holds_nothing(&self) -> Result<bool, MappedError> {
        let reading = |e: Errno| self.error("looking for the file's content", e);
        let len = fstat(&self.file).map_err(reading)?.st_size as u64;
        let (mut piece, mut at) = (vec![0; FRAME_BYTES as usize], 0);
        while at < len {
            at = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                // The file system does not report holes, so everything is read.
                Err(Errno::OPNOTSUPP | Errno::INVAL) => at,
                Err(other) => return Err(reading(other)),
            };
            let read = self.file.read_at(&mut piece, at);
            let read = read.map_err(|e| self.error("looking for the file's content", e))?;
            if piece[..read].iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            if read == 0 {
                break;
            }
            at += read as u64;
        }
        Ok(true)
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
            Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
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
    /// Removes a draft that never became complete, and unlocks explicitly: closing would leave the lock with any child
    /// that shares the descriptor, as every child does between its fork and its exec.
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            if let Some((draft, _)) = self.lock_draft().take() {
                draft.remove();
            }
            let _ = flock(&self.file, FlockOperation::NonBlockingUnlock);
        }
    }
}

/// Repeats the call until no signal interrupts it.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Gives the blocks of a range back.
pub(crate) fn punch(file: &File, range: &Range<u64>) -> Result<(), Errno> {
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    retry(|| fallocate(file, punch, range.start, range.end - range.start))
}
