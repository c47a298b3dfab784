//! How far a pool may grow.

use std::path::Path;

use firn_heap::{Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use serde::Serialize;

use crate::ToolError;
use crate::any::own_options;

/// A pool's limit.
#[derive(Clone, Debug, Serialize)]
pub struct LimitReport {
    /// Bytes beyond which the pool does not grow; none if it has no limit of its own.
    pub limit_bytes: Option<u64>,
    /// Length of the file.
    pub file_bytes: u64,
}

/// Gives the pool in `path` another limit, or none. It holds for every later open. A pool that is longer keeps its
/// length.
///
/// Errors: no such file, in use, not a pool, damaged; a limit below the size of the smallest pool. Crash: the pool has
/// either limit.
pub fn set_limit(
    path: &Path,
    limit: Option<u64>,
    mapped: &MappedOptions,
) -> Result<LimitReport, ToolError> {
    let medium = Mapped::open(path, mapped)?;
    let options = PoolOptions {
        // A limit that no pool reaches is none.
        max_bytes: Some(limit.unwrap_or(u64::MAX)),
        ..own_options(&medium)?
    };
    let pool = Pool::open(medium, &options)?;
    let limit_bytes = pool.limit_bytes();
    pool.close().map_err(ToolError::pool(path))?;
    let file = std::fs::metadata(path).map_err(ToolError::file(path, "reading the length"))?;
    Ok(LimitReport {
        limit_bytes,
        file_bytes: file.len(),
    })
}
