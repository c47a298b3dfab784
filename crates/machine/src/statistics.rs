//! The counts of a machine.

pub use crate::controller::QueueCounts;
pub use crate::device::DeviceCounts;
use crate::mechanism::Counts;
use crate::time::{CYCLE, Ticks};

pub use crate::energy::Energy;
pub use crate::traffic::{Cause, Traffic};

/// Levels by which accesses are counted: caches, then memory.
pub(crate) const MOST_LEVELS: usize = 6;

/// Time of one core, by the cause of its waits, in thousandths of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stalls {
    /// A translation that the nearest buffer did not have.
    pub translation: u64,
    /// A line from a cache beyond the nearest one.
    pub caches: u64,
    /// Another core's caches.
    pub transfer: u64,
    /// A line from volatile memory.
    pub dram: u64,
    /// A line from persistent memory.
    pub nvm: u64,
    /// A place in the store buffer.
    pub store_buffer: u64,
    /// Fences and locked instructions, which wait for older stores, and for the queue to accept lines that were written
    /// back.
    pub fence: u64,
    /// The hardware that a mechanism adds.
    pub mechanism: u64,
}

impl Stalls {
    /// Each stall in whole cycles, by its name, which is its field's.
    pub fn named_cycles(&self) -> [(&'static str, u64); 8] {
        let Self {
            translation,
            caches,
            transfer,
            dram,
            nvm,
            store_buffer,
            fence,
            mechanism,
        } = *self;
        [
            ("translation", translation),
            ("caches", caches),
            ("transfer", transfer),
            ("dram", dram),
            ("nvm", nvm),
            ("store_buffer", store_buffer),
            ("fence", fence),
            ("mechanism", mechanism),
        ]
        .map(|(name, ticks)| (name, ticks / CYCLE))
    }

    /// The core's waits since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            translation: self.translation - before.translation,
            caches: self.caches - before.caches,
            transfer: self.transfer - before.transfer,
            dram: self.dram - before.dram,
            nvm: self.nvm - before.nvm,
            store_buffer: self.store_buffer - before.store_buffer,
            fence: self.fence - before.fence,
            mechanism: self.mechanism - before.mechanism,
        }
    }
}

/// Counts of one core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreCounts {
    /// Instructions, including accesses.
    pub instructions: u64,
    /// Lines that loads touched.
    pub loads: u64,
    /// Lines that stores touched.
    pub stores: u64,
    /// Lines for which a write-back was issued.
    pub write_backs: u64,
    /// Fences.
    pub fences: u64,
    /// Locked instructions.
    pub locked: u64,
    /// Walks of the page table.
    pub walks: u64,
    /// Accesses for which each level had the line. Memory comes after the last cache.
    pub found_in: [u64; MOST_LEVELS],
    /// Its waits.
    pub stalls: Stalls,
}

/// Scopes by which time is told apart: one for each of the contract's, and one for the rest.
pub(crate) const SCOPES: usize = 9;
/// The scope of time outside all scopes.
pub(crate) const NO_SCOPE: u8 = 8;

/// The time of each scope on one core. Scopes nest; time counts for the innermost one.
#[derive(Clone, Debug)]
pub(crate) struct Scopes {
    pub(crate) ticks: [Ticks; SCOPES],
    open: Vec<u8>,
    since: Ticks,
}

impl Default for Scopes {
    fn default() -> Self {
        Self {
            ticks: [0; SCOPES],
            open: vec![NO_SCOPE],
            since: 0,
        }
    }
}

impl Scopes {
    fn innermost(&self) -> usize {
        self.open.last().map_or(NO_SCOPE, |&scope| scope).into()
    }

    /// Counts the time until `now` for the innermost scope.
    pub(crate) fn settle(&mut self, now: Ticks) {
        self.ticks[self.innermost()] += now - self.since;
        self.since = now;
    }

    pub(crate) fn begin(&mut self, scope: u8, now: Ticks) {
        self.settle(now);
        self.open.push(scope);
    }

    pub(crate) fn end(&mut self, now: Ticks) {
        self.settle(now);
        self.open.pop();
    }

    /// Exchanges the open scopes of one thread for those of another.
    pub(crate) fn exchange(&mut self, open: &mut Vec<u8>, now: Ticks) {
        self.settle(now);
        core::mem::swap(&mut self.open, open);
    }
}

/// Counts of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// Each core.
    pub cores: Vec<CoreStatistics>,
    /// The write-pending queue.
    pub queue: QueueCounts,
    /// Persistent memory.
    pub nvm: DeviceCounts,
    /// Volatile memory.
    pub dram: DeviceCounts,
    /// The mechanism's counts, by name.
    pub mechanism: Counts,
}

/// Counts of one core, and its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoreStatistics {
    /// Cycles since the machine's start.
    pub cycles: u64,
    /// Cycles of each scope, in the order of [`firn_media::Scope`], then of none.
    pub scopes: [u64; SCOPES],
    /// Its other counts.
    pub counts: CoreCounts,
}

impl CoreStatistics {
    pub(crate) fn of(counts: CoreCounts, scopes: &Scopes, now: Ticks) -> Self {
        let mut scopes = scopes.clone();
        scopes.settle(now);
        Self {
            cycles: now / CYCLE,
            scopes: scopes.ticks.map(|ticks| ticks / CYCLE),
            counts,
        }
    }
}
