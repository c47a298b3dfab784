//! Why a measurement did not come about.

use std::io;

use firn_heap::{Error, OpenError};
use firn_mapped::MappedError;

use crate::simulation::SimulationError;

/// Why a measurement did not come about. Pools of the bench are temporary; nothing is left behind.
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
        /// What was tried.
        doing: String,
        /// The system's own word.
        source: io::Error,
    },
    /// The rival could not be built, started or asked.
    #[error("{doing}: {problem}; omit --rival to measure Firn alone")]
    Rival {
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        problem: String,
    },
    /// The writing child said something else than expected.
    #[error("the writing child ended or sent '{said}' instead of a measurement")]
    Child {
        /// What it said.
        said: String,
    },
    /// A pool was to be killed in the middle of a compaction and was not, or the other way round.
    #[error("a collector cycle is {}open, but the opposite was expected", if *.open { "" } else { "not " })]
    Cycle {
        /// Whether one is.
        open: bool,
    },
    /// What was to be simulated was not.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// There is no measurement of this name.
    #[error("there is no measurement '{name}'; the measurements are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
}

impl BenchError {
    /// Wraps what the system said.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}
