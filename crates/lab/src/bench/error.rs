//! Why a measurement failed.

use std::io;

use firn_heap::{Error, OpenError};
use firn_mapped::MappedError;

use crate::simulation::SimulationError;

/// Why a measurement failed. Pools of the bench are temporary; nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A pool's file could not be made or opened.
    #[error(transparent)]
    Mapped(#[from] MappedError),
    /// A pool could not be made or opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("an operation of the bench failed: {0}")]
    Heap(#[from] Error),
    /// The system refused something.
    #[error("{doing} failed: {source}")]
    Io {
        /// The action that failed.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The rival could not be built, started or asked.
    #[error("{doing}: {problem}; --rival chooses which systems are measured")]
    Rival {
        /// The action that failed.
        doing: &'static str,
        /// The problem.
        problem: String,
    },
    /// The writing child printed something unexpected.
    #[error("the writing child ended or sent '{said}' instead of a measurement")]
    Child {
        /// Its output.
        said: String,
    },
    /// A pool was to be killed in the middle of a compaction and was not, or the other way round.
    #[error("a collector cycle is {}open, but the opposite was expected", if *.open { "" } else { "not " })]
    Cycle {
        /// Whether a cycle is open.
        open: bool,
    },
    /// The bytes that a block device writes cannot be counted.
    #[error(
        "bytes written cannot be counted at a block device: {problem}; a loop device with ext4 is needed, so be root, \
         or select the other parts by --only"
    )]
    Counting {
        /// The problem.
        problem: String,
    },
    /// A system wrote other entries than Firn.
    #[error("{system} wrote other entries than Firn: the two workloads differ")]
    Differs {
        /// The system.
        system: String,
    },
    /// A simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// There is no measurement of this name.
    #[error("there is no measurement '{name}'; the measurements are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
}

impl BenchError {
    /// Wraps a system error.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}
