//! Why a campaign does not run.

use std::io;
use std::path::PathBuf;

use firn_workloads::under_test::UnknownStructure;
use thiserror::Error;

/// A campaign was not run, or a finding could not be kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CrashError {
    /// There is no such name.
    #[error("there is no {what} `{name}`; choose from: {known}")]
    Unknown {
        /// The kind of thing that was named.
        what: &'static str,
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// There is no such structure.
    #[error(transparent)]
    Structure(#[from] UnknownStructure),
    /// A number is out of range.
    #[error("{what} must be {range}, not {found}")]
    Range {
        /// The parameter.
        what: &'static str,
        /// Its range.
        range: String,
        /// The value found.
        found: String,
    },
    /// An exploration could not be set up.
    #[error("{structure}: the pool cannot be explored: {what}")]
    Setup {
        /// The structure.
        structure: &'static str,
        /// What failed.
        what: String,
    },
    /// The exploring code panicked, not the code that it explores.
    #[error("the explorer itself panicked; this is a bug of the laboratory")]
    Explorer,
    /// An exploring thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// A finding's file could not be read or written.
    #[error("{path}: {doing} failed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
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
    /// In this program, the finding leads to no crash.
    #[error("{path}: {what}: the code has changed since this was found; run the campaign again")]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// Where replaying it ends.
        what: String,
    },
}
