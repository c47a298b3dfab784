//! Files that appear whole: a file is written under a temporary name and renamed when it is complete.
//!
//! A file is created as `.NAME.firn-new` beside its final name, locked, filled, written out, and renamed. A process
//! that is killed before the rename leaves this file, which nobody has locked; the next process that creates the file
//! removes it. The lock belongs to the inode, so it is held without a gap across the rename.
//!
//! Concurrency: a process removes the temporary file only if it holds the lock and has since seen the name lead to the
//! locked file. So if several processes create the same file, one succeeds and the others get an error.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, flock, fstat, link, lstat,
    open, rename, renameat_with, unlink,
};
use rustix::io::Errno;

use crate::beside::draft_of;
use crate::file::{PoolFile, retry};
use crate::{MappedError, calls};

/// The temporary name of a file until it is complete.
#[derive(Debug)]
pub(crate) struct Draft {
    temporary: PathBuf,
}

/// What the name may lead to when the draft takes it.
#[derive(Debug)]
pub(crate) enum Instead {
    /// Nothing: an existing file stays.
    Nothing,
    /// This file, whose lock is held.
    Of(Box<PoolFile>),
    /// Anything: it is replaced.
    Anything,
}

impl Draft {
    /// Creates a new, locked file beside `path`, and removes one that a killed process left.
    ///
    /// Errors: `BeingCreated`, and the system's errors.
    pub(crate) fn begin(path: &Path) -> Result<(Self, File), MappedError> {
        let temporary = draft_of(path)?;
        let error = |doing| {
            let name = temporary.display().to_string();
            move |source: Errno| MappedError::io(&name, doing, source)
        };
        // Another turn means that another process has made progress: it created, named or removed this file meanwhile.
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
            match retry(|| open(&temporary, flags, mode)) {
                Ok(made) => {
                    let file = File::from(made);
                    if lock(&file).map_err(error("locking"))? {
                        if leads_to(&temporary, &file).map_err(error("looking for"))? {
                            return Ok((Self { temporary }, file));
                        }
                        continue;
                    }
                    return Err(being_created(path));
                }
                Err(Errno::EXIST) => {}
                Err(other) => return Err(MappedError::opening(path, other.into())),
            }
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let left = match retry(|| open(&temporary, flags, Mode::empty())) {
                Ok(left) => File::from(left),
                Err(Errno::NOENT) => continue,
                Err(other) => return Err(error("taking over")(other)),
            };
            let stat = fstat(&left).map_err(error("taking over"))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(error("taking over")(Errno::INVAL));
            }
            if !lock(&left).map_err(error("locking"))? {
                return Err(being_created(path));
            }
            if leads_to(&temporary, &left).map_err(error("looking for"))? {
                match unlink(&temporary) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(other) => return Err(error("removing")(other)),
                }
            }
        }
    }

    /// Gives the file its name. The device already holds the content; the caller makes the name durable.
    ///
    /// Errors: `EXIST` if the name leads to a file that must stay; this file then keeps its temporary name.
    pub(crate) fn name(&self, path: &Path, instead: &Instead) -> Result<(), Errno> {
        match instead {
            Instead::Anything => rename(&self.temporary, path),
            Instead::Of(old) if leads_to(path, &old.file)? => rename(&self.temporary, path),
            Instead::Of(_) => Err(Errno::EXIST),
            Instead::Nothing => {
                let flags = RenameFlags::NOREPLACE;
                match renameat_with(CWD, &self.temporary, CWD, path, flags) {
                    // The file system has no such call. If the process is killed between the link and the removal, both
                    // names remain, and the file is complete under its final one.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        link(&self.temporary, path)?;
                        self.remove();
                        Ok(())
                    }
                    other => other,
                }
            }
        }
    }

    /// Removes a file that will not be completed. The caller holds its lock.
    pub(crate) fn remove(&self) {
        // If this fails, the next process that creates the file takes it over.
        let _ = unlink(&self.temporary);
    }
}

fn being_created(path: &Path) -> MappedError {
    let path = path.to_path_buf();
    MappedError::BeingCreated { path }
}

/// Locks a file, unless another process has locked it.
fn lock(file: &File) -> Result<bool, Errno> {
    match retry(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Whether a name leads to this very file.
pub(crate) fn leads_to(path: &Path, file: &File) -> Result<bool, Errno> {
    let same = |a: Stat, b: Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    match lstat(path) {
        Ok(found) => Ok(same(found, fstat(file)?)),
        Err(Errno::NOENT) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Makes the name `path` durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    File::open(parent).and_then(|directory| Ok(calls::sync_file(&directory)?))
}
