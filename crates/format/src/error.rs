//! Errors in bytes that claim to be a pool.

use thiserror::Error;

/// The bytes do not conform to this version of the format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The magic number is missing.
    #[error("this is not a Firn pool")]
    NotAPool,
    /// Written by another version of the format.
    #[error(
        "the pool has format version {found}, this program reads versions {oldest} to {newest}; use a `firn` that reads version {found}"
    )]
    Version {
        /// Version in the pool.
        found: u32,
        /// The oldest version that this crate reads.
        oldest: u32,
        /// The newest version, which this crate writes.
        newest: u32,
    },
    /// A checksum does not match.
    #[error("{what} at {at:#x} is damaged: its checksum does not match")]
    Checksum {
        /// The structure.
        what: &'static str,
        /// Its address in the pool.
        at: u64,
    },
    /// A value lies outside its range.
    #[error("{what} at {at:#x} is damaged: {found} is out of range")]
    Range {
        /// The structure.
        what: &'static str,
        /// Its address in the pool.
        at: u64,
        /// The value found.
        found: u64,
    },
}
