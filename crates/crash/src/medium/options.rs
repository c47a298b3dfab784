//! Options of a crash medium.

use firn_hardware::lookup::Sizes;
use firn_hardware::relocate::Unit;
use firn_media::{Domain, Level, Step};

/// Default size of the window of addresses that a medium may grow to.
const DEFAULT_CAPACITY: u64 = 256 << 20;

/// Options of a [`crate::Crash`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashOptions {
    /// What survives a crash.
    pub domain: Domain,
    /// How far transactions wait for the log under [`Domain::Logged`]. Only [`Level::Sync`] waits for the disk; at the
    /// others a crash may take what has returned.
    pub level: Level,
    /// Bytes up to which the medium may grow; a power of two. Only pages that are touched cost memory.
    pub capacity: u64,
    /// Seed of everything random: [`firn_media::Runtime::random_u64`], and any schedule without a seed of its own.
    pub seed: u64,
    /// Bytes that the device holds; reserving more fails with `NoSpace`.
    pub space_limit: u64,
    /// Stores, write-backs and volatile stores that a simulated thread's store buffer holds; the
    /// oldest leaves when it is full.
    pub buffer_entries: usize,
    /// How the medium's `relocate` is built, if there is one (FFCCD, section 4.1).
    pub relocate: Option<Unit>,
    /// The sizes of the parts of the medium's `checklookup`, if there is one (FFCCD, section 4.3).
    pub lookup: Option<Sizes>,
    /// A step that the code on this medium leaves out, except while an [`crate::Explorer`] sets it up.
    pub leave_out: Option<&'static Step>,
    /// Events after which the medium is full of copies ([`firn_media::Space::is_full_of_copies`]), and again after the last
    /// were dropped. A store by another thread meanwhile is a fault. Never, if `None`.
    pub copies: Option<u64>,
    /// Lines of a transaction that is a record of the log at most ([`firn_media::Memory::most_recorded_lines`]).
    pub recorded_lines: usize,
    /// Scheduling points after which a run is abandoned as a livelock.
    pub max_steps: u64,
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self {
            domain: Domain::Adr,
            level: Level::Sync,
            capacity: DEFAULT_CAPACITY,
            seed: 0,
            space_limit: u64::MAX,
            buffer_entries: 56,
            relocate: None,
            lookup: None,
            leave_out: None,
            copies: None,
            recorded_lines: 1792,
            max_steps: 50_000_000,
        }
    }
}

impl CrashOptions {
    /// The default options under `domain`.
    pub fn with_domain(domain: Domain) -> Self {
        Self {
            domain,
            ..Self::default()
        }
    }

    /// These options with another seed.
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}
