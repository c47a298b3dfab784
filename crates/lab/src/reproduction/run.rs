//! A run that figures are made of.

use firn_machine::description::Description;

use crate::simulation::SimulationPlan;

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

    /// What tells a run with it from others.
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
