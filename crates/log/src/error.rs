//! Why a log cannot be read.

use std::io;

use firn_format::FormatError;
use thiserror::Error;

/// A log could not be read. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file has no head that counts.
    #[error("the log has no sound head: {0}")]
    Head(#[source] FormatError),
    /// Blocks that were durable are missing, though later ones are there.
    #[error("the log is damaged: block {number}{} was durable and is not whole", place(*.at))]
    Damaged {
        /// The first block that is missing.
        number: u64,
        /// Its first byte in the file, where other blocks of its segment tell it.
        at: Option<u64>,
    },
    /// The file has lost its end: it has room for fewer segments than any log, or ends within one that is in use.
    #[error("the log is damaged: the file ends at byte {bytes}, and what was behind is lost")]
    Cut {
        /// Bytes of the file.
        bytes: u64,
    },
    /// A write that is whole holds something else than records.
    #[error(
        "the log is damaged: the write from block {number}{} on does not consist of records",
        place(*.at)
    )]
    NoRecords {
        /// The write's first block.
        number: u64,
        /// Its first byte in the file.
        at: Option<u64>,
    },
    /// The system refused to read.
    #[error("reading the log failed: {0}")]
    Io(#[from] io::Error),
}

fn place(at: Option<u64>) -> String {
    at.map_or_else(String::new, |at| format!(" at byte {at}"))
}
