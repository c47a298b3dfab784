//! Why nothing was reproduced.

use std::path::PathBuf;

use firn_machine::description::DescriptionError;

use crate::crash::CrashError;
use crate::simulation::SimulationError;

/// Why nothing was reproduced.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum ReproductionError {
    /// There is no such artefact.
    #[error("there is no figure or table `{name}`; choose from {known}")]
    Artefact {
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// There is no such scale.
    #[error("there is no scale `{name}`; choose quick, tenth or paper")]
    Scale {
        /// What was asked for.
        name: String,
    },
    /// The machine cannot be.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A run failed.
    #[error("{run}: {source}")]
    Run {
        /// Which.
        run: String,
        /// Why.
        source: Box<SimulationError>,
    },
    /// A file of the directory.
    #[error("{path}: {what}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What was being done.
        what: &'static str,
        /// Why it could not.
        source: std::io::Error,
    },
    /// A line of the outcomes is none.
    #[error("{path}, line {line} is not an outcome: {reason}; remove the file to start anew")]
    Outcome {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing could be crashed.
    #[error(transparent)]
    Crash(#[from] CrashError),
    /// A thread of the runner's ended by a panic.
    #[error("a simulating thread panicked")]
    Runner,
}
