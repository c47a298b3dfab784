//! The program on the machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use firn_heap::collector::scheme::NONE;
use firn_heap::collector::{
    BackgroundCollector, CollectOptions, Collected, CollectorOptions, PageSize, Workflow,
    WorkflowOptions,
};
use firn_heap::{Error, Pool, PoolOptions, Statistics as PoolStatistics};
use firn_machine::description::Description;
use firn_machine::{Machine, MachineOptions, RunEnd};
use firn_workloads::{Population, Shape, Sizes, shuffled};

use super::plan::{Driver, RatioOf, SimulationError, SimulationPlan};
use super::report::{Measured, Phase, Simulation};

/// The pool's name for its content.
const LAYOUT: &str = "simulation";
/// Bytes of persistent memory for each object, and for the pool besides: more than any structure needs.
const BYTES_AN_OBJECT: u64 = 1 << 10;
const BYTES_BESIDES: u64 = 128 << 20;
/// Increase of the ratio before a collecting program begins another cycle, as in the background collector.
const WORSE: f64 = 1.05;
/// Samples of the pool in a phase, for its mean footprint. They take no simulated time.
const LOOKS: usize = 64;

/// The simulated program's part of a run.
#[derive(Default)]
struct Made {
    phases: Vec<Phase>,
    packed_ratio: f64,
    ratio: f64,
    collected: Collected,
}

/// Runs a workload on a machine.
pub fn simulate(plan: &SimulationPlan) -> Result<Simulation, SimulationError> {
    simulate_on(Description::of(&plan.machine)?, plan)
}

/// Runs a workload on a machine of this description.
pub(crate) fn simulate_on(
    description: Description,
    plan: &SimulationPlan,
) -> Result<Simulation, SimulationError> {
    let shape = Shape::of_workload(&plan.workload)?;
    plan.check()?;
    let digest = format!("{:016x}", description.digest());
    let name = description.name.clone();
    let bytes = plan.objects * BYTES_AN_OBJECT + BYTES_BESIDES;
    let machine = Machine::new(MachineOptions {
        mechanism: plan.mechanism,
        capacity: bytes.next_power_of_two(),
        seed: plan.seed,
        ..MachineOptions::of(description)
    });
    let made = made_by(&machine, plan, shape)?;
    Ok(Simulation {
        machine: name,
        digest,
        mechanism: plan.mechanism.name,
        workload: shape.name(),
        objects: plan.objects,
        scheme: plan.scheme.name,
        seed: plan.seed,
        phases: made.phases,
        packed_ratio: made.packed_ratio,
        ratio: made.ratio,
        collections: made.collected.cycles,
        moved: made.collected.planned,
        emptied_frames: made.collected.emptied_frames,
        events: machine.events(),
        counts: machine.statistics().mechanism,
    })
}

/// Runs the program as a simulated thread.
fn made_by(
    machine: &Machine,
    plan: &SimulationPlan,
    shape: Shape,
) -> Result<Made, SimulationError> {
    let made = Arc::new(Mutex::new(Err(SimulationError::Panic(
        "it did not end".into(),
    ))));
    let (program, plan, into) = (machine.clone(), plan.clone(), Arc::clone(&made));
    let job = move || {
        let done = run(&program, &plan, shape);
        *into.lock().unwrap_or_else(PoisonError::into_inner) = done;
    };
    // A panic in a destructor would end the command line.
    let end = catch_unwind(AssertUnwindSafe(|| machine.run(vec![Box::new(job)])));
    if let Ok(RunEnd::Panicked(messages)) = end {
        return Err(SimulationError::Panic(messages.join("; ")));
    }
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    core::mem::replace(&mut *made, Ok(Made::default()))
}

/// The driver of the collector, at work.
enum Collector {
    Nobody,
    Thread(BackgroundCollector<Machine>),
    Program(Box<Workflow<Machine>>),
}

impl Collector {
    /// Ratios count in units of `one`.
    fn start(pool: &Pool<Machine>, plan: &SimulationPlan, one: f64) -> Result<Self, Error> {
        if core::ptr::eq(plan.scheme, &NONE) {
            return Ok(Self::Nobody);
        }
        let collect = CollectOptions {
            target: plan.target * one,
            pages: plan.pages,
            scheme: plan.scheme,
            marking: plan.marking,
            forwarding: plan.forwarding,
            ..CollectOptions::default()
        };
        match plan.driver {
            Driver::Thread => {
                let options = CollectorOptions {
                    trigger: plan.trigger * one,
                    least_bytes: 0,
                    collect,
                    ..CollectorOptions::default()
                };
                Ok(Self::Thread(pool.start_collector(&options)?))
            }
            Driver::Program { every } => {
                let options = WorkflowOptions {
                    trigger: plan.trigger * one,
                    every,
                    worse: WORSE,
                    collect,
                };
                Ok(Self::Program(Box::new(Workflow::new(pool, &options)?)))
            }
        }
    }

    /// Notes that the program has added or removed an object.
    fn count(&self) -> Result<(), Error> {
        match self {
            Self::Program(workflow) => workflow.count(1),
            Self::Nobody | Self::Thread(_) => Ok(()),
        }
    }

    /// Ends the program's open cycle, as FFCCD's `exit` does.
    fn exit(&self, pool: &Pool<Machine>) -> Result<(), Error> {
        match self {
            Self::Program(workflow) if pool.has_open_cycle() => workflow.terminate(),
            _ => Ok(()),
        }
    }

    fn stop(self) -> Result<Collected, Error> {
        Ok(match self {
            Self::Nobody => Collected::default(),
            Self::Thread(collector) => collector.stop()?.collected,
            Self::Program(workflow) => workflow.collected(),
        })
    }
}

type Change = fn(&mut Population<Machine>, &[u32]) -> Result<(), Error>;

/// Everything is inserted; four of five objects, at random, are deleted, inserted again and deleted again, one per
/// transaction (FFCCD, section 6).
fn run(machine: &Machine, plan: &SimulationPlan, shape: Shape) -> Result<Made, SimulationError> {
    let pool = Pool::create(machine.clone(), &PoolOptions::new(LAYOUT))?;
    let mut population = Population::new(&pool, shape, Sizes::Fixed, plan.objects)?;
    population.take_one_a_transaction();
    let mut collector = match plan.ratio_of {
        RatioOf::Requested => Collector::start(&pool, plan, 1.0)?,
        RatioOf::Packed => Collector::Nobody,
    };
    let all: Vec<u32> = (0..plan.objects as u32).collect();
    let seed = plan.seed.wrapping_mul(2);
    let [first, second] = [seed, seed | 1].map(|seed| shuffled(plan.objects, seed).0);
    let phases: [(&str, Change, &[u32]); 4] = [
        ("insert", Population::add, &all),
        ("delete", Population::remove, &first),
        ("insert again", Population::add, &first),
        ("delete again", Population::remove, &second),
    ];
    let last = phases.len() - 1;
    let core = machine.current_core();
    let mut made = Made::default();
    for (place, (name, change, numbers)) in phases.into_iter().enumerate() {
        let before = machine.statistics();
        let mut footprint = Footprint::default();
        for some in numbers.chunks(numbers.len().div_ceil(LOOKS)) {
            for number in some {
                change(&mut population, core::slice::from_ref(number))?;
                collector.count()?;
            }
            footprint.look(machine, plan.pages)?;
        }
        if place == last {
            collector.exit(&pool)?;
        }
        let measured = Measured {
            core,
            machine: machine.description(),
            before: &before,
            after: &machine.statistics(),
        };
        let phase = measured.phase(name, numbers.len() as u64, footprint.mean());
        made.phases.push(phase);
        if place == 0 {
            made.packed_ratio = machine.untimed(|| pool.ratio(plan.pages));
            if plan.ratio_of == RatioOf::Packed {
                collector = Collector::start(&pool, plan, made.packed_ratio)?;
            }
        }
    }
    drop(population);
    made.collected = collector.stop()?;
    made.ratio = pool.occupancy()?.ratio_2m().unwrap_or(0.0);
    Ok(made)
}

/// The mean footprint of a pool over samples.
#[derive(Default)]
struct Footprint {
    page_bytes: f64,
    live_bytes: f64,
    looks: f64,
}

impl Footprint {
    fn look(&mut self, machine: &Machine, pages: PageSize) -> Result<(), SimulationError> {
        let seen = machine
            .untimed(|| PoolStatistics::read(machine))
            .map_err(Error::from)?;
        self.page_bytes += match pages {
            PageSize::Small => seen.footprint_4k_bytes,
            PageSize::Huge => seen.footprint_2m_bytes,
        } as f64;
        self.live_bytes += seen.live_bytes as f64;
        self.looks += 1.0;
        Ok(())
    }

    fn mean(&self) -> (f64, f64) {
        (self.page_bytes / self.looks, self.live_bytes / self.looks)
    }
}
