//! What to simulate.

use firn_heap::collector::scheme::Scheme;
use firn_heap::collector::{Forwarding, Marking, PageSize};
use firn_heap::{Error, OpenError};
use firn_machine::description::DescriptionError;
use firn_machine::mechanism::{MECHANISMS, MechanismSpec, NONE, ffccd};
use firn_workloads::UnknownWorkload;

/// Most objects; for more, the host would have to keep two images of tens of gigabytes.
pub const MOST_OBJECTS: u64 = 16 << 20;
/// Fewest objects, of which four are deleted.
const FEWEST_OBJECTS: u64 = 5;

/// The collector's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// A thread with a core of its own.
    Thread,
    /// The program itself. It polls the pool every so many allocations and frees, and only the objects it touches are
    /// moved until no more are (FFCCD, section 5).
    Program {
        /// Allocations and frees between two polls.
        every: u64,
    },
}

/// The reference for the ratios of trigger and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioOf {
    /// The bytes that the program requested, as for the heap's own ratio.
    Requested,
    /// The bytes that the same objects take before anything is freed: the heap's ratio after the first inserts counts
    /// as one, and there is no collection before. Headers, size classes and half-full nodes then do not count as
    /// fragmentation.
    Packed,
}

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// A machine's name, or the file of its description.
    pub machine: String,
    /// Additional hardware.
    pub mechanism: &'static MechanismSpec,
    /// A workload's name.
    pub workload: String,
    /// Objects that are inserted first.
    pub objects: u64,
    /// How objects move while the program runs; with `none` they do not.
    pub scheme: &'static Scheme,
    /// The collector's driver.
    pub driver: Driver,
    /// Ratio of page bytes to live bytes at which they begin to move.
    pub trigger: f64,
    /// Ratio at which they stop moving.
    pub target: f64,
    /// The reference for both.
    pub ratio_of: RatioOf,
    /// The pages that the ratio counts.
    pub pages: PageSize,
    /// How marking is done.
    pub marking: Marking,
    /// How many destinations a page may have.
    pub forwarding: Forwarding,
    /// Seed of everything random.
    pub seed: u64,
}

impl SimulationPlan {
    /// A plan for this many objects of a workload on FFCCD's machine, where nothing moves.
    pub fn of(workload: &str, objects: u64) -> Self {
        Self {
            machine: "ffccd".into(),
            mechanism: &NONE,
            workload: workload.into(),
            objects,
            scheme: &firn_heap::collector::scheme::NONE,
            driver: Driver::Thread,
            trigger: 1.5,
            target: 1.25,
            ratio_of: RatioOf::Requested,
            pages: PageSize::Huge,
            marking: Marking::Concurrent,
            forwarding: Forwarding::Split,
            seed: 1,
        }
    }

    /// Errors: too few objects, or too many.
    pub(super) fn check(&self) -> Result<(), SimulationError> {
        let objects = self.objects;
        if !(FEWEST_OBJECTS..=MOST_OBJECTS).contains(&objects) {
            return Err(SimulationError::Objects { objects });
        }
        if let Driver::Program { every: 0 } = self.driver {
            return Err(SimulationError::Every);
        }
        Ok(())
    }
}

/// Why the simulation failed.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum SimulationError {
    /// The machine's description is invalid.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// There is no such workload.
    #[error(transparent)]
    Workload(#[from] UnknownWorkload),
    /// There is no such mechanism.
    #[error("there is no mechanism `{name}`; the mechanisms are {known}")]
    Mechanism {
        /// What was asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// Too few objects, or more than the host has memory for.
    #[error(
        "{objects} objects cannot be simulated; give a number from {FEWEST_OBJECTS} to {MOST_OBJECTS}"
    )]
    Objects {
        /// The number asked for.
        objects: u64,
    },
    /// The program would never poll.
    #[error("a program cannot poll its pool every 0 allocations; give 1 or more")]
    Every,
    /// The pool was not made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("the simulated program failed: {0}")]
    Program(#[from] Error),
    /// A simulated thread panicked.
    #[error("the simulated program failed: {0}")]
    Panic(String),
}

/// The mechanism of this name.
///
/// Errors: there is none.
pub fn mechanism(name: &str) -> Result<&'static MechanismSpec, SimulationError> {
    MechanismSpec::named(name).ok_or_else(|| SimulationError::Mechanism {
        name: name.to_owned(),
        known: MECHANISMS.map(|spec| spec.name).join(", "),
    })
}

/// The mechanism that a scheme needs.
pub fn mechanism_for(scheme: &Scheme) -> &'static MechanismSpec {
    match (scheme.checks_lookup(), scheme.relocates()) {
        (true, _) => &ffccd::CHECKLOOKUP,
        (false, true) => &ffccd::RELOCATE,
        (false, false) => &NONE,
    }
}
