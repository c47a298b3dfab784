//! The file below a pool: opened, checked, locked.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use firn_units::FRAME_BYTES;
use rustix::fs::{
    FileType, FlockOperation, Mode, OFlags, SeekFrom, fchmod, flock, fstat, lstat, open, seek,
};
use rustix::io::Errno;

use crate::draft::{Draft, Instead, sync_directory};
use crate::file_system::FileSystem;
use crate::{Backing, MappedError};

/// How a file is opened and whom its lock keeps out.
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

/// An open file. Its lock goes when this is dropped, at the latest with the process.
#[derive(Debug)]
pub(crate) struct PoolFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// The name that a new file has until it is whole, and what may go for it then.
    draft: Mutex<Option<(Draft, Instead)>>,
    /// The process that took the lock; a forked child has a copy of this value, and no lock.
    owner: u32,
}

impl PoolFile {
    /// Opens `path`, checks that it is a regular file, and locks it.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, MappedError> {
        // Opening a pipe would wait for its other end; a regular file does not mind the flag.
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

    /// Makes a new file, locked, that is called `path` from [`PoolFile::publish`] on and goes when it is dropped
    /// before.
    ///
    /// Errors: `Exists`, `BeingCreated`, and what the system says.
    pub(crate) fn create(path: &Path) -> Result<Self, MappedError> {
        // Told before any work is done; what comes to be there later is found when the file is named.
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

    /// As [`PoolFile::create`], in the place of the file `path`, which holds nothing and stays until then.
    ///
    /// Errors: `Exists` where it holds something, `InUse`, and what the system says.
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
            owner: std::process::id(),
        }
    }

    /// Whether the file is new and nothing is called as it will be.
    pub(crate) fn is_draft(&self) -> bool {
        self.lock_draft().is_some()
    }

    /// Gives a new file its name, for good on return. Does nothing for one that has it.
    ///
    /// Errors: what the system says, `EXIST` where another file came to have the name. The file is a draft still,
    /// except where the name alone could not be made durable.
    pub(crate) fn publish(&self) -> Result<(), Errno> {
        let mut draft = self.lock_draft();
        let Some((named, instead)) = draft.as_ref() else {
            return Ok(());
        };
        named.name(&self.path, instead)?;
        *draft = None;
        sync_directory(&self.path).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    }

    /// Sets who may read and write the file.
    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), MappedError> {
        fchmod(&self.file, Mode::from_raw_mode(mode))
            .map_err(|e| self.error("setting the file's permissions", e))
    }

    fn lock_draft(&self) -> std::sync::MutexGuard<'_, Option<(Draft, Instead)>> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
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
                // A file system that knows no holes: everything is read.
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
    /// Removes what never became whole, and unlocks by name: closing would leave the lock to any child that shares the descriptor, as
    /// every child does between its fork and its exec.
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            if let Some((draft, _)) = self.lock_draft().take() {
                draft.remove();
            }
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
