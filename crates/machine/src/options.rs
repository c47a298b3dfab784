//! What a machine is run with.

use firn_media::Domain;

use crate::description::Description;
use crate::mechanism::{MechanismSpec, NONE, Site};
use crate::translation::PageSize;

/// Window of addresses that the pool may grow to unless told otherwise.
const DEFAULT_CAPACITY: u64 = 1 << 30;

/// Options of a [`crate::Machine`].
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// What it is made of.
    pub description: Description,
    /// The hardware that it has besides.
    pub mechanism: &'static MechanismSpec,
    /// What survives a power failure: what the queue accepted, or what the caches hold as well.
    pub domain: Domain,
    /// Bytes of persistent memory; a power of two, at most 128 GiB. The host's memory is used where it is touched,
    /// twice.
    pub capacity: u64,
    /// Bytes that the device holds; reserving more fails with `NoSpace`.
    pub space_limit: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Pages of persistent memory.
    pub nvm_pages: PageSize,
    /// Pages of volatile memory.
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

    /// Where its mechanism is built in.
    pub(crate) fn site(&self) -> Site<'_> {
        Site {
            description: &self.description,
            capacity: self.capacity,
        }
    }
}
