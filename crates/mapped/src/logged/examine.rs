//! Looking at a log without bringing it home: is it whole, and this pool's?

use std::path::{Path, PathBuf};
use std::time::Duration;

use firn_format::FormatError;
use firn_log::{DamagedHead, Extent, LogError, damaged_heads, extent};
use thiserror::Error;

use super::recovery::{Beside, left};
use crate::file::{Access, PoolFile};
use crate::{MappedError, MappedOptions};

/// What is wrong with the log of a pool.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogFinding {
    /// One of the two copies of the head is not whole, and the other one is.
    #[error(
        "{log}: the copy of the head at byte {at} is not whole ({source}), and the other one counts: a power failure in the middle of a write leaves it so, or the disk has lost it; opening the pool writes a new one"
    )]
    Head {
        /// The log's file.
        log: PathBuf,
        /// The copy's first byte.
        at: u64,
        /// What is wrong with it.
        source: FormatError,
    },
    /// The log cannot be read, is another pool's, or is missing.
    #[error(transparent)]
    Unusable(MappedError),
}

/// What the log beside a pool consists of.
#[derive(Clone, Debug)]
pub struct LogFound {
    /// The log's file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// Records that are not home.
    pub records: u64,
    /// Where they lie.
    pub extent: Extent,
}

/// A pool's log, and what is wrong with it.
#[derive(Debug)]
pub struct LogCheck {
    /// The log, if there is one that can be read.
    pub found: Option<LogFound>,
    /// Empty if all is well.
    pub findings: Vec<LogFinding>,
}

/// Checks the log beside the pool in `path`: its heads, whether it belongs to this pool and to this state of it, the
/// blocks that count, and the records in them. Changes neither file. A lost tail is no finding: a crash leaves one, and
/// nobody was told that it is durable.
///
/// Concurrency: a program may have the pool open, and write to it.
///
/// Errors: as [`crate::Mapped::peek`]; faults of the log are findings.
pub fn check_log(path: impl AsRef<Path>, options: &MappedOptions) -> Result<LogCheck, MappedError> {
    let file = PoolFile::open(path.as_ref(), Access::Peek)?;
    let beside = match left(&file, &options.log) {
        Ok(left) => left.beside,
        Err(
            error @ MappedError::Log {
                source: LogError::Io(_),
                ..
            },
        ) => return Err(error),
        Err(
            error @ (MappedError::Log { .. }
            | MappedError::LogMissing { .. }
            | MappedError::ForeignLog { .. }),
        ) => {
            return Ok(LogCheck {
                found: None,
                findings: vec![LogFinding::Unusable(error)],
            });
        }
        Err(other) => return Err(other),
    };
    let Some(Beside { log, head, found }) = beside else {
        return Ok(LogCheck {
            found: None,
            findings: Vec::new(),
        });
    };
    let mut read = |at: u64, into: &mut [u8]| log.read(at, into);
    let mut heads = || written(|| damaged_heads(&mut read, &head));
    let damaged = heads().map_err(|e| file.error("reading the log's heads", e))?;
    let reading = |e| file.error("reading the log", e);
    let bytes = log.bytes().map_err(reading)?;
    let mut read = |at: u64, into: &mut [u8]| log.read(at, into);
    let extent = extent(&mut read, &head, &found, bytes).map_err(reading)?;
    let at_head = |DamagedHead { at, source }| LogFinding::Head {
        log: log.path.clone(),
        at,
        source,
    };
    Ok(LogCheck {
        found: Some(LogFound {
            path: log.path.clone(),
            bytes,
            records: found.records.len() as u64,
            extent,
        }),
        findings: damaged.into_iter().map(at_head).collect(),
    })
}

/// The damage that stays: a head that a program is just writing may be read half old and half new.
fn written(
    mut look: impl FnMut() -> std::io::Result<Vec<DamagedHead>>,
) -> std::io::Result<Vec<DamagedHead>> {
    const LOOKS: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 1..LOOKS {
        let damaged = look()?;
        if damaged.is_empty() {
            return Ok(damaged);
        }
        std::thread::sleep(PAUSE);
    }
    look()
}
