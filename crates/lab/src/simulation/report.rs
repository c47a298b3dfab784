//! What was simulated, and what came of it.

use firn_machine::statistics::{CoreCounts, CoreStatistics, Stalls, Statistics};
use firn_media::Scope;
use serde::{Deserialize, Serialize};

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
    /// Cycles of all cores, by what they did.
    pub spent: Spent,
    /// Bytes of pages that hold an object, on average: of those that the ratio counts.
    pub page_bytes: f64,
    /// Bytes of objects as the program asked for them, on average.
    pub live_bytes: f64,
}

/// Cycles that a core waited, by cause.
#[derive(Clone, Copy, Debug, Default, Serialize)]
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
    /// Hardware of the mechanism.
    pub mechanism: u64,
}

/// Cycles that cores spent on the collector, by what they did (FFCCD, figures 5 and 14).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Copying objects.
    pub copy: u64,
    /// Asking whether an object moves.
    pub check: u64,
    /// Finding where to.
    pub lookup: u64,
    /// The state of objects on the move.
    pub state: u64,
    /// Healing references.
    pub reference: u64,
    /// Marking.
    pub mark: u64,
    /// Planning.
    pub summary: u64,
    /// Ending cycles.
    pub finish: u64,
}

impl core::ops::Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            copy: self.copy + other.copy,
            check: self.check + other.check,
            lookup: self.lookup + other.lookup,
            state: self.state + other.state,
            reference: self.reference + other.reference,
            mark: self.mark + other.mark,
            summary: self.summary + other.summary,
            finish: self.finish + other.finish,
        }
    }
}

impl Spent {
    /// All of it.
    pub fn total(&self) -> u64 {
        let Self {
            copy,
            check,
            lookup,
            state,
            reference,
            mark,
            summary,
            finish,
        } = self;
        copy + check + lookup + state + reference + mark + summary + finish
    }
}

/// What was simulated, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The machine.
    pub machine: String,
    /// Digest of its description.
    pub digest: String,
    /// The hardware that it has besides.
    pub mechanism: &'static str,
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
    /// Ratio of page bytes to live bytes after the first inserts, when nothing was freed yet.
    pub packed_ratio: f64,
    /// The same at the end.
    pub ratio: f64,
    /// Cycles that were ended, of the collector.
    pub collections: u64,
    /// Objects that were planned to move.
    pub moved: u64,
    /// Pages of 4 KiB that were emptied.
    pub emptied_frames: u64,
    /// Memory operations of all threads.
    pub events: u64,
    /// What the mechanism counted.
    pub counts: Vec<(&'static str, u64)>,
}

/// What a phase is measured by: the machine's counts before and after it.
pub(super) struct Measured<'s> {
    pub(super) core: usize,
    pub(super) before: &'s Statistics,
    pub(super) after: &'s Statistics,
}

impl Measured<'_> {
    fn total(&self, count: fn(&CoreCounts) -> u64) -> u64 {
        let of = |statistics: &Statistics| -> u64 {
            let each = statistics.cores.iter().map(|core| count(&core.counts));
            each.sum()
        };
        of(self.after) - of(self.before)
    }

    fn waited(&self) -> Waited {
        let of = |stall: fn(&Stalls) -> u64| {
            let of = |statistics: &Statistics| stall(&statistics.cores[self.core].counts.stalls);
            (of(self.after) - of(self.before)) / 1_000
        };
        Waited {
            translation: of(|stalls| stalls.translation),
            caches: of(|stalls| stalls.caches),
            transfer: of(|stalls| stalls.transfer),
            dram: of(|stalls| stalls.dram),
            nvm: of(|stalls| stalls.nvm),
            store_buffer: of(|stalls| stalls.store_buffer),
            fence: of(|stalls| stalls.fence),
            mechanism: of(|stalls| stalls.mechanism),
        }
    }

    fn spent(&self) -> Spent {
        let of = |scope: Scope| {
            let of = |cores: &[CoreStatistics]| -> u64 {
                cores.iter().map(|core| core.scopes[scope as usize]).sum()
            };
            of(&self.after.cores) - of(&self.before.cores)
        };
        Spent {
            copy: of(Scope::Copy),
            check: of(Scope::Check),
            lookup: of(Scope::Lookup),
            state: of(Scope::State),
            reference: of(Scope::Reference),
            mark: of(Scope::Mark),
            summary: of(Scope::Summary),
            finish: of(Scope::Finish),
        }
    }

    /// The phase, of which so many pages and so much content were seen on average.
    pub(super) fn phase(
        &self,
        name: &'static str,
        operations: u64,
        (page_bytes, live_bytes): (f64, f64),
    ) -> Phase {
        let cycles = |statistics: &Statistics| statistics.cores[self.core].cycles;
        Phase {
            name,
            operations,
            cycles: cycles(self.after) - cycles(self.before),
            instructions: self.total(|counts| counts.instructions),
            accesses: self.total(|counts| counts.loads + counts.stores),
            fences: self.total(|counts| counts.fences),
            write_backs: self.total(|counts| counts.write_backs),
            nvm_reads: self.after.nvm.reads - self.before.nvm.reads,
            nvm_writes: self.after.nvm.writes - self.before.nvm.writes,
            waited: self.waited(),
            spent: self.spent(),
            page_bytes,
            live_bytes,
        }
    }
}
