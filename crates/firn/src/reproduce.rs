//! Papers again: arguments, and what is printed.

use std::path::PathBuf;

use clap::Args;
use firn_lab::LabError;
use firn_lab::reproduction::{Reproduction, Scale};

use crate::Verdict;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
FFCCD's figures and tables on its simulated machine: what the paper prints, what comes out here, how far apart they
are and why. The heap, its structures and its collector are the real ones; the program drives the collector as the
paper prints it (section 5).

  quick    50 000 objects, on a machine whose caches are smaller by as much: a minute or two
  tenth    500 000 objects on the machine as it is
  paper    5 000 000 objects, as printed

Outcomes of runs are kept in the directory, a line each, and not run again: the same command goes on where it was
broken off. The directory gets one page, index.html, that needs no other file.

What there is: fig5, table1, table3, fig14, section4.3, section7.1, sweeps. What is run for which of them is told
before it is, and about how long the rest will take.

Examples:
  firn reproduce ffccd --scale quick
  firn reproduce ffccd --only fig14,table3 --scale tenth --out reproduction";

#[derive(Args, Debug)]
pub struct Reproduce {
    /// The paper
    #[arg(value_parser = ["ffccd"])]
    pub paper: String,
    /// Only these figures and tables
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How large runs are: quick, tenth, paper
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    pub scale: String,
    /// Where outcomes and the page go
    #[arg(long, value_name = "DIRECTORY", default_value = "firn-reproduction")]
    pub out: PathBuf,
    /// What everything random follows from
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}

pub fn run(arguments: &Reproduce, output: &mut Output) -> Result<Verdict, Failure> {
    let reproduction = Reproduction {
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
