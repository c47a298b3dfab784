//! Energy of a device, computed from its counts, if its description gives energies.

use firn_units::LINE_BYTES;

use crate::description;
use crate::device::DeviceCounts;

const LINE_BITS: f64 = (LINE_BYTES * 8) as f64;
/// Femtojoules in a nanojoule.
const NANOJOULE: f64 = 1e6;

/// Energy of a device's accesses, in nanojoules.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Energy {
    /// Reads.
    pub read_nj: f64,
    /// Writes.
    pub write_nj: f64,
}

impl Energy {
    /// The energy of a device with these counts; `None` if its description gives no energies.
    ///
    /// Source: the model of Lee, Ipek, Mutlu and Burger (ISCA 2009), with the numbers of HOOP's Table II. Every line
    /// passes the row buffer. A read that misses the open row, and every read of a device without rows, also reads the
    /// array. Every written line reaches the array. This is our reading: the model does not know which lines of a row
    /// changed twice before the row was closed.
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

    /// The sum of both.
    pub fn total_nj(&self) -> f64 {
        self.read_nj + self.write_nj
    }
}
