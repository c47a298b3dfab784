//! A copy of a pool, made while a program writes to it.
//!
//! The pool's file and its log together are the pool at any moment: what has gone home since the tail of the log is still
//! in it. So a backup holds the log, which keeps the tail where it is; copies home, whatever may be going on there; reads
//! the log, which holds all that is durable by now; and brings that home in the copy. A program that knows nothing of the
//! hold moves the tail. The head tells, and the backup begins anew.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_format::superblock::{OpenState, StoredDomain};
use firn_log::Home;
use firn_media::MediumError;
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::beside::{log_beside, make_way};
use crate::file::{Access, PoolFile};
use crate::logged::recovery::{bring_home, left, left_in, set_apart, superblock};
use crate::system::Randomness;
use crate::transfer::transfer;
use crate::{Mapped, MappedError, MappedOptions, calls};

/// How often home is copied at most: each time its program has moved the tail meanwhile.
const COPIES: u32 = 5;
/// How long a pool may take to be opened, or to be closed.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait until the next look.
const PAUSE: Duration = Duration::from_millis(10);

/// A copy of a pool, in the making. It has its name once [`Backup::publish`] returns, and is removed if it is dropped
/// before.
///
/// Crash: a crash before [`Backup::publish`] leaves `.NAME.firn-new` beside the copy's path, and maybe the log of that;
/// the next process that creates a file of this name removes them.
#[derive(Debug)]
pub struct Backup {
    file: Arc<PoolFile>,
    options: MappedOptions,
    figures: BackupFigures,
}

/// What a backup has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BackupFigures {
    /// Bytes of the copy.
    pub bytes: u64,
    /// Bytes that came from the log.
    pub log_bytes: u64,
    /// Whether the copy began with the blocks of the pool's file, which both files shared.
    pub is_clone: bool,
    /// How long the log was held: the program's log could not go home.
    pub held: Duration,
}

impl Backup {
    /// Copies the pool in `path`, with what its log holds, into a file that will be called `new`. A program may have the
    /// pool open in [`firn_media::Domain::Logged`] and write to it. What was durable when the backup began is in the copy;
    /// of the later transactions a number, from the first on. The pool's files are only read. The copy has the
    /// permission bits of the pool, unless `options` have others. `tell` gets the bytes that are copied and those that
    /// there are.
    ///
    /// Concurrency: while home is copied and the log is read, the program's log does not go home. Who waits then is a
    /// program that fills its log, opens or closes the pool, or syncs it. If this process ends, the hold does, too.
    ///
    /// Errors: `NotDurable` if a program has the pool open in another domain; `InUse` if it is being opened or closed for
    /// seconds; `Moving`; `Exists`; as [`Mapped::open_read_only`]; no space. Then no file is left behind.
    pub fn begin(
        path: impl AsRef<Path>,
        new: impl AsRef<Path>,
        options: &MappedOptions,
        tell: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, MappedError> {
        let (path, new) = (path.as_ref(), new.as_ref());
        // An error of the pool comes first, and leaves nothing.
        drop(PoolFile::open(path, Access::Peek)?);
        let file = PoolFile::create_backup(new)?;
        make_way(new)?;
        let (home, mut figures) = copy(path, &file, options, tell)?;
        if let Some(home) = home {
            let brought = bring_home(&file, &home, &options.log);
            brought.map_err(|e| refused(&file, home.at_least, e))?;
            figures.log_bytes = home.words.bytes();
        }
        let pool = superblock(&file)?;
        if pool.is_some_and(|pool| {
            (pool.state, pool.domain) == (OpenState::Open, StoredDomain::Logged)
        }) {
            let randomness = Randomness::seeded();
            let randomness = randomness.map_err(|e| file.error("asking for randomness", e))?;
            set_apart(&file, &randomness)?;
        }
        figures.bytes = file.pool_len(Access::ReadWrite)?;
        Ok(Self {
            file: Arc::new(file),
            options: options.clone(),
            figures,
        })
    }

    /// Whether the copy is that of a pool which was closed. Any other is recovered first ([`Backup::open`]).
    ///
    /// Errors: the copy has no sound superblock; what the system says.
    pub fn is_closed(&self) -> Result<bool, MappedError> {
        let superblock = superblock(&self.file)?.ok_or_else(|| MappedError::NoSuperblock {
            path: self.file.path.clone(),
        })?;
        Ok(superblock.state != OpenState::Open)
    }

    /// Opens the copy in the domain of the pool, for the heap to recover and close it. It may be open beside the pool,
    /// because no program sees it. The medium does not give the file its name.
    ///
    /// Errors: as [`Mapped::open`].
    pub fn open(&self) -> Result<Mapped, MappedError> {
        Mapped::open_backup(Arc::clone(&self.file), &self.options)
    }

    /// Makes the copy durable and gives it its name.
    ///
    /// Errors: `Exists` if the name was taken meanwhile; what the system says. The copy is removed.
    pub fn publish(self) -> Result<BackupFigures, MappedError> {
        let file = &self.file;
        calls::sync_file(&file.file).map_err(|e| file.error("syncing the copy", e))?;
        file.publish().map_err(|refused| match refused {
            Errno::EXIST => MappedError::Exists {
                path: file.path.clone(),
            },
            other => file.error("naming the copy", other),
        })?;
        Ok(self.figures)
    }
}

/// Copies a pool's file. Returns what its log would bring home.
fn copy(
    path: &Path,
    to: &PoolFile,
    options: &MappedOptions,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(Option<Home>, BackupFigures), MappedError> {
    let begun = Instant::now();
    let (mut figures, mut copies, mut held) = (BackupFigures::default(), 0, None);
    while copies < COPIES {
        let (from, in_use) = match PoolFile::open(path, Access::ReadOnly) {
            Err(MappedError::InUse { .. }) => (PoolFile::open(path, Access::Peek)?, true),
            other => (other?, false),
        };
        let mut copy_home = || {
            (copies, held) = (copies + 1, Some(Instant::now()));
            figures.is_clone = fill(&from, to, options, tell)?;
            Ok(())
        };
        let left = match log_beside(path)? {
            Some(log) => left_in(&from, log, &options.log, Some(&mut copy_home))?,
            None if !in_use => {
                let left = left(&from, &options.log)?;
                copy_home()?;
                Some(left)
            }
            None => {
                refuse_not_durable(&from)?;
                None
            }
        };
        if let Some(left) = left {
            figures.held = held.map_or(Duration::ZERO, |since| since.elapsed());
            return Ok((left.into_home(), figures));
        }
        if copies == 0 && begun.elapsed() > PATIENCE {
            let path = path.to_path_buf();
            return Err(MappedError::InUse { path });
        }
        std::thread::sleep(PAUSE);
    }
    Err(MappedError::Moving {
        path: path.to_path_buf(),
    })
}

/// Fills the copy, from its beginning.
fn fill(
    from: &PoolFile,
    to: &PoolFile,
    options: &MappedOptions,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<bool, MappedError> {
    const PERMISSIONS: u32 = 0o777;
    let stat = fstat(&from.file).map_err(|e| from.error("looking at the file", e))?;
    to.set_mode(options.mode.unwrap_or(stat.st_mode & PERMISSIONS))?;
    let len = from.pool_len(Access::Peek)?;
    let emptied = to.file.set_len(0);
    emptied
        .and_then(|()| transfer(&from.file, &to.file, len, &mut |done| tell(done, len)))
        .map_err(|e| refused(to, len, to.error("copying the pool", e)))
}

/// The error for a copy that cannot be written.
fn refused(copy: &PoolFile, bytes: u64, error: MappedError) -> MappedError {
    use ErrorKind::{QuotaExceeded, StorageFull};
    let medium = copy.name();
    match error {
        MappedError::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded) => {
            MediumError::NoSpace { medium, bytes }.into()
        }
        other => other,
    }
}

/// Refuses a pool in use that has no log, unless its program is just about to begin or to remove one.
fn refuse_not_durable(pool: &PoolFile) -> Result<(), MappedError> {
    match superblock(pool)?.map(|superblock| superblock.domain) {
        Some(StoredDomain::Logged) => Ok(()),
        _ => Err(MappedError::NotDurable {
            path: pool.path.clone(),
        }),
    }
}

#[cfg(test)]
mod tests;
