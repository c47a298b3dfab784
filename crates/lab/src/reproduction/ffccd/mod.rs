//! FFCCD (Xu, Ye, Solihin and Shen, ISCA 2022): its figures and tables, each made from the outcomes of runs.
//!
//! ```text
//! size        how many objects and crashes a scale has
//! matrix      the runs that artefacts need, each once
//! injections  crashes of section 7.1
//! figure_5, table_3, figure_14, cost, forwarding, section_7_1, sweeps    the artefacts
//! ```

mod cost;
mod figure_14;
mod figure_5;
mod forwarding;
mod injections;
mod matrix;
mod section_7_1;
mod size;
mod sweeps;
mod table_3;

use firn_heap::collector::scheme::{NONE, Scheme};
use firn_machine::description::{Description, Latency};
use firn_tools::Progress;

use super::artefact::{Artefact, Bar, Row, percent, reduction};
use super::error::ReproductionError;
use super::outcome::Outcome;
use super::runner::{self, Outcomes};
use super::scale::Scale;
use super::{Paper, Reproduced, Reproduction, commits};
use injections::Injected;
use matrix::Cell;

/// A structure, with its name as a workload and in the paper.
struct Structure {
    workload: &'static str,
    short: &'static str,
}

const fn structure(workload: &'static str, short: &'static str) -> Structure {
    Structure { workload, short }
}

/// The five micro-benchmarks, in the order of Table 3.
const STRUCTURES: [Structure; 5] = [
    structure("linked_list", "LL"),
    structure("avl", "AVL"),
    structure("strings", "SS"),
    structure("inline_tree", "BT"),
    structure("red_black", "RB"),
];

/// An artefact: the runs that it needs, and how it is made from them.
struct Made {
    name: &'static str,
    cells: fn() -> Vec<Cell>,
    make: fn(&Context<'_>) -> Artefact,
    /// Whether it is also made from crashes.
    crashes: bool,
}

impl Made {
    fn make(&self, context: &Context<'_>) -> Artefact {
        (self.make)(context)
    }
}

const fn made(
    name: &'static str,
    cells: fn() -> Vec<Cell>,
    make: fn(&Context<'_>) -> Artefact,
) -> Made {
    Made {
        name,
        cells,
        make,
        crashes: false,
    }
}

static ALL: [Made; 7] = [
    made("fig5", figure_5::cells, figure_5::make),
    made("table1", Vec::new, cost::table_1),
    made("table3", table_3::cells, table_3::make),
    made("fig14", figure_14::cells, figure_14::make),
    made("section4.3", forwarding::cells, forwarding::make),
    Made {
        crashes: true,
        ..made("section7.1", Vec::new, section_7_1::make)
    },
    made("sweeps", sweeps::cells, sweeps::make),
];

/// The names of all artefacts.
const NAMES: [&str; ALL.len()] = {
    let (mut names, mut place) = ([""; ALL.len()], 0);
    while place < ALL.len() {
        names[place] = ALL[place].name;
        place += 1;
    }
    names
};

/// The artefacts of these names; all if there are none.
///
/// Errors: an unknown name.
fn wanted(only: &[String]) -> Result<Vec<&'static Made>, ReproductionError> {
    if let Some(name) = only.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(ReproductionError::Artefact {
            name: name.clone(),
            known: NAMES.join(", "),
        });
    }
    let is_wanted = |made: &&Made| only.is_empty() || only.iter().any(|name| name == made.name);
    Ok(ALL.iter().filter(is_wanted).collect())
}

/// The data that artefacts are made from.
struct Context<'c> {
    outcomes: &'c Outcomes,
    scale: Scale,
    seed: u64,
    /// Cycles of a read of persistent memory (Table 2).
    nvm_read_cycles: f64,
    /// Results of the crashes, if an artefact needs them.
    injected: Option<&'c Injected>,
}

impl Context<'_> {
    fn outcome(&self, cell: &Cell) -> &Outcome {
        &self.outcomes[&cell.key(self.scale, self.seed)]
    }

    fn of(&self, structure: &Structure, scheme: &'static Scheme) -> &Outcome {
        self.outcome(&Cell::of(structure.workload, scheme))
    }

    fn baseline(&self, structure: &Structure) -> &Outcome {
        self.of(structure, &NONE)
    }

    /// The mean over the structures.
    fn mean(&self, of: impl Fn(&Structure) -> f64) -> f64 {
        STRUCTURES.iter().map(of).sum::<f64>() / STRUCTURES.len() as f64
    }
}

/// The machine that everything runs on.
const MACHINE: &str = "ffccd";

/// The paper's reproducible part.
pub static FFCCD: Paper = Paper {
    name: "ffccd",
    title: "FFCCD",
    artefacts: &NAMES,
    reproduce,
};

/// Does the runs that are missing, and makes the artefacts.
fn reproduce(
    asked: &Reproduction,
    progress: &mut dyn Progress,
) -> Result<Reproduced, ReproductionError> {
    let (scale, seed) = (asked.scale, asked.seed);
    let wanted = wanted(&asked.only)?;
    let description = scale.machine(Description::of(MACHINE)?);
    let runs = matrix::runs(&wanted, scale, seed);
    let lines = matrix::lines(&wanted);
    let (outcomes, done) = runner::complete(&asked.out, &description, &runs, &lines, progress)?;
    let injected = match wanted.iter().any(|artefact| artefact.crashes) {
        true => Some(injections::inject(scale, seed, progress)?),
        false => None,
    };
    let context = Context {
        outcomes: &outcomes,
        scale,
        seed,
        nvm_read_cycles: nvm_read_cycles(&description),
        injected: injected.as_ref(),
    };
    let made = wanted.iter().map(|artefact| artefact.make(&context));
    Ok(Reproduced {
        paper: asked.paper,
        commit: commits(&outcomes, &runs),
        matrix: lines,
        machine: description.name.clone(),
        digest: format!("{:016x}", description.digest()),
        scale: scale.name(),
        objects: size::objects(scale),
        seed,
        runs: (runs.len(), done),
        artefacts: made.filter(|artefact| !artefact.rows.is_empty()).collect(),
        page: asked.out.join("index.html"),
    })
}

/// Cycles of a read of persistent memory from a row that is not open.
fn nvm_read_cycles(described: &Description) -> f64 {
    match described.nvm.latency {
        Latency::Fixed { read, .. } => read.into(),
        Latency::Rows { clean_miss, .. } => clean_miss.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_others_are_refused() {
        assert_eq!(wanted(&[]).unwrap().len(), NAMES.len());
        let some = wanted(&["fig14".into(), "table1".into()]).unwrap();
        assert_eq!(some.len(), 2);
        let refused = wanted(&["fig99".into()]).err().unwrap().to_string();
        assert!(refused.contains("fig99") && refused.contains("table3"));
    }
}
