//! Conversions on purpose: from older versions of the format, and from one domain to another.

use std::path::Path;

use firn_heap::{Pool, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Space};
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
    /// Its domain before.
    pub from_domain: &'static str,
    /// Its domain now.
    pub to_domain: &'static str,
    /// Whether there was anything to do.
    pub converted: bool,
}

/// Gives the pool in `path` the present version of the format, in place, and the domain that `mapped` asks for, if it does
/// ([`Domain::Logged`]: a log beside the pool while it is open). A pool that was not closed is recovered first. A pool for
/// which nothing is to be done is neither changed nor opened.
///
/// Errors: no such file, in use, no pool, of a version that this program does not read, damaged; the file is as it was.
/// Crash: at any moment; the pool has one of the two versions, one of the two domains, and opens.
pub fn convert(
    path: &Path,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<ConvertReport, ToolError> {
    let before = look(path)?;
    let wanted = mapped.domain.map(Domain::name);
    let mut report = ConvertReport {
        pool: path.display().to_string(),
        from: before.version,
        to: before.version,
        from_domain: before.domain,
        to_domain: before.domain,
        converted: false,
    };
    let fits = wanted.is_none_or(|wanted| wanted == before.domain);
    if before.version == firn_format::FORMAT_VERSION && fits {
        return Ok(report);
    }
    progress.begin("converting", None);
    let mut as_it_is = mapped.clone();
    as_it_is.domain = None;
    // In its own domain first: only a closed pool changes it.
    let converted = open_and_close(path, &as_it_is).and_then(|from| {
        if !fits {
            open_and_close(path, mapped)?;
        }
        Ok(from)
    });
    progress.end();
    // Another program may have converted it first.
    report.from = converted?;
    let after = look(path)?;
    (report.to, report.to_domain) = (after.version, after.domain);
    report.converted = report.from != report.to || report.from_domain != report.to_domain;
    Ok(report)
}

/// What a pool is now.
pub(crate) struct Now {
    version: u32,
    pub(crate) domain: &'static str,
}

pub(crate) fn look(path: &Path) -> Result<Now, ToolError> {
    let medium = Mapped::peek(path)?;
    let format = |source| ToolError::Format {
        path: medium.name(),
        source,
    };
    Ok(Now {
        version: Statistics::version(&medium).map_err(format)?,
        domain: Statistics::domain(&medium).map_err(format)?,
    })
}

/// Opens a pool for changes, which gives it the present version, and closes it. Returns the version from which it was
/// converted.
fn open_and_close(path: &Path, mapped: &MappedOptions) -> Result<u32, ToolError> {
    let medium = Mapped::open(path, mapped)?;
    let options = own_options(&medium)?;
    let pool = Pool::open(medium, &options)?;
    let from = pool.converted_from().unwrap_or(pool.format_version());
    pool.close().map_err(ToolError::pool(path))?;
    Ok(from)
}
