//! Workloads on simulated machines: FFCCD's phases on one structure, and what the machine counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use firn_heap::collector::scheme::{NONE, Scheme};
use firn_heap::collector::{BackgroundCollector, CollectOptions, CollectorOptions};
use firn_heap::{Error, OpenError, Pool, PoolOptions};
use firn_machine::description::{Description, DescriptionError, Kind, NAMES, Number};
use firn_machine::statistics::Statistics;
use firn_machine::{Machine, MachineOptions, RunEnd};
use serde::Serialize;

use crate::bench::population::{Population, SEED, Shape, Sizes, shuffled};

/// What the pool calls its content.
const LAYOUT: &str = "simulation";
/// Bytes of persistent memory for each object, and for the pool besides: more than any structure needs.
const BYTES_AN_OBJECT: u64 = 1 << 10;
const BYTES_BESIDES: u64 = 128 << 20;
/// Most objects: of more, the host would have to keep two images of tens of gigabytes.
pub const MOST_OBJECTS: u64 = 16 << 20;

/// The structures that workloads are about.
const SHAPES: [Shape; 7] = [
    Shape::Chain,
    Shape::Avl,
    Shape::Strings,
    Shape::InlineTree,
    Shape::RedBlack,
    Shape::Hash,
    Shape::Map,
];

/// Names of workloads.
pub fn workloads() -> impl Iterator<Item = &'static str> {
    SHAPES.into_iter().map(Shape::name)
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// A machine's name, or the file of its description.
    pub machine: String,
    /// A workload's name.
    pub workload: String,
    /// Objects that are inserted first.
    pub objects: u64,
    /// How objects move while the program runs; they do not if `none`.
    pub scheme: &'static Scheme,
    /// Ratio of page bytes to live bytes at which they begin to move.
    pub trigger: f64,
    /// Ratio at which they are content.
    pub target: f64,
    /// What everything random follows from.
    pub seed: u64,
}

/// Why nothing was simulated.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum SimulationError {
    /// The machine cannot be.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// There is no such workload.
    #[error("no workload is called `{name}`; there are {known}")]
    Workload {
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// Too few, or more than the host has memory for.
    #[error("{objects} objects cannot be simulated: between 5 and {MOST_OBJECTS} can")]
    Objects {
        /// How many were asked for.
        objects: u64,
    },
    /// The pool was not made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("the simulated program failed: {0}")]
    Program(#[from] Error),
    /// A simulated thread ended by a panic.
    #[error("the simulated program failed: {0}")]
    Panic(String),
}

/// What one phase did, of all cores together but for the cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// What was done.
    pub name: &'static str,
    /// Objects that came or went.
    pub operations: u64,
    /// Cycles of the program's core.
    pub cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// Lines loaded and stored.
    pub accesses: u64,
    /// Fences.
    pub fences: u64,
    /// Lines written back by the program.
    pub write_backs: u64,
    /// Lines read from persistent memory.
    pub nvm_reads: u64,
    /// Lines written to persistent memory.
    pub nvm_writes: u64,
    /// Cycles that the program's core waited, by cause.
    pub waited: Waited,
}

/// Cycles that a core waited, by cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Waited {
    /// Translations.
    pub translation: u64,
    /// Caches beyond the nearest.
    pub caches: u64,
    /// Other cores' caches.
    pub transfer: u64,
    /// Volatile memory.
    pub dram: u64,
    /// Persistent memory.
    pub nvm: u64,
    /// The store buffer.
    pub store_buffer: u64,
    /// Fences and locked instructions.
    pub fence: u64,
}

/// What was simulated, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The machine.
    pub machine: String,
    /// Digest of its description.
    pub digest: String,
    /// The workload.
    pub workload: &'static str,
    /// Objects that were inserted first.
    pub objects: u64,
    /// How objects moved.
    pub scheme: &'static str,
    /// The seed.
    pub seed: u64,
    /// What was done, one after the other.
    pub phases: Vec<Phase>,
    /// Ratio of page bytes to live bytes at the end.
    pub ratio: f64,
    /// Objects that were planned to move.
    pub moved: u64,
    /// Memory operations of all threads.
    pub events: u64,
}

/// The part of a run that the simulated program makes.
#[derive(Default)]
struct Made {
    phases: Vec<Phase>,
    ratio: f64,
    moved: u64,
}

/// Runs a workload on a machine.
pub fn simulate(plan: &SimulationPlan) -> Result<Simulation, SimulationError> {
    let description = Description::of(&plan.machine)?;
    let shape = SHAPES
        .into_iter()
        .find(|shape| shape.name() == plan.workload);
    let shape = shape.ok_or_else(|| SimulationError::Workload {
        name: plan.workload.clone(),
        known: workloads().collect::<Vec<_>>().join(", "),
    })?;
    if !(5..=MOST_OBJECTS).contains(&plan.objects) {
        let objects = plan.objects;
        return Err(SimulationError::Objects { objects });
    }
    let digest = format!("{:016x}", description.digest());
    let name = description.name.clone();
    let bytes = plan.objects * BYTES_AN_OBJECT + BYTES_BESIDES;
    let machine = Machine::new(MachineOptions {
        capacity: bytes.next_power_of_two(),
        seed: plan.seed,
        ..MachineOptions::of(description)
    });
    let made = Arc::new(Mutex::new(Err(SimulationError::Panic(
        "it did not end".into(),
    ))));
    let (program, plan_of, into) = (machine.clone(), plan.clone(), Arc::clone(&made));
    let job = move || {
        let done = run(&program, &plan_of, shape);
        *into.lock().unwrap_or_else(PoisonError::into_inner) = done;
    };
    // A panic of a destructor would take the command line with it.
    let end = catch_unwind(AssertUnwindSafe(|| machine.run(vec![Box::new(job)])));
    if let Ok(RunEnd::Panicked(messages)) = end {
        return Err(SimulationError::Panic(messages.join("; ")));
    }
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    let made = core::mem::replace(&mut *made, Ok(Made::default()))?;
    Ok(Simulation {
        machine: name,
        digest,
        workload: shape.name(),
        objects: plan.objects,
        scheme: plan.scheme.name,
        seed: plan.seed,
        phases: made.phases,
        ratio: made.ratio,
        moved: made.moved,
        events: machine.events(),
    })
}

type Change = fn(&mut Population<Machine>, &[u32]) -> Result<(), Error>;

/// Everything is inserted; four of five objects, at random, are deleted, inserted again and deleted again, one
/// a transaction (FFCCD, section 6).
fn run(machine: &Machine, plan: &SimulationPlan, shape: Shape) -> Result<Made, SimulationError> {
    let pool = Pool::create(machine.clone(), &PoolOptions::new(LAYOUT))?;
    let mut population = Population::new(&pool, shape, Sizes::Fixed, plan.objects)?;
    population.take_one_a_transaction();
    let collector = match !core::ptr::eq(plan.scheme, &NONE) {
        true => Some(pool.start_collector(&CollectorOptions {
            trigger: plan.trigger,
            least_bytes: 0,
            collect: CollectOptions {
                target: plan.target,
                scheme: plan.scheme,
                ..CollectOptions::default()
            },
            ..CollectorOptions::default()
        })?),
        false => None,
    };
    let all: Vec<u32> = (0..plan.objects as u32).collect();
    let [first, second] = [SEED, SEED + 1].map(|seed| shuffled(plan.objects, seed).0);
    let phases: [(&str, Change, &[u32]); 4] = [
        ("insert", Population::add, &all),
        ("delete", Population::remove, &first),
        ("insert again", Population::add, &first),
        ("delete again", Population::remove, &second),
    ];
    let core = machine.current_core();
    let mut made = Made::default();
    for (name, change, numbers) in phases {
        let before = machine.statistics();
        change(&mut population, numbers)?;
        let after = machine.statistics();
        made.phases
            .push(phase(name, numbers.len() as u64, core, &before, &after));
    }
    drop(population);
    let collected = collector.map(BackgroundCollector::stop).transpose()?;
    made.moved = collected.map_or(0, |done| done.collected.planned);
    made.ratio = pool.occupancy()?.ratio_2m().unwrap_or(0.0);
    Ok(made)
}

fn phase(
    name: &'static str,
    operations: u64,
    core: usize,
    before: &Statistics,
    after: &Statistics,
) -> Phase {
    let total = |count: fn(&firn_machine::statistics::CoreCounts) -> u64| {
        let of = |statistics: &Statistics| -> u64 {
            statistics
                .cores
                .iter()
                .map(|core| count(&core.counts))
                .sum()
        };
        of(after) - of(before)
    };
    let waited = |stall: fn(&firn_machine::statistics::Stalls) -> u64| {
        let of = |statistics: &Statistics| stall(&statistics.cores[core].counts.stalls);
        (of(after) - of(before)) / 1_000
    };
    Phase {
        name,
        operations,
        cycles: after.cores[core].cycles - before.cores[core].cycles,
        instructions: total(|counts| counts.instructions),
        accesses: total(|counts| counts.loads + counts.stores),
        fences: total(|counts| counts.fences),
        write_backs: total(|counts| counts.write_backs),
        nvm_reads: after.nvm.reads - before.nvm.reads,
        nvm_writes: after.nvm.writes - before.nvm.writes,
        waited: Waited {
            translation: waited(|stalls| stalls.translation),
            caches: waited(|stalls| stalls.caches),
            transfer: waited(|stalls| stalls.transfer),
            dram: waited(|stalls| stalls.dram),
            nvm: waited(|stalls| stalls.nvm),
            store_buffer: waited(|stalls| stalls.store_buffer),
            fence: waited(|stalls| stalls.fence),
        },
    }
}

/// A machine, in a line.
#[derive(Clone, Debug, Serialize)]
pub struct MachineLine {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Cores.
    pub cores: u32,
    /// Megahertz.
    pub clock_mhz: u32,
    /// Levels of cache.
    pub caches: usize,
    /// Numbers that its paper says, that were measured, and that were assumed.
    pub numbers: [usize; 3],
    /// Digest of the description.
    pub digest: String,
}

/// A number of a machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineNumber {
    /// Its path in the description.
    pub field: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// SPEC, MEASURED or ASSUMED.
    pub kind: String,
    /// Where it comes from, or why it was chosen.
    pub source: String,
}

/// The machines that there are.
pub fn machines() -> Result<Vec<MachineLine>, SimulationError> {
    NAMES.iter().map(|name| machine_line(name)).collect()
}

fn machine_line(name: &str) -> Result<MachineLine, SimulationError> {
    let (described, numbers) = Description::with_numbers(name)?;
    let count = |kind| numbers.iter().filter(|number| number.kind == kind).count();
    Ok(MachineLine {
        cores: described.core.count,
        clock_mhz: described.core.clock_mhz,
        caches: described.caches.len(),
        numbers: [Kind::Spec, Kind::Measured, Kind::Assumed].map(count),
        digest: format!("{:016x}", described.digest()),
        name: described.name,
        about: described.about,
    })
}

/// Every number of a machine, by its name or the file of its description.
pub fn machine_numbers(name: &str) -> Result<Vec<MachineNumber>, SimulationError> {
    let (_, numbers) = Description::with_numbers(name)?;
    let number = |number: Number| MachineNumber {
        field: number.field,
        value: number.value,
        unit: number.unit,
        kind: number.kind.to_string(),
        source: number.source,
    };
    Ok(numbers.into_iter().map(number).collect())
}
