//! A run from which figures are made.

use firn_machine::description::Description;

use crate::simulation::SimulationPlan;

/// Assumptions about the machine and the program that differ from their descriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Assumed {
    /// Overlapping misses.
    pub(super) parallel_misses: Option<u32>,
    /// Thousandths of a cycle per instruction.
    pub(super) millicycles: Option<u32>,
    /// Allocations and frees between two polls of the pool by the program.
    pub(super) every: Option<u64>,
}

impl Assumed {
    pub(super) const AS_DESCRIBED: Self = Self {
        parallel_misses: None,
        millicycles: None,
        every: None,
    };

    /// Distinguishes a run with these assumptions from others.
    pub(super) fn key(self) -> String {
        let misses = self
            .parallel_misses
            .map(|misses| format!("/{misses} misses"));
        let instruction = self
            .millicycles
            .map(|cycles| format!("/{cycles} millicycles"));
        let every = self.every.map(|every| format!("/{every} calls"));
        [misses, instruction, every].into_iter().flatten().collect()
    }

    /// The machine under these assumptions.
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
    /// Distinguishes it from the others.
    pub(super) key: String,
    pub(super) plan: SimulationPlan,
    pub(super) assumed: Assumed,
}
