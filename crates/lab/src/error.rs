//! What may go wrong, in sentences that name the file and the remedy.

use std::io;
use std::path::PathBuf;

use firn_mapped::MappedError;
use firn_tools::ToolError;
use firn_tools::map::MapError;
use thiserror::Error;

use crate::kill::KillReport;

/// Work of the laboratory failed. A pool that was being changed holds every batch before the failure, and
/// nothing of the batch that failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// Work on a pool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A measurement failed.
    #[error(transparent)]
    Bench(#[from] crate::bench::BenchError),
    /// A campaign of crashes was not run.
    #[error(transparent)]
    Crash(#[from] crate::crash::CrashError),
    /// Damage was not done.
    #[error(transparent)]
    Damage(#[from] crate::damage::DamageError),
    /// A workload was not simulated.
    #[error(transparent)]
    Simulation(#[from] crate::simulation::SimulationError),
    /// A figure was not reproduced.
    #[error(transparent)]
    Reproduction(#[from] crate::reproduction::ReproductionError),
    /// The root that should name a map names something else.
    #[error("{path}: its root `{root}` is {found}, not a map; name another root with --map")]
    NoMap {
        /// The pool's file.
        path: PathBuf,
        /// The root.
        root: String,
        /// The object that it names.
        found: String,
    },
    /// A tree holds nothing to index.
    #[error("{path}: nothing to index below it; name a directory with files")]
    EmptyTree {
        /// The tree's root.
        path: PathBuf,
    },
    /// The map that entries come to and go from holds other entries.
    #[error(
        "{path}: its map `{root}` holds entries that `firn churn` did not put there ({key}); name another root with --map"
    )]
    ForeignEntries {
        /// The pool's file.
        path: PathBuf,
        /// The root that names the map.
        root: String,
        /// The key of one.
        key: String,
    },
    /// An entry is there although it was removed, or absent although it was inserted.
    #[error("{path}: the entry {key} is not as it was left; run `firn check`")]
    NotAsLeft {
        /// The pool's file.
        path: PathBuf,
        /// Its key.
        key: String,
    },
    /// The demo's page cannot be made.
    #[error("{path}: the page cannot be made: {source}; name another file with --page")]
    Page {
        /// The page's file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A writer read what it had not written.
    #[error("{key}: a writer read what it had not written, after {operations} operations")]
    Misread {
        /// The key.
        key: String,
        /// Operations that the writer had done in this life.
        operations: u64,
    },
    /// After a kill something that was acknowledged is not there, or the checker finds something.
    #[error("after {} kills, {} of them with a power failure: {}", report.kills, report.power.failures, first_of(report))]
    Lost {
        /// All that was found.
        report: Box<KillReport>,
    },
    /// The writing child ended by itself.
    #[error(
        "the child that writes to {pool} exited ({status}) before it was killed; its output is above"
    )]
    ChildEnded {
        /// The pool's file.
        pool: PathBuf,
        /// How it ended.
        status: String,
    },
}

fn first_of(report: &KillReport) -> &str {
    let mut all = report.lost.iter().chain(&report.findings);
    all.next().map_or("", String::as_str)
}

impl From<MappedError> for LabError {
    fn from(error: MappedError) -> Self {
        Self::Tool(error.into())
    }
}

impl From<MapError> for LabError {
    fn from(error: MapError) -> Self {
        Self::Tool(error.into())
    }
}
