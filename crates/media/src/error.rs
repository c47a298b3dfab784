//! The errors of a medium.

use thiserror::Error;

/// An operation of the medium on its space failed. The pool's content is unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MediumError {
    /// The device below has no blocks left.
    #[error(
        "{medium}: no space left on the device for {bytes} more bytes; free space there, or move the pool"
    )]
    NoSpace {
        /// The medium's name: a file's path if it has one.
        medium: String,
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The medium cannot grow beyond the address window it reserved at open.
    #[error(
        "{medium}: cannot grow to {asked} bytes, because the window reserved at open ends at {capacity}; open it with a larger capacity"
    )]
    BeyondCapacity {
        /// The medium's name.
        medium: String,
        /// The requested length, in bytes.
        asked: u64,
        /// The greatest possible length, in bytes.
        capacity: u64,
    },
    /// The medium was opened for reading.
    #[error("{medium}: opened read-only; open it for writing")]
    ReadOnly {
        /// The medium's name.
        medium: String,
    },
    /// The medium was to get a name that another file has taken by now.
    #[error("{medium}: exists already, created meanwhile; open it, or choose another path")]
    Exists {
        /// The medium's name.
        medium: String,
    },
    /// The process has another copy of this pool open: references of one would lead into the other.
    #[error(
        "{medium}: is the same pool as {other}, which this process has open; close that one first, open the copy in another process, or make a copy with a new identity (`firn copy --new-id`)"
    )]
    CopyIsOpen {
        /// The medium's name.
        medium: String,
        /// The name of the open copy.
        other: String,
    },
    /// A write to the device failed, now or before. Memory holds changes that will never be durable.
    #[error(
        "{medium}: {doing} failed ({source}), so nothing more becomes durable; close the pool and open it again, and it has everything that was acknowledged"
    )]
    Failed {
        /// The medium's name.
        medium: String,
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: std::sync::Arc<std::io::Error>,
    },
    /// The operating system refused.
    #[error("{medium}: {doing} failed: {source}")]
    Io {
        /// The medium's name.
        medium: String,
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}
