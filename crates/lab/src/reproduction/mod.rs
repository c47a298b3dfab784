//! Papers' figures and tables again, on the simulated machine: published, ours, the deviation, and why. A paper is a
//! folder beside `ffccd`.
//!
//! ```text
//! ffccd/      FFCCD: what is run and crashed for it, its figures and tables
//! scale       how large runs are, and the machine's caches
//! run         a run that figures are made of
//! outcome     what is kept of it
//! runner      does the runs that a directory lacks, on all processors
//! artefact    a figure or a table: what is printed, and ours beside it
//! bars        stacked bars as SVG
//! page        one HTML page that needs no other file
//! ```

mod artefact;
mod bars;
mod error;
mod ffccd;
mod outcome;
mod page;
mod run;
mod runner;
mod scale;

use core::fmt;
use std::path::PathBuf;

use firn_tools::Progress;
use serde::Serialize;

use crate::bench::commit;
use run::Run;
use runner::Outcomes;

pub use artefact::{Artefact, Row};
pub use error::ReproductionError;
pub use ffccd::FFCCD;
pub use scale::Scale;

/// A paper of which something is reproduced.
pub struct Paper {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it calls its own work.
    pub title: &'static str,
    /// Names of its figures and tables.
    pub artefacts: &'static [&'static str],
    /// Does the runs that are missing, and makes the artefacts.
    reproduce: fn(&Reproduction, &mut dyn Progress) -> Result<Reproduced, ReproductionError>,
}

/// Every paper there is.
static PAPERS: [&Paper; 1] = [&FFCCD];

impl Paper {
    /// The paper of this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        PAPERS.into_iter().find(|paper| paper.name == name)
    }

    /// Names of all papers.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PAPERS.into_iter().map(|paper| paper.name)
    }
}

impl fmt::Debug for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What is reproduced.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Of which paper.
    pub paper: &'static Paper,
    /// Names of artefacts; all if empty.
    pub only: Vec<String>,
    /// How large runs are.
    pub scale: Scale,
    /// Where outcomes and the page go.
    pub out: PathBuf,
    /// What everything random follows from.
    pub seed: u64,
}

/// What was reproduced.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// Of which paper.
    #[serde(skip)]
    pub paper: &'static Paper,
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

impl Reproduction {
    /// Does the runs that are missing, and writes the page.
    ///
    /// Errors: no such artefact; a run fails; the directory cannot be written. Outcomes that are there stay there.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Reproduced, ReproductionError> {
        let reproduced = (self.paper.reproduce)(self, progress)?;
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
