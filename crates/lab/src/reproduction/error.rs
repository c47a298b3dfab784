//! Why the reproduction failed.

use std::path::PathBuf;

use firn_machine::description::DescriptionError;

use crate::crash::CrashError;
use crate::simulation::SimulationError;

/// Why the reproduction failed.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum ReproductionError {
    /// There is no such artefact.
    #[error("there is no figure or table `{name}`; choose from {known}")]
    Artefact {
        /// What was asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// There is no such scale.
    #[error("there is no scale `{name}`; choose quick, tenth or paper")]
    Scale {
        /// What was asked for.
        name: String,
    },
    /// The machine's description is invalid.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A run failed.
    #[error("{run}: {source}")]
    Run {
        /// The run.
        run: String,
        /// The cause.
        source: Box<SimulationError>,
    },
    /// A file of the directory could not be used.
    #[error("{path}: {what}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// A line of the outcomes does not parse.
    #[error("{path}, line {line} is not an outcome: {reason}; remove the file to start anew")]
    Outcome {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A crash campaign failed to run.
    #[error(transparent)]
    Crash(#[from] CrashError),
    /// A thread of the runner panicked.
    #[error("a simulating thread panicked")]
    Runner,
}
