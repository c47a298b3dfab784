//! FFCCD's figures and tables again, on the simulated machine: published, ours, the deviation, and why.
//!
//! ```text
//! scale       how many objects, and how large the machine's caches are
//! matrix      the runs that artefacts need, each once
//! outcome     what is kept of a run
//! runner      does the runs that a directory lacks, on all processors
//! injections  crashes of section 7.1
//! artefacts   figures and tables, each from the outcomes: a table, bars where it has any
//! bars        stacked bars as SVG
//! page        one HTML page that needs no other file
//! ```

mod artefacts;
mod bars;
mod injections;
mod matrix;
mod outcome;
mod page;
mod runner;
mod scale;

use std::path::PathBuf;

use firn_machine::description::{Description, DescriptionError, Latency};
use firn_tools::Progress;
use serde::Serialize;

use crate::Table;
use crate::bench::commit;
use crate::crash::CrashError;
use crate::simulation::SimulationError;
use artefacts::Context;
use matrix::Run;
use runner::Outcomes;

pub use artefacts::{NAMES, Row};
pub use scale::Scale;

/// What is reproduced.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Names of artefacts; all if empty.
    pub only: Vec<String>,
    /// How large runs are.
    pub scale: Scale,
    /// Where outcomes and the page go.
    pub out: PathBuf,
    /// What everything random follows from.
    pub seed: u64,
}

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

/// Something that the paper prints, and ours beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Artefact {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: String,
    /// What is compared.
    pub rows: Vec<Row>,
    /// What else was counted.
    #[serde(skip)]
    pub tables: Vec<Table>,
    /// What stands below it.
    pub notes: Vec<String>,
    #[serde(skip)]
    chart: Option<bars::Chart>,
}

/// What was reproduced.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// The commit of the checkout in which runs were done; commits, if their outcomes were gathered over several.
    pub commit: String,
    /// What was run for which artefact.
    pub matrix: Vec<String>,
    /// The machine.
    pub machine: String,
    /// Digest of its description, as it was run.
    pub digest: String,
    /// How large runs were.
    pub scale: &'static str,
    /// Objects that each run inserted first.
    pub objects: u64,
    /// The seed.
    pub seed: u64,
    /// Runs that artefacts are made of, and how many of them were done now.
    pub runs: (usize, usize),
    /// In the paper's order.
    pub artefacts: Vec<Artefact>,
    /// The page.
    pub page: PathBuf,
}

/// The machine that everything runs on.
const MACHINE: &str = "ffccd";

impl Reproduction {
    /// Does the runs that are missing, and writes the page.
    ///
    /// Errors: no such artefact; a run fails; the directory cannot be written. Outcomes that are there stay there.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Reproduced, ReproductionError> {
        let wanted = artefacts::wanted(&self.only)?;
        let description = self.scale.machine(Description::of(MACHINE)?);
        let runs = matrix::runs(&wanted, self.scale, self.seed);
        let lines = matrix::lines(&wanted);
        let (outcomes, done) = runner::complete(&self.out, &description, &runs, &lines, progress)?;
        let injected = match wanted.iter().any(|artefact| artefact.crashes) {
            true => Some(injections::inject(self.scale, self.seed, progress)?),
            false => None,
        };
        let context = Context {
            outcomes: &outcomes,
            scale: self.scale,
            seed: self.seed,
            nvm_read_cycles: nvm_read_cycles(&description),
            injected: injected.as_ref(),
        };
        let mut reproduced = Reproduced {
            commit: commits(&outcomes, &runs),
            matrix: lines,
            machine: description.name.clone(),
            digest: format!("{:016x}", description.digest()),
            scale: self.scale.name(),
            objects: self.scale.objects(),
            seed: self.seed,
            runs: (runs.len(), done),
            artefacts: wanted
                .iter()
                .map(|artefact| artefact.make(&context))
                .collect(),
            page: self.out.join("index.html"),
        };
        reproduced
            .artefacts
            .retain(|artefact| !artefact.rows.is_empty());
        page::write(&reproduced)?;
        Ok(reproduced)
    }
}

/// Commits that outcomes of these runs are from, the checkout's own if nothing was run.
fn commits(outcomes: &Outcomes, runs: &[Run]) -> String {
    let of_runs = runs.iter().filter_map(|run| outcomes.get(&run.key));
    let mut commits: Vec<String> = of_runs.map(|outcome| outcome.commit.clone()).collect();
    commits.sort_unstable();
    commits.dedup();
    if commits.is_empty() {
        commits.push(commit());
    }
    commits.join(", ")
}

/// Cycles of a read of persistent memory, of a row that is not open.
fn nvm_read_cycles(described: &Description) -> f64 {
    match described.nvm.latency {
        Latency::Fixed { read, .. } => read.into(),
        Latency::Rows { clean_miss, .. } => clean_miss.into(),
    }
}
