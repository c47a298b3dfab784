//! The bench: the cost of Firn, beside other systems in one run.
//!
//! ```text
//! transactions   durable transactions, in turns with the rival's
//! long           transactions of a hundred thousand insertions and more
//! roots          finding a root in each operation, and once for many
//! allocator      allocating and freeing inside transactions
//! map            the ordered map
//! reopen         reopening after kill -9
//! structures     FFCCD's phases on every structure, in turns with the rivals'
//! collector      how dense compaction makes a pool, and what it costs
//! simulator      how fast the simulated machine is
//! durable        pools that are durable on a disk, in turns with databases
//! phases         objects come and go, and in which order
//! operation, rig, herd    what is measured, on any medium
//! clock, figure, cores    how it is timed and reported, and how far the cores are
//! pools, rival, reclaim   what it is measured on
//! media          what the systems keep their data in
//! document, bars, machine the text of docs/performance.md
//! ```
//!
//! Times are thread CPU time, so that other programs on the machine do not lengthen them. They are taken in blocks that
//! alternate between the compared systems. Caches and parts of cores are still shared: only ratios of one run mean
//! much.

mod allocator;
mod bars;
mod clock;
mod collector;
mod cores;
mod document;
pub mod durable;
mod error;
mod figure;
mod herd;
mod long;
mod machine;
mod map;
mod media;
mod operation;
mod phases;
mod pools;
mod reclaim;
mod reopen;
mod rig;
mod rival;
mod roots;
pub mod simulator;
mod structures;
mod transactions;

use std::path::PathBuf;

use firn_tools::Progress;

pub(crate) use clock::thread_cpu_ns;
pub use document::write;
pub use error::BenchError;
pub use figure::{Compaction, Figure};
pub use firn_media::Domain;
pub use machine::Machine;
pub(crate) use machine::commit;
pub use media::Placed;
pub use reopen::{ReopenPlan, reopen};
pub use rival::{Build, RivalSource};

pub(crate) use clock::{Moment, Times};

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rivals to measure.
    pub rivals: Vec<RivalSource>,
    /// Names of parts and of operations; everything if empty.
    pub only: Vec<String>,
    /// Structures on which the phases, and nothing else, are run; no restriction if empty.
    pub structures: Vec<String>,
    /// Blocks; their median counts.
    pub blocks: usize,
    /// Operations of a block.
    pub n: u64,
    /// Durability that pools in `memory_dir` are treated with.
    pub domain: Domain,
    /// The folder for pools in memory, a tmpfs.
    pub memory_dir: PathBuf,
    /// Entries of the map.
    pub entries: u64,
    /// Entries of the pools that are reopened.
    pub objects: Vec<u64>,
    /// The folder for pools on disk.
    pub disk_dir: PathBuf,
    /// The program that runs a [`ReopenPlan`] when it is called with `bench --reopen`.
    pub program: PathBuf,
}

impl Options {
    /// Whether an operation of a part was selected.
    fn wants(&self, section: &str, name: &str) -> bool {
        self.structures.is_empty() && self.only.is_empty()
            || self.only.iter().any(|only| only == section || only == name)
    }
}

/// Measures what was selected.
///
/// Errors: no pool could be made, the rival failed, a selected name is unknown.
pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<Vec<Placed>, BenchError> {
    let sections = [
        transactions::SECTION,
        allocator::SECTION,
        map::SECTION,
        reopen::SECTION,
        structures::SECTION,
        collector::SECTION,
        roots::SECTION,
        long::SECTION,
    ];
    let mut known: Vec<String> = sections.map(String::from).into();
    known.extend(transactions::names());
    known.extend(map::names());
    known.extend(structures::names());
    known.extend(collector::names());
    known.extend(roots::names());
    known.extend(long::names());
    if let Some(name) = options.only.iter().find(|name| !known.contains(name)) {
        return Err(BenchError::Unknown {
            name: name.clone(),
            known: format!(
                "{}; and on their own {}, {}",
                known.join(", "),
                durable::SECTION,
                durable::PARTS.join(", ")
            ),
        });
    }
    let structures: Vec<&str> = structures::structures().collect();
    let mut unknown = options.structures.iter();
    if let Some(name) = unknown.find(|name| !structures.contains(&name.as_str())) {
        return Err(BenchError::Unknown {
            name: name.clone(),
            known: structures.join(", "),
        });
    }
    let start = |source| rival::Rival::start(source, &options.memory_dir);
    let started: Result<Vec<_>, _> = options.rivals.iter().map(start).collect();
    let mut rivals = started?;
    let mut heap = rivals.iter_mut().find(|r| r.id == rival::LIBPMEMOBJ);
    let mut figures = transactions::measure(options, heap.as_deref_mut(), progress)?;
    figures.extend(roots::measure(options, progress)?);
    figures.extend(long::measure(options, progress)?);
    figures.extend(allocator::measure(options, heap, progress)?);
    figures.extend(map::measure(options, progress)?);
    figures.extend(reopen::measure(options, &reopen::PLAIN, progress)?);
    figures.extend(structures::measure(options, &mut rivals, progress)?);
    let heap = rivals.iter_mut().find(|r| r.id == rival::LIBPMEMOBJ);
    figures.extend(collector::measure(options, heap, progress)?);
    let figures = figures.into_iter();
    Ok(figures.map(|figure| Placed::new(figure, options)).collect())
}
