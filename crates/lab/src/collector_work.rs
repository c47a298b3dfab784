//! The work of a collector in the background.

use firn_heap::collector::{Background, Stops};
use firn_tools::figures::ms;
use serde::Serialize;

/// The work of a collector in the background, in all of its lives.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CollectorWork {
    /// Collections that were begun.
    pub collections: u64,
    /// Cycles.
    pub cycles: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Bytes of their slots.
    pub moved_bytes: u64,
    /// Bytes of free space that went back to the device.
    pub released_bytes: u64,
    /// Computation of the collector's thread.
    pub cpu_ms: f64,
    /// Times that it stopped the program.
    pub stops: u64,
    /// Their total time.
    pub stood_ms: f64,
    /// The longest.
    pub longest_stop_ms: f64,
}

impl CollectorWork {
    /// Adds another life of the collector, and the program's stops in it.
    pub(crate) fn add(&mut self, did: &Background, stops: &Stops) {
        let cpu_ns: u64 = did.collected.cpu_ns.iter().sum();
        self.collections += did.collections;
        self.cycles += did.collected.cycles;
        self.moved_objects += did.collected.planned;
        self.moved_bytes += did.collected.planned_bytes;
        self.released_bytes += did.released_bytes;
        self.cpu_ms += ms(cpu_ns);
        self.stops += stops.count;
        self.stood_ms += ms(stops.total_ns);
        self.longest_stop_ms = self.longest_stop_ms.max(ms(stops.longest_ns));
    }
}
