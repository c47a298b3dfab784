//! Why a campaign does not run.

use std::io;
use std::path::PathBuf;

use firn_workloads::under_test::UnknownStructure;
use thiserror::Error;

use crate::crash::CrashError;

/// A campaign was not run, or a finding or a corpus could not be kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DamageError {
    /// A structure is not known, or its pool could not be made.
    #[error(transparent)]
    Setup(#[from] CrashError),
    /// A pool to damage could not be brought into its condition.
    #[error("{structure}, {condition}: the pool cannot be made: {what}")]
    Sample {
        /// The structure.
        structure: &'static str,
        /// The condition.
        condition: &'static str,
        /// What failed.
        what: String,
    },
    /// A thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// A file could not be read or written.
    #[error("{path}: {doing} failed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file is no damage of a campaign.
    #[error("{path}: {what}; name a file that `firn damage` wrote")]
    NoDamage {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl From<UnknownStructure> for DamageError {
    fn from(error: UnknownStructure) -> Self {
        Self::Setup(error.into())
    }
}
