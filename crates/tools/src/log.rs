//! Whether the log beside a pool is sound.

use std::path::Path;

use firn_mapped::{LogCheck, MappedError, MappedOptions, check_log};
use serde::Serialize;

use crate::ToolError;

/// What the log beside a pool consists of.
#[derive(Clone, Debug, Serialize)]
pub struct LogReport {
    /// The log's file.
    pub path: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Segments that the file has room for.
    pub slots: u64,
    /// Segments that hold records which are not home.
    pub segments: u64,
    /// Blocks of these records.
    pub blocks: u64,
    /// Records that are not home.
    pub records: u64,
    /// Blocks of the tail that are not whole, or behind one that is not. A crash leaves them; nobody was told that they are
    /// durable.
    pub unfinished_blocks: u64,
}

/// The log beside the pool in `path`, if there is one that can be read, and what is wrong with it, in sentences.
///
/// Errors: no such file, not a pool; what the system says.
pub(crate) fn look(
    path: &Path,
    mapped: &MappedOptions,
) -> Result<(Option<LogReport>, Vec<String>), ToolError> {
    let LogCheck { found, findings } = match check_log(path, mapped) {
        // Who opens the pool says what is wrong with it.
        Err(MappedError::NoSuperblock { .. }) => return Ok((None, Vec::new())),
        other => other?,
    };
    let report = found.map(|log| LogReport {
        path: log.path.display().to_string(),
        bytes: log.bytes,
        slots: log.extent.slots,
        segments: log.extent.segments,
        blocks: log.extent.blocks,
        records: log.records,
        unfinished_blocks: log.extent.unfinished,
    });
    let findings = findings.iter().map(ToString::to_string).collect();
    Ok((report, findings))
}
