//! Pools of older versions of the format: reporting them, and converting them on purpose.

use std::path::Path;

use firn_heap::{Pool, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Space;
use serde::Serialize;

use crate::any::own_options;
use crate::{Progress, ToolError};

/// The result of a conversion.
#[derive(Clone, Debug, Serialize)]
pub struct ConvertReport {
    /// The pool's file.
    pub pool: String,
    /// Its version before.
    pub from: u32,
    /// Its version now: the newest that this program knows.
    pub to: u32,
    /// Whether there was anything to do.
    pub converted: bool,
}

/// Gives the pool in `path` the present version of the format, in place. A pool that was not closed is recovered first.
/// A pool that has the present version already is neither changed nor opened.
///
/// Errors: no such file, in use, no pool, of a version that this program does not read, damaged; the file is as it was.
/// Crash: at any moment; the pool has one of the two versions and opens.
pub fn convert(
    path: &Path,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<ConvertReport, ToolError> {
    let peeked = Mapped::peek(path)?;
    let report = |from, to| ConvertReport {
        pool: path.display().to_string(),
        from,
        to,
        converted: from != to,
    };
    let version = Statistics::version(&peeked).map_err(|source| ToolError::Format {
        path: peeked.name(),
        source,
    })?;
    drop(peeked);
    if version == firn_format::FORMAT_VERSION {
        return Ok(report(version, version));
    }
    progress.begin("converting", None);
    let opened = Mapped::open(path, mapped)
        .map_err(ToolError::from)
        .and_then(|medium| {
            let options = own_options(&medium)?;
            Ok(Pool::open(medium, &options)?)
        });
    progress.end();
    let pool = opened?;
    // Another program may have converted it first.
    let to = pool.format_version();
    let from = pool.converted_from().unwrap_or(to);
    pool.close().map_err(ToolError::pool(path))?;
    Ok(report(from, to))
}
