//! How fast the simulated machine is: memory operations that it takes in a second of the host's CPU time.
//!
//! ```text
//! computer     patterns of addresses, each of which stresses another part
//! images       patterns on the machine as programs see it: memory has content, and there may be a mechanism
//! workload     a heap's structure on the machine, with each mechanism and without
//! address      the addresses of patterns
//! rate         one measured figure
//! page         bars, and the text of docs/machine-performance.md
//! ```
//!
//! Every round runs a block of each pattern, so that a change of the host affects all of them.

mod address;
mod computer;
mod images;
mod page;
mod rate;
mod workload;

use std::path::Path;

use firn_machine::description::Description;
use firn_machine::mechanism::{MECHANISMS, MechanismSpec, NONE};
use firn_tools::Progress;

pub use rate::{Rate, Undisturbed};

use super::cores;
use super::machine::Machine;
use super::{BenchError, Moment};
use crate::simulation::SimulationError;
use rate::{Block, Samples};

/// One in this many operations of a block runs as warm-up before anything is timed.
const WARMING: u64 = 10;
/// A block has this many times fewer operations where the host needs that much longer for one.
const SLOW: u64 = 4;

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct SimulatorOptions {
    /// The machine: a name, or the file of a description. It gets the cores that a pattern needs.
    pub machine: String,
    /// Names of patterns; all if empty.
    pub only: Vec<String>,
    /// Blocks of each pattern; their median counts.
    pub blocks: usize,
    /// Memory operations of a block; fewer for patterns that are slow.
    pub n: u64,
}

/// The goal of a rate.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Goal {
    /// At least this many millions a second.
    Least(f64),
    /// This share of the pattern of that name.
    ShareOf(&'static str, f64),
    /// No goal: it is there to be read.
    None,
}

/// A pattern that continues where it was: runs about this many operations, and returns how many it ran.
type Run = Box<dyn FnMut(u64) -> Result<u64, SimulationError>>;

/// A pattern to measure.
struct Subject {
    name: String,
    what: String,
    goal: Goal,
    /// One in this many operations is run.
    slow: u64,
    /// Makes the pattern on its first turn.
    make: Box<dyn Fn() -> Run>,
}

impl Subject {
    fn new(name: &str, what: &str, goal: Goal, make: impl Fn() -> Run + 'static) -> Self {
        Self {
            name: name.to_owned(),
            what: what.to_owned(),
            goal,
            slow: 1,
            make: Box::new(make),
        }
    }

    fn slow(self) -> Self {
        Self { slow: SLOW, ..self }
    }
}

/// All mechanisms except none.
fn mechanisms() -> impl Iterator<Item = &'static MechanismSpec> {
    let all = MECHANISMS.into_iter();
    all.filter(|spec| !core::ptr::eq(*spec, &NONE))
}

fn subjects(described: &Description) -> Vec<Subject> {
    let mut all = computer::subjects(described);
    all.extend(images::subjects(described));
    all.extend(workload::subjects(described));
    all
}

/// Measures how fast a machine is simulated.
///
/// Errors: the machine's description is invalid; no pattern has a selected name; a workload failed.
pub fn run(
    options: &SimulatorOptions,
    progress: &mut dyn Progress,
) -> Result<Vec<Rate>, BenchError> {
    let described = Description::of(&options.machine).map_err(SimulationError::from)?;
    let all = subjects(&described);
    let known = |name: &&String| all.iter().any(|subject| subject.name == **name);
    if let Some(name) = options.only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = all.iter().map(|subject| subject.name.as_str()).collect();
        return Err(BenchError::Unknown {
            name: name.clone(),
            known: names.join(", "),
        });
    }
    let wanted =
        |subject: &Subject| options.only.is_empty() || options.only.contains(&subject.name);
    let subjects: Vec<Subject> = all.into_iter().filter(wanted).collect();
    let mut samples: Vec<Samples> = subjects.iter().map(|_| Samples::default()).collect();
    let mut runs: Vec<Option<Run>> = subjects.iter().map(|_| None).collect();
    let steps = (options.blocks * subjects.len()) as u64;
    progress.begin("simulating", Some(steps));
    for _ in 0..options.blocks {
        for ((subject, run), samples) in subjects.iter().zip(&mut runs).zip(&mut samples) {
            samples.0.push(block(subject, run, options.n)?);
            progress.advance(1);
        }
    }
    progress.end();
    Ok(rate::rates(&subjects, &samples))
}

/// One block of a pattern, with the host's own speed before and after it.
fn block(subject: &Subject, run: &mut Option<Run>, n: u64) -> Result<Block, BenchError> {
    let count = (n / subject.slow).max(1);
    let run = match run {
        Some(run) => run,
        None => {
            let made = run.insert((subject.make)());
            made(count / WARMING)?;
            made
        }
    };
    let before = cores::step().cpu_ns;
    let start = Moment::now();
    let operations = run(count)?;
    let times = start.elapsed();
    let after = cores::step().cpu_ns;
    Ok(Block {
        operations,
        cpu_ns: times.cpu_ns,
        slowest_step_ns: before.max(after),
        fastest_step_ns: before.min(after),
    })
}

/// Writes the page of these figures to a file.
///
/// Errors: the file cannot be written.
pub fn write(
    path: &Path,
    host: &Machine,
    options: &SimulatorOptions,
    rates: &[Rate],
) -> Result<(), BenchError> {
    let text = page::page(host, options, rates);
    firn_mapped::write_whole(path, text.as_bytes())
        .map_err(BenchError::io(format!("writing {}", path.display())))
}
