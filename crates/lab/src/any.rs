//! Opening a pool whatever its content is called, to look at all of it.

use std::path::Path;

use firn_heap::{OpenError, Pool, PoolOptions, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Space;

use crate::convert::tell_conversion;
use crate::{LabError, Progress};

/// What becomes of a pool that was open on an ordinary file when the machine died.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Torn {
    /// It is refused.
    Refuse,
    /// It is recovered in memory; the file stays as it is.
    InMemory,
}

/// Opens the pool in `path`: for reading if it was closed; if not, for changes, and recovers it.
///
/// Errors: no such file, in use, no pool, damaged; the file is as it was.
pub(crate) fn open_any(
    path: &Path,
    torn: Torn,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<Pool<Mapped>, LabError> {
    let medium = Mapped::open_read_only(path, mapped)?;
    match Pool::open_read_only(medium, "") {
        Err(OpenError::NeedsRecovery { pool }) => {
            progress.remark(&format!("{pool}: was not closed, recovering it"));
            let medium = Mapped::open(path, mapped)?;
            let options = own_options(&medium)?;
            let pool = Pool::open(medium, &options)?;
            tell_conversion(&pool, progress);
            Ok(pool)
        }
        Err(OpenError::MachineDied { pool }) if torn == Torn::InMemory => {
            progress.remark(&format!(
                "{pool}: was open when the machine died; looking at it in memory"
            ));
            let medium = Mapped::open_private(path, mapped)?;
            let options = own_options(&medium)?;
            Ok(Pool::open_torn(medium, &options)?)
        }
        other => Ok(other?),
    }
}

/// How the pool on `medium` is opened on its program's behalf: with the log that it was left with, whatever its content
/// is called. The end of an interrupted collection heals pairs of words, and keeps addresses, where that is an undo log.
///
/// Errors: not a pool, damaged.
pub(crate) fn own_options(medium: &Mapped) -> Result<PoolOptions, LabError> {
    let log = Statistics::log(medium).map_err(|source| LabError::Format {
        path: medium.name(),
        source,
    })?;
    Ok(PoolOptions {
        log,
        ..PoolOptions::new("")
    })
}
