//! What a medium may answer instead of doing what it was asked.

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
        /// What the medium is called, a file's path where there is one.
        medium: String,
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The medium cannot grow beyond the address window it reserved at open.
    #[error(
        "{medium}: cannot grow to {asked} bytes, because the window reserved at open ends at {capacity}; open it with a larger capacity"
    )]
    BeyondCapacity {
        /// What the medium is called.
        medium: String,
        /// Length asked for, in bytes.
        asked: u64,
        /// Length possible, in bytes.
        capacity: u64,
    },
    /// The medium was opened for reading.
    #[error("{medium}: opened read-only; open it for writing")]
    ReadOnly {
        /// What the medium is called.
        medium: String,
    },
    /// The medium was to get a name that something else has by now.
    #[error("{medium}: exists already, created meanwhile; open it, or choose another path")]
    Exists {
        /// What the medium is called.
        medium: String,
    },
    /// The process has another copy of the same pool open: references of one would lead into the other.
    #[error(
        "{medium}: is the same pool as {other}, which this process has open; close that one first, open the copy in another process, or make a copy with a new identity (`firn copy --new-id`)"
    )]
    CopyIsOpen {
        /// What the medium is called.
        medium: String,
        /// What the one that is open is called.
        other: String,
    },
    /// The operating system refused.
    #[error("{medium}: {doing} failed: {source}")]
    Io {
        /// What the medium is called.
        medium: String,
        /// The operation that failed.
        doing: &'static str,
        /// The system's own word.
        source: std::io::Error,
    },
}
