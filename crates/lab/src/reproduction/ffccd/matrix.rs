//! The runs that artefacts need, each once.

use firn_heap::collector::scheme::{NONE, Recovery, Scheme};
use firn_heap::collector::{Forwarding, Marking};

use super::Made;
use super::size::{EVERY, objects, pages};
use crate::reproduction::run::{Assumed, Run};
use crate::reproduction::scale::Scale;
use crate::simulation::{Driver, RatioOf, SimulationPlan, mechanism_for};

/// When a collection begins and when it ends (section 6).
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

    /// Distinguishes its run from others. If nothing moves, the parameters do not matter.
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
        // A scheme as printed also has the printed forwarding table (section 4.3.1).
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
                pages: pages(scale),
                marking: Marking::StopTheWorld,
                forwarding: match is_printed {
                    true => Forwarding::OneDestination,
                    false => Forwarding::Split,
                },
                seed,
                ..SimulationPlan::of(self.structure, objects(scale))
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

/// The runs of each artefact, one line each: schemes, structures, and the number of runs.
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
