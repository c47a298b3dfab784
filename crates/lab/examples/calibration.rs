//! The counts of a simulated machine, to compare with a real one's.
//! `docs/decisions/calibrated-work.md` has the figures.
//!
//! ```text
//! calibration real WORKLOAD OBJECTS PHASES [collect]
//! calibration simulated WORKLOAD OBJECTS PHASES [collect]
//! ```
//! `real` runs the first PHASES of FFCCD's on a file in `TMPDIR`, under a counting program such as
//! `perf stat --event instructions:u`: the counts of two runs differ by the cost of a phase. `simulated` itself prints
//! the cost of each phase, in instructions per operation; of all workloads, if WORKLOAD is `all`. `collect` adds a
//! collection, whose instructions `simulated` prints.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool};
use firn_lab::calibration::{PHASES, Phases, PhasesError, run};
use firn_lab::simulation::workloads;
use firn_machine::description::Description;
use firn_machine::{Machine, MachineOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Medium, Space};

const USAGE: &str = "calibration real|simulated WORKLOAD|all OBJECTS PHASES [collect]";
const POOL_BYTES: u64 = 1 << 27;
/// Each phase after the first adds or removes four of this many objects.
const CHANGED_OF: u64 = 5;

type AnyError = Box<dyn std::error::Error>;

/// Collects, if asked to.
fn collect<M: Medium>(pool: &Pool<M>, collects: bool) -> Result<(), Error> {
    if collects {
        let collected = pool.collect(&CollectOptions {
            pages: PageSize::Small,
            ..CollectOptions::default()
        })?;
        eprintln!("{collected:?}");
    }
    Ok(())
}

/// Uses a file that grows, as the simulated medium does: a collection examines the whole pool.
///
/// Ends the process before the pool is closed, since closing would be counted too.
fn real(plan: &Phases, collects: bool) -> Result<(), AnyError> {
    let options = MappedOptions::default().domain(Domain::Adr);
    let path = std::env::temp_dir().join(format!("firn-calibration-{}.pool", std::process::id()));
    let medium = Mapped::create(&path, 0, &options)?;
    medium.publish()?;
    std::fs::remove_file(&path)?;
    run(
        medium,
        plan,
        |_| (),
        |pool| {
            collect(pool, collects)?;
            std::process::exit(0)
        },
    )?;
    Ok(())
}

/// The instructions of each phase, and of the collection.
fn simulated(plan: &Phases, collects: bool) -> Result<Vec<u64>, AnyError> {
    let machine = Machine::new(MachineOptions {
        capacity: POOL_BYTES,
        seed: 1,
        ..MachineOptions::of(Description::of("ffccd")?)
    });
    let counts = Arc::new(Mutex::new((Vec::new(), Ok(()))));
    let (medium, plan, into) = (machine.clone(), plan.clone(), Arc::clone(&counts));
    let job = move || {
        let instructions = || {
            let cores = medium.statistics().cores;
            cores
                .iter()
                .map(|core| core.counts.instructions)
                .sum::<u64>()
        };
        let mut seen = Vec::new();
        let mut collected = None;
        let done = run(
            medium.clone(),
            &plan,
            |_| seen.push(instructions()),
            |pool| {
                collect(pool, collects)?;
                collected = Some(instructions());
                Ok(())
            },
        );
        seen.extend(collected.filter(|_| collects));
        *into.lock().unwrap_or_else(PoisonError::into_inner) = (seen, done);
    };
    machine.run(vec![Box::new(job)]);
    let counts = &mut *counts.lock().unwrap_or_else(PoisonError::into_inner);
    let done: Result<(), PhasesError> = core::mem::replace(&mut counts.1, Ok(()));
    done?;
    Ok(counts.0.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// Prints the simulation's result: one line per workload, one figure per phase.
fn tell(plan: &Phases, collects: bool) -> Result<(), AnyError> {
    let counts = simulated(plan, collects)?;
    let changed = plan.objects / CHANGED_OF * (CHANGED_OF - 1);
    let operations = [plan.objects, changed, changed, changed];
    let each = counts.iter().enumerate().map(|(phase, &count)| {
        let of = operations.iter().take(plan.count).nth(phase);
        format!("{:.1}", count as f64 / of.map_or(1.0, |&of| of as f64))
    });
    println!("{} {}", plan.workload, each.collect::<Vec<_>>().join(" "));
    Ok(())
}

fn calibration(arguments: &[String]) -> Result<(), AnyError> {
    let [how, workload, objects, phases, collects @ ..] = arguments else {
        return Err(USAGE.into());
    };
    let plan = |workload: &str| -> Result<Phases, AnyError> {
        Ok(Phases {
            workload: workload.into(),
            objects: objects.parse()?,
            count: phases.parse::<usize>()?.min(PHASES),
        })
    };
    let collects = collects.iter().any(|word| word == "collect");
    match (how.as_str(), workload.as_str()) {
        ("real", workload) => real(&plan(workload)?, collects),
        ("simulated", "all") => {
            workloads().try_for_each(|workload| tell(&plan(workload)?, collects))
        }
        ("simulated", workload) => tell(&plan(workload)?, collects),
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match calibration(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
