//! What is simulated.

use firn_heap::collector::scheme::Scheme;
use firn_heap::collector::{Forwarding, Marking, PageSize};
use firn_heap::{Error, OpenError};
use firn_machine::description::DescriptionError;
use firn_machine::mechanism::{MECHANISMS, MechanismSpec, NONE, ffccd};
use firn_workloads::UnknownWorkload;

/// Most objects: of more, the host would have to keep two images of tens of gigabytes.
pub const MOST_OBJECTS: u64 = 16 << 20;
/// Fewest objects, of which four are deleted.
const FEWEST_OBJECTS: u64 = 5;

/// Who collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// A thread with a core of its own.
    Thread,
    /// The program itself, which looks at the pool every so many allocations and frees; nothing moves but what it
    /// touches, until nothing does (FFCCD, section 5).
    Program {
        /// Allocations and frees between two looks.
        every: u64,
    },
}

/// What the ratios of trigger and target are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioOf {
    /// The bytes that the program asked for, as the heap's own ratio is.
    Requested,
    /// What the same objects take where nothing was freed yet: the heap's ratio after the first inserts counts as
    /// one, and nobody collects before. What headers, size classes and half full nodes take is no fragmentation
    /// then.
    Packed,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// A machine's name, or the file of its description.
    pub machine: String,
    /// The hardware that it has besides.
    pub mechanism: &'static MechanismSpec,
    /// A workload's name.
    pub workload: String,
    /// Objects that are inserted first.
    pub objects: u64,
    /// How objects move while the program runs; they do not if `none`.
    pub scheme: &'static Scheme,
    /// Who moves them.
    pub driver: Driver,
    /// Ratio of page bytes to live bytes at which they begin to move.
    pub trigger: f64,
    /// Ratio at which they are content.
    pub target: f64,
    /// What both are relative to.
    pub ratio_of: RatioOf,
    /// The pages that the ratio counts.
    pub pages: PageSize,
    /// How marking is done.
    pub marking: Marking,
    /// How many destinations a page may have.
    pub forwarding: Forwarding,
    /// What everything random follows from.
    pub seed: u64,
}

impl SimulationPlan {
    /// So many objects of a workload on FFCCD's machine, where nothing moves.
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

/// Why nothing was simulated.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum SimulationError {
    /// The machine cannot be.
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
        /// Those there are.
        known: String,
    },
    /// Too few, or more than the host has memory for.
    #[error(
        "{objects} objects cannot be simulated; give a number from {FEWEST_OBJECTS} to {MOST_OBJECTS}"
    )]
    Objects {
        /// How many were asked for.
        objects: u64,
    },
    /// The program would never look.
    #[error("a program cannot poll its pool every 0 allocations; give 1 or more")]
    Every,
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
