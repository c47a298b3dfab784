//! Papers' figures and tables, reproduced on the simulated machine: published, ours, the deviation, and why. Each paper
//! is a folder, like `ffccd`.
//!
//! ```text
//! ffccd/      FFCCD: what is run and crashed for it, its figures and tables
//! scale       how large runs are, and the machine's caches
//! run         a run from which figures are made
//! outcome     its recorded outcome
//! runner      does the runs that a directory lacks, on all processors
//! artefact    a figure or a table as printed, with ours beside it
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

/// A paper that is reproduced in part.
pub struct Paper {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its title.
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

/// What to reproduce.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The paper.
    pub paper: &'static Paper,
    /// Names of artefacts; all if empty.
    pub only: Vec<String>,
    /// How large runs are.
    pub scale: Scale,
    /// The directory for outcomes and the page.
    pub out: PathBuf,
    /// Seed of everything random.
    pub seed: u64,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// The paper.
    #[serde(skip)]
    pub paper: &'static Paper,
    /// The commit of the checkout in which the runs were done; several, if outcomes come from several.
    pub commit: String,
    /// The runs of each artefact.
    pub matrix: Vec<String>,
    /// The machine.
    pub machine: String,
    /// Digest of its description, as it was used.
    pub digest: String,
    /// How large runs were.
    pub scale: &'static str,
    /// Objects that each run inserted first.
    pub objects: u64,
    /// The seed.
    pub seed: u64,
    /// Runs from which artefacts are made, and how many of them were done now.
    pub runs: (usize, usize),
    /// In the paper's order.
    pub artefacts: Vec<Artefact>,
    /// The page.
    pub page: PathBuf,
}

impl Reproduction {
    /// Does the missing runs, and writes the page.
    ///
    /// Errors: no such artefact; a run fails; the directory cannot be written. Existing outcomes stay.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Reproduced, ReproductionError> {
        let reproduced = (self.paper.reproduce)(self, progress)?;
        page::write(&reproduced)?;
        Ok(reproduced)
    }
}

/// The commits of these runs' outcomes; the checkout's own if nothing was run.
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
