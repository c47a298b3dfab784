//! Why a campaign does not run.

use std::io;
use std::path::PathBuf;

use firn_workloads::under_test::UnknownStructure;
use thiserror::Error;

/// A campaign was not run, or a finding could not be kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CrashError {
    /// Nothing is called so.
    #[error("there is no {what} `{name}`; choose from: {known}")]
    Unknown {
        /// What kind of thing was named.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// There is no such structure.
    #[error(transparent)]
    Structure(#[from] UnknownStructure),
    /// A number is out of range.
    #[error("{what} must be {range}, not {found}")]
    Range {
        /// What was given.
        what: &'static str,
        /// What it may be.
        range: String,
        /// What it was.
        found: String,
    },
    /// An exploration did not come about.
    #[error("{structure}: the pool cannot be explored: {what}")]
    Setup {
        /// The structure.
        structure: &'static str,
        /// What failed.
        what: String,
    },
    /// What explores panicked, not what is explored.
    #[error("the explorer itself panicked; this is a bug of the laboratory")]
    Explorer,
    /// A thread that explores could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// A finding's file could not be read or written.
    #[error("{path}: {doing} failed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's own word.
        source: io::Error,
    },
    /// A file is no finding of a campaign.
    #[error("{path}: {what}; name a file that `firn crash` wrote")]
    NoFinding {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file is no log of this campaign.
    #[error(
        "{path}: {what}; name a log that `firn crash --log` wrote for this campaign, or a new file"
    )]
    NoLog {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A finding does not lead anywhere in this program.
    #[error("{path}: {what}: the code has changed since this was found; run the campaign again")]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// Where the way ends.
        what: String,
    },
}
