//! The recorded outcome of a run.

use serde::{Deserialize, Serialize};

use crate::simulation::{Simulation, Spent};

/// A run's outcome, over the three phases that follow the first inserts (FFCCD, section 6).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The run's key.
    pub(super) key: String,
    /// Digest of the machine.
    pub(super) digest: String,
    /// Commit of the checkout in which it was run.
    pub(super) commit: String,
    /// Cycles of the program's core.
    pub(super) cycles: u64,
    /// Instructions of all cores.
    pub(super) instructions: u64,
    /// The cycles of the collector among them.
    pub(super) spent: Spent,
    /// Fences.
    pub(super) fences: u64,
    /// Lines written to persistent memory.
    pub(super) nvm_writes: u64,
    /// Mean bytes of pages that hold an object, and of objects as requested.
    pub(super) page_bytes: f64,
    pub(super) live_bytes: f64,
    /// Page bytes over those of a pool in which nothing has been freed yet.
    pub(super) packed_ratio: f64,
    /// Objects that were planned to move, and cycles of the collector.
    pub(super) moved: u64,
    pub(super) collections: u64,
    /// Pages that were emptied.
    pub(super) emptied_frames: u64,
    /// Operations.
    pub(super) operations: u64,
    /// Counts of the mechanism.
    pub(super) counts: Vec<(String, u64)>,
}

impl Outcome {
    pub(super) fn of(key: String, simulation: &Simulation) -> Self {
        let phases = &simulation.phases[1..];
        let sum = |of: fn(&crate::simulation::Phase) -> u64| phases.iter().map(of).sum();
        let mean = |of: fn(&crate::simulation::Phase) -> f64| {
            phases.iter().map(of).sum::<f64>() / phases.len() as f64
        };
        let counts = simulation.counts.iter();
        Self {
            key,
            digest: simulation.digest.clone(),
            commit: String::new(),
            cycles: sum(|phase| phase.cycles),
            instructions: sum(|phase| phase.instructions),
            spent: phases
                .iter()
                .fold(Spent::default(), |spent, phase| spent + phase.spent),
            fences: sum(|phase| phase.fences),
            nvm_writes: sum(|phase| phase.nvm_writes),
            page_bytes: mean(|phase| phase.page_bytes),
            live_bytes: mean(|phase| phase.live_bytes),
            packed_ratio: simulation.packed_ratio,
            moved: simulation.moved,
            collections: simulation.collections,
            emptied_frames: simulation.emptied_frames,
            operations: sum(|phase| phase.operations),
            counts: counts
                .map(|&(name, count)| (name.to_owned(), count))
                .collect(),
        }
    }

    /// Copying, and making copies count durably.
    pub(super) fn copy(&self) -> u64 {
        self.spent.copy + self.spent.state
    }

    /// Cost of the collector in the program's accesses: the read barrier, copies, their durability.
    pub(super) fn barrier(&self) -> u64 {
        self.copy() + self.check_and_lookup() + self.spent.reference
    }

    /// How often the mechanism counted this.
    pub(super) fn count(&self, name: &str) -> u64 {
        let mut counts = self.counts.iter();
        counts
            .find(|(of, _)| of == name)
            .map_or(0, |&(_, count)| count)
    }

    /// Finding out whether an object moves, and where to.
    pub(super) fn check_and_lookup(&self) -> u64 {
        self.spent.check + self.spent.lookup
    }

    /// Mean bytes of pages that live objects would fill if nothing had been freed between them.
    pub(super) fn packed_bytes(&self) -> f64 {
        self.live_bytes * self.packed_ratio
    }

    /// Page bytes over those packed bytes.
    pub(super) fn ratio(&self) -> f64 {
        self.page_bytes / self.packed_bytes()
    }
}
