//! The result of a simulation.

use firn_machine::description::Description;
use firn_machine::statistics::{
    CoreCounts, CoreStatistics, DeviceCounts, Energy, Statistics, Traffic,
};
use firn_media::Scope;
use serde::{Deserialize, Serialize, Serializer};

/// The counts of one phase, of all cores together except for the cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// Objects that were added or removed.
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
    /// Bytes that devices moved, by cause.
    pub bytes: Bytes,
    /// The energy for that.
    pub energy: DeviceEnergy,
    /// Cycles that the program's core waited, by cause.
    pub waited: Named,
    /// Cycles of all cores, by what they did.
    pub spent: Spent,
    /// Mean bytes of pages that hold an object, of those that the ratio counts.
    pub page_bytes: f64,
    /// Mean bytes of objects as requested.
    pub live_bytes: f64,
}

/// Numbers by name, in the order of reports.
#[derive(Clone, Debug)]
pub struct Named(pub Vec<(&'static str, u64)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Bytes that a device moved in a phase.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceBytes {
    /// Bytes read, by cause.
    pub read: Named,
    /// Bytes written, by cause.
    pub written: Named,
}

impl DeviceBytes {
    fn of(counts: &DeviceCounts) -> Self {
        let named = |traffic: &Traffic| Named(traffic.named_bytes().to_vec());
        Self {
            read: named(&counts.read),
            written: named(&counts.written),
        }
    }
}

/// Bytes that each device moved in a phase.
#[derive(Clone, Debug, Serialize)]
pub struct Bytes {
    /// Persistent memory.
    pub nvm: DeviceBytes,
    /// Volatile memory.
    pub dram: DeviceBytes,
}

/// Nanojoules of each device in a phase; absent if the machine's description has no numbers for it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeviceEnergy {
    /// Persistent memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvm_nj: Option<f64>,
    /// Volatile memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_nj: Option<f64>,
}

/// Cycles that cores spent on the collector, by what they did (FFCCD, figures 5 and 14).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Copying objects.
    pub copy: u64,
    /// Checking whether an object moves.
    pub check: u64,
    /// Finding its destination.
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
    /// The total.
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

/// The result of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The machine.
    pub machine: String,
    /// Digest of its description.
    pub digest: String,
    /// Additional hardware.
    pub mechanism: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// Objects that were inserted first.
    pub objects: u64,
    /// How objects moved.
    pub scheme: &'static str,
    /// The seed.
    pub seed: u64,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// Ratio of page bytes to live bytes after the first inserts, before anything was freed.
    pub packed_ratio: f64,
    /// Ratio of page bytes to live bytes at the end.
    pub ratio: f64,
    /// Ended cycles of the collector.
    pub collections: u64,
    /// Objects that were planned to move.
    pub moved: u64,
    /// Pages of 4 KiB that were emptied.
    pub emptied_frames: u64,
    /// Memory operations of all threads.
    pub events: u64,
    /// Counts of the mechanism.
    pub counts: Vec<(&'static str, u64)>,
}

/// Measures a phase by the machine's counts before and after it.
pub(super) struct Measured<'s> {
    pub(super) core: usize,
    pub(super) machine: &'s Description,
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

    fn waited(&self) -> Named {
        let of = |statistics: &Statistics| statistics.cores[self.core].counts.stalls;
        let stalls = of(self.after).since(&of(self.before));
        Named(stalls.named_cycles().to_vec())
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

    /// The phase, with the mean of its pages and content over the samples.
    pub(super) fn phase(
        &self,
        name: &'static str,
        operations: u64,
        (page_bytes, live_bytes): (f64, f64),
    ) -> Phase {
        let cycles = |statistics: &Statistics| statistics.cores[self.core].cycles;
        let nvm = self.after.nvm.since(&self.before.nvm);
        let dram = self.after.dram.since(&self.before.dram);
        let energy = |device, counts| Energy::of(device, counts).map(|energy| energy.total_nj());
        Phase {
            name,
            operations,
            cycles: cycles(self.after) - cycles(self.before),
            instructions: self.total(|counts| counts.instructions),
            accesses: self.total(|counts| counts.loads + counts.stores),
            fences: self.total(|counts| counts.fences),
            write_backs: self.total(|counts| counts.write_backs),
            nvm_reads: nvm.reads,
            nvm_writes: nvm.writes,
            bytes: Bytes {
                nvm: DeviceBytes::of(&nvm),
                dram: DeviceBytes::of(&dram),
            },
            energy: DeviceEnergy {
                nvm_nj: energy(&self.machine.nvm, &nvm),
                dram_nj: energy(&self.machine.dram, &dram),
            },
            waited: self.waited(),
            spent: self.spent(),
            page_bytes,
            live_bytes,
        }
    }
}
