//! The runs that artefacts need, each once.

use firn_heap::collector::scheme::{NONE, Recovery, Scheme};
use firn_heap::collector::{Forwarding, Marking};
use firn_machine::description::Description;

use super::artefacts::Made;
use super::scale::{EVERY, Scale};
use crate::simulation::{Driver, RatioOf, SimulationPlan, mechanism_for};

/// When a collection begins, and when it is content (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameters {
    /// From 1.5 down to 1.25.
    Normal,
    /// From 1.7 down to 1.5.
    Relaxed,
}

impl Parameters {
    pub(super) const fn trigger_and_target(self) -> (f64, f64) {
        match self {
            Self::Normal => (1.5, 1.25),
            Self::Relaxed => (1.7, 1.5),
        }
    }
}

/// What is taken for granted of the machine and of the program, where it is not as described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Assumed {
    /// Misses that overlap.
    pub(super) parallel_misses: Option<u32>,
    /// Cycles that an instruction takes, in thousandths.
    pub(super) millicycles: Option<u32>,
    /// Allocations and frees between two looks of the program at its pool.
    pub(super) every: Option<u64>,
}

impl Assumed {
    pub(super) const AS_DESCRIBED: Self = Self {
        parallel_misses: None,
        millicycles: None,
        every: None,
    };

    fn key(self) -> String {
        let misses = self
            .parallel_misses
            .map(|misses| format!("/{misses} misses"));
        let instruction = self
            .millicycles
            .map(|cycles| format!("/{cycles} millicycles"));
        let every = self.every.map(|every| format!("/{every} calls"));
        [misses, instruction, every].into_iter().flatten().collect()
    }

    /// The machine that it is taken for granted of.
    pub(super) fn on(self, mut described: Description) -> Description {
        let core = &mut described.core;
        core.parallel_misses = self.parallel_misses.unwrap_or(core.parallel_misses);
        core.millicycles_per_instruction =
            self.millicycles.unwrap_or(core.millicycles_per_instruction);
        described
    }
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// What tells it from the others.
    pub(super) key: String,
    pub(super) plan: SimulationPlan,
    pub(super) assumed: Assumed,
}

/// A run of one structure, before it has a scale.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub(super) structure: &'static str,
    pub(super) scheme: &'static Scheme,
    pub(super) parameters: Parameters,
    pub(super) assumed: Assumed,
}

impl Cell {
    pub(super) const fn of(structure: &'static str, scheme: &'static Scheme) -> Self {
        Self {
            structure,
            scheme,
            parameters: Parameters::Normal,
            assumed: Assumed::AS_DESCRIBED,
        }
    }

    /// What tells its run from others. Where nothing moves, it does not matter when.
    pub(super) fn key(&self, scale: Scale, seed: u64) -> String {
        let parameters = match (core::ptr::eq(self.scheme, &NONE), self.parameters) {
            (true, _) => "",
            (false, Parameters::Normal) => "/N",
            (false, Parameters::Relaxed) => "/R",
        };
        let assumed = self.assumed.key();
        let (structure, scheme, scale) = (self.structure, self.scheme.name, scale.name());
        format!("{scale}/{seed}/{structure}/{scheme}{parameters}{assumed}")
    }

    fn run(&self, scale: Scale, seed: u64) -> Run {
        let (trigger, target) = self.parameters.trigger_and_target();
        // What is run as printed has the printed forwarding table, too (section 4.3.1).
        let is_printed = !self.scheme.sound || self.scheme.recovery == Recovery::CopyReached;
        Run {
            key: self.key(scale, seed),
            plan: SimulationPlan {
                mechanism: mechanism_for(self.scheme),
                scheme: self.scheme,
                driver: Driver::Program {
                    every: self.assumed.every.unwrap_or(EVERY),
                },
                ratio_of: RatioOf::Packed,
                trigger,
                target,
                pages: scale.pages(),
                marking: Marking::StopTheWorld,
                forwarding: match is_printed {
                    true => Forwarding::OneDestination,
                    false => Forwarding::Split,
                },
                seed,
                ..SimulationPlan::of(self.structure, scale.objects())
            },
            assumed: self.assumed,
        }
    }
}

/// The runs of these artefacts, each once.
pub(super) fn runs(wanted: &[&Made], scale: Scale, seed: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for cell in wanted.iter().flat_map(|artefact| (artefact.cells)()) {
        let run = cell.run(scale, seed);
        if runs.iter().all(|other| other.key != run.key) {
            runs.push(run);
        }
    }
    runs
}

/// What is run for each artefact, a line each: schemes, structures, and how many runs that makes.
pub(super) fn lines(wanted: &[&Made]) -> Vec<String> {
    let line = |artefact: &&Made| {
        let cells = (artefact.cells)();
        if cells.is_empty() {
            return None;
        }
        let distinct = |of: fn(&Cell) -> &'static str| {
            let mut names: Vec<&str> = cells.iter().map(of).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let mut keys: Vec<String> = cells.iter().map(|cell| cell.key(Scale::Quick, 0)).collect();
        keys.sort_unstable();
        keys.dedup();
        Some(format!(
            "{}: {} runs; {}; {}",
            artefact.name,
            keys.len(),
            distinct(|cell| cell.structure),
            distinct(|cell| cell.scheme.name),
        ))
    };
    wanted.iter().filter_map(line).collect()
}
