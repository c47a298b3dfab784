//! Reproducing papers: arguments and output.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use firn_lab::LabError;
use firn_lab::reproduction::{Paper, Reproduction, Scale};

use crate::Verdict;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
FFCCD's figures and tables on its simulated machine: the printed values, ours, how far apart they are and why. The \
heap, its structures and its collector are the real ones; the program drives the collector as the paper prints it \
(section 5).

  quick    50 000 objects, on a machine with proportionally smaller caches: a minute or two
  tenth    500 000 objects on the machine as it is
  paper    5 000 000 objects, as printed

Outcomes are saved in the directory, one a line, and not run again, so the same command continues after an \
interruption. The directory gets one page, index.html, that needs no other file.

Available: fig5, table1, table3, fig14, section4.3, section7.1, sweeps. Before each run the command says what it is for \
and about how long the rest will take.

Examples:
  firn reproduce ffccd --scale quick
  firn reproduce ffccd --only fig14,table3 --scale tenth --out reproduction";

#[derive(Args, Debug)]
pub struct Reproduce {
    /// The paper
    #[arg(value_parser = PossibleValuesParser::new(Paper::names()).map(paper))]
    pub paper: &'static Paper,
    /// Only these figures and tables
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Size of the runs: quick, tenth, paper
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    pub scale: String,
    /// Directory for outcomes and the page
    #[arg(long, value_name = "DIRECTORY", default_value = "firn-reproduction")]
    pub out: PathBuf,
    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}

/// The paper of a name that the parser has accepted.
fn paper(name: String) -> &'static Paper {
    Paper::named(&name).expect("it is one of the names")
}

pub fn run(arguments: &Reproduce, output: &mut Output) -> Result<Verdict, Failure> {
    let reproduction = Reproduction {
        paper: arguments.paper,
        only: arguments.only.clone(),
        scale: Scale::named(&arguments.scale).map_err(LabError::from)?,
        out: arguments.out.clone(),
        seed: arguments.seed,
    };
    let reproduced = reproduction.run(&mut Bars::new()).map_err(LabError::from)?;
    if output.json() {
        output.object(&reproduced)?;
        return Ok(Verdict::Well);
    }
    for artefact in &reproduced.artefacts {
        output.table(&artefact.table())?;
        output.line("")?;
        for note in &artefact.notes {
            output.line(note)?;
        }
    }
    let (runs, done) = reproduced.runs;
    output.line("")?;
    output.line(&format!(
        "{runs} runs of {} objects, {done} of them now; machine {}, digest {}, commit {}",
        crate::figures::count(reproduced.objects),
        reproduced.machine,
        reproduced.digest,
        reproduced.commit
    ))?;
    output.line(&format!("page: {}", reproduced.page.display()))?;
    Ok(Verdict::Well)
}
