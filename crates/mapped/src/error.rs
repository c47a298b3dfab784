//! Why a pool could not be mapped.

use std::io;
use std::path::{Path, PathBuf};

use firn_log::LogError;
use firn_media::MediumError;
use thiserror::Error;

/// What to do about a path at which there is nothing.
fn way_to(path: &Path) -> &'static str {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => "check the path, or create the pool first",
        false => "its folder is missing, too: check the path, or make the folder",
    }
}

/// A pool could not be opened or created. An existing file is left as it was, a new one is removed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MappedError {
    /// There is no such file, or no such directory to create it in.
    #[error("{path}: not found; {}", way_to(.path))]
    NotFound {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A pool was to be created at a path where a file exists.
    #[error("{path}: already exists; open it, or choose another path")]
    Exists {
        /// The path as it was given.
        path: PathBuf,
    },
    /// Another process is creating this very pool, which has no name yet.
    #[error(
        "{path}: exists already: another process is creating this pool; open it when that is done"
    )]
    BeingCreated {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The path names a directory.
    #[error("{path}: is a directory; name a file in it")]
    IsDirectory {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The path names a device, a pipe or a socket.
    #[error(
        "{path}: is not a regular file; a pool must be one, on a DAX file system for persistent memory"
    )]
    NotRegular {
        /// The path as it was given.
        path: PathBuf,
    },
    /// Another open of the pool excludes this one.
    #[error("{path}: in use by this or another process; close it there first, or only peek at it")]
    InUse {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The file's length cannot be that of a pool.
    #[error(
        "{path}: is {len} bytes long, but a pool consists of whole frames of 4096 bytes; check the path, or restore the pool from a copy"
    )]
    BadLength {
        /// The path as it was given.
        path: PathBuf,
        /// The file's length in bytes.
        len: u64,
    },
    /// The file's permissions, or a file system mounted read-only, forbid it.
    #[error(
        "{path}: permission denied ({source}); change the file's permissions, or open it read-only"
    )]
    Permission {
        /// The path as it was given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// On this file system a store may need a new block, which a full disk does not have.
    #[error(
        "{path}: is on {system}, {reason}: if the disk is full, a store may kill the program (SIGBUS); move the pool to ext4, xfs, tmpfs or DAX, or accept the risk: --any-file-system, `MappedOptions::file_systems`, `firn_options.any_file_system`, FIRN_ANY_FILE_SYSTEM=1"
    )]
    NoPromise {
        /// The path as it was given.
        path: PathBuf,
        /// The file system's name.
        system: &'static str,
        /// Why the file system promises nothing.
        reason: &'static str,
    },
    /// The process may not reserve the address window.
    #[error(
        "{name}: the window needs {bytes} bytes of address space; raise the limit (ulimit -v), or request a smaller capacity"
    )]
    NoAddressSpace {
        /// The path as it was given, or the name for anonymous memory.
        name: String,
        /// Bytes of the smallest window that was tried.
        bytes: u64,
    },
    /// The file has no sound superblock, so it is not known whether its log belongs to it.
    #[error(
        "{path}: is no pool, or its superblock is damaged; check the path, or restore the pool from a copy"
    )]
    NoSuperblock {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The pool was not closed, and its log is gone.
    #[error(
        "{path}: was not closed, and its log {log} is missing: its newest content was there; put the log back, or make a new pool of the intact objects with `firn copy --salvage`"
    )]
    LogMissing {
        /// The path as it was given.
        path: PathBuf,
        /// Where the log belongs.
        log: PathBuf,
    },
    /// The log beside the pool is that of another pool, or of another copy of this one.
    #[error(
        "{path}: the log {log} is not this file's: it belongs to another pool, or to an older or newer copy; put the right log there, or move this one away if the pool was closed"
    )]
    ForeignLog {
        /// The path as it was given.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// A log lies where that of the new pool would.
    #[error(
        "{path}: {log} is the log of a pool that is not there: move it to its pool, or remove it; or choose another path"
    )]
    LogOfAnother {
        /// The path as it was given.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// The newest content of the pool is in the log beside it.
    #[error(
        "{path}: was not closed, and its newest content is in its log {log}; open it as a durable pool, which brings the log home"
    )]
    HasLog {
        /// The path as it was given.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// A pool that a program has open is to be backed up, and has no log.
    #[error(
        "{path}: in use, and without a log it cannot be backed up meanwhile: close it; or make it durable when it is closed, with `firn convert --domain logged`; or let its program make the copy, with `Pool::copy_into`"
    )]
    NotDurable {
        /// The path as it was given.
        path: PathBuf,
    },
    /// While a pool was copied, its program brought its log home, again and again.
    #[error(
        "{path}: its log went home again and again while the pool was copied: its program is of a version that does not wait for backups; try again when it writes less, or close it"
    )]
    Moving {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The log beside the pool cannot be read.
    #[error(
        "{path}: {source}; restore the pool and its log from a copy, or move the log away and make a new pool of the intact objects with `firn copy --salvage`"
    )]
    Log {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        source: LogError,
    },
    /// There was no space for the new pool; no file was left behind.
    #[error(transparent)]
    Space(#[from] MediumError),
    /// The operating system refused.
    #[error("{name}: {doing} failed: {source}")]
    Io {
        /// The path as it was given, or the name for anonymous memory.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl MappedError {
    /// The error for a failure to open `path`.
    pub(crate) fn opening(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            io::ErrorKind::IsADirectory => Self::IsDirectory { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Permission { path, source }
            }
            _ => Self::Io {
                name: path.display().to_string(),
                doing: "opening",
                source,
            },
        }
    }

    /// Wraps the system's error for an operation on `name`.
    pub(crate) fn io(name: &str, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io {
            name: name.to_owned(),
            doing,
            source: source.into(),
        }
    }
}
