//! Energy of a device, computed from what it counted, where its description has numbers for it.

use firn_units::LINE_BYTES;

use crate::description;
use crate::device::DeviceCounts;

const LINE_BITS: f64 = (LINE_BYTES * 8) as f64;
/// Femtojoules of a nanojoule.
const NANOJOULE: f64 = 1e6;

/// What a device's accesses took, in nanojoules.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Energy {
    /// Reads.
    pub read_nj: f64,
    /// Writes.
    pub write_nj: f64,
}

impl Energy {
    /// Of what a device counted; nothing if nobody says what its accesses take.
    ///
    /// Source: the model of Lee, Ipek, Mutlu and Burger (ISCA 2009), which HOOP's Table II has the numbers of. Every
    /// line passes the row buffer. A read of another row than the open one, and every read of a device without rows,
    /// is one of the array as well. Every line that is written reaches the array: our reading, as the model does not
    /// know which lines of a row changed twice before it was closed.
    pub fn of(device: &description::Device, counts: &DeviceCounts) -> Option<Self> {
        let energy = device.energy.as_ref()?;
        let nanojoules = |lines: u64, femtojoules_per_bit: u32| {
            lines as f64 * LINE_BITS * f64::from(femtojoules_per_bit) / NANOJOULE
        };
        Some(Self {
            read_nj: nanojoules(counts.reads, energy.buffer_read)
                + nanojoules(counts.array_reads, energy.array_read),
            write_nj: nanojoules(counts.writes, energy.buffer_write)
                + nanojoules(counts.writes, energy.array_write),
        })
    }

    /// Both together.
    pub fn total_nj(&self) -> f64 {
        self.read_nj + self.write_nj
    }
}
