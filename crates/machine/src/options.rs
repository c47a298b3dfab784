//! Options of a machine.

use firn_media::Domain;

use crate::description::Description;
use crate::mechanism::{MechanismSpec, NONE, Site};
use crate::translation::PageSize;

/// Default capacity: the window of addresses up to which the pool may grow.
const DEFAULT_CAPACITY: u64 = 1 << 30;

/// Options of a [`crate::Machine`].
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The machine's description.
    pub description: Description,
    /// Additional hardware.
    pub mechanism: &'static MechanismSpec,
    /// What survives a power failure: lines that the queue accepted, or the content of the caches as well.
    pub domain: Domain,
    /// Bytes of persistent memory; a power of two, at most 128 GiB. The host needs twice the memory that the program
    /// touches.
    pub capacity: u64,
    /// Bytes that the device holds; reserving more fails with `NoSpace`.
    pub space_limit: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Page size of persistent memory.
    pub nvm_pages: PageSize,
    /// Page size of volatile memory.
    pub dram_pages: PageSize,
}

impl MachineOptions {
    /// The default options of a machine.
    pub fn of(description: Description) -> Self {
        Self {
            description,
            mechanism: &NONE,
            domain: Domain::Adr,
            capacity: DEFAULT_CAPACITY,
            space_limit: u64::MAX,
            seed: 0,
            nvm_pages: PageSize::Huge,
            dram_pages: PageSize::Huge,
        }
    }

    /// The site of its mechanism.
    pub(crate) fn site(&self) -> Site<'_> {
        Site {
            description: &self.description,
            capacity: self.capacity,
        }
    }
}
