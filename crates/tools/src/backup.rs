//! Copies of pools in use.

use std::path::Path;

use firn_heap::Pool;
use firn_mapped::{Backup, MappedOptions};
use serde::Serialize;

use crate::any::{own_options, tell_conversion};
use crate::{Progress, ToolError};

/// The result of a backup.
#[derive(Clone, Debug, Serialize)]
pub struct BackupReport {
    /// Length of the copy's file.
    pub bytes: u64,
    /// Bytes of it that came from the log.
    pub log_bytes: u64,
    /// Whether the copy began with the blocks of the pool's file, which the file system lets two files share.
    pub is_clone: bool,
    /// Whether the copy was recovered: the pool was in use, or was not closed.
    pub recovered: bool,
    /// For how long the program's log could not go home.
    pub held_seconds: f64,
}

/// Copies the pool in `path`, as it is, into the new file `new`. A program may have the pool open with a log, and write to
/// it: the copy holds what was durable when the backup began, and maybe later transactions, all up to one of them. A pool
/// that was left by a crash is copied with what its log holds. Neither of its files is changed. The copy is recovered,
/// traced, and closed; it has the identity of the pool.
///
/// Errors: a program has the pool open without a log; the pool is damaged, or was torn by a power failure; `new` exists, or
/// there is no space for it. Then there is no new file. Crash: `new` exists once the copy is complete; the next backup
/// removes what a crash midway leaves beside it.
pub fn backup(
    path: &Path,
    new: &Path,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<BackupReport, ToolError> {
    let mut done = None;
    let copied = Backup::begin(path, new, mapped, &mut |now, of| {
        // Begun anew, the copy has less than before.
        if done.is_none_or(|before| before > now) {
            progress.begin("copying", Some(of));
            done = Some(0);
        }
        progress.advance(now - done.unwrap_or(0));
        done = Some(now);
    });
    progress.end();
    let copy = copied?;
    let recovered = !copy.is_closed()?;
    if recovered {
        recover(&copy, new, progress)?;
    }
    progress.begin("writing", None);
    let figures = copy.publish();
    progress.end();
    let figures = figures?;
    Ok(BackupReport {
        bytes: figures.bytes,
        log_bytes: figures.log_bytes,
        is_clone: figures.is_clone,
        recovered,
        held_seconds: figures.held.as_secs_f64(),
    })
}

/// Recovers the copy as any opening does, and closes it.
fn recover(copy: &Backup, new: &Path, progress: &mut dyn Progress) -> Result<(), ToolError> {
    let medium = copy.open()?;
    let options = own_options(&medium)?;
    let pool = Pool::open(medium, &options)?;
    tell_conversion(&pool, progress);
    if pool.needs_trace() {
        progress.begin("tracing", None);
        let traced = pool.trace();
        progress.end();
        if let Err(error) = traced {
            pool.abandon();
            return Err(ToolError::pool(new)(error));
        }
    }
    pool.close().map_err(ToolError::pool(new))
}
