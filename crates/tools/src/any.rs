//! Opening a pool to look at all of it, whatever its content is called.

use std::path::Path;

use firn_heap::{LogKind, OpenError, Pool, PoolOptions, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Space;

use crate::{Progress, ToolError};

/// How to handle a pool that was open on an ordinary file when the machine died.
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
) -> Result<Pool<Mapped>, ToolError> {
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

/// Opens the pool for changes, whatever its content is called. A pool that was not closed is recovered and traced.
///
/// Errors: no such file, in use, no pool, damaged.
pub fn open_to_change(
    path: &Path,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<Pool<Mapped>, ToolError> {
    let mut medium = Mapped::open(path, mapped)?;
    let own = own_options(&medium)?;
    if own.log == LogKind::Undo {
        // Interrupted work is completed by the rules under which it began; then no address is held any more.
        let pool = Pool::open(medium, &own)?;
        tell_conversion(&pool, progress);
        pool.close().map_err(ToolError::pool(path))?;
        medium = Mapped::open(path, mapped)?;
    }
    let pool = Pool::open(medium, &PoolOptions::new(""))?;
    tell_conversion(&pool, progress);
    if pool.needs_trace() {
        let name = path.display();
        progress.remark(&format!("{name}: was not closed; recovered, tracing it"));
        progress.begin("tracing", None);
        let traced = pool.trace().map_err(ToolError::pool(path));
        progress.end();
        traced?;
    }
    Ok(pool)
}

/// Options to open the pool on `medium` on its program's behalf: with the log that it was left with, whatever its
/// content is called. With an undo log, completing an interrupted collection heals pairs of words and keeps addresses.
///
/// Errors: not a pool, damaged.
pub(crate) fn own_options(medium: &Mapped) -> Result<PoolOptions, ToolError> {
    let log = Statistics::log(medium).map_err(|source| ToolError::Format {
        path: medium.name(),
        source,
    })?;
    Ok(PoolOptions {
        log,
        ..PoolOptions::new("")
    })
}

/// Reports that a pool was of an older version, if it was.
pub(crate) fn tell_conversion(pool: &Pool<Mapped>, progress: &mut dyn Progress) {
    if let Some(from) = pool.converted_from() {
        let (name, to) = (pool.medium().name(), pool.format_version());
        progress.remark(&format!(
            "{name}: had format version {from}, has version {to} now; older programs refuse it"
        ));
    }
}
