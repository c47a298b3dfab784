//! What a collection is to do, and how.

use core::time::Duration;

use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use crate::alloc::GROUP_FRAMES;
use crate::inner::STOP_LIMIT_NS;
use crate::relocation::scheme::{PIGGYBACK, Scheme};

/// The most objects of a cycle.
const MAX_UNITS: u64 = 1 << 18;
/// Bytes of source pages that one cycle empties by default.
const DEFAULT_SOURCE_BYTES: u64 = 256 << 20;

/// How a collection works.
#[derive(Clone, Copy, Debug)]
pub struct CollectOptions {
    /// Ratio of page bytes to live bytes that ends the collection; at least 1. In a pool with a limit, and on a device
    /// that has refused blocks, the collection goes on until pages waste at most a sixteenth of the remaining room.
    pub target: f64,
    /// Which pages count.
    pub pages: PageSize,
    /// Whether to move everything that can move, whatever that wins, in one cycle as far as `max_source_bytes` allows:
    /// this finds programs that hold stale pointers.
    pub everything: bool,
    /// How a copy comes to count.
    pub scheme: &'static Scheme,
    /// How marking is done.
    pub marking: Marking,
    /// How many destinations a source page may have.
    pub forwarding: Forwarding,
    /// The most bytes of source pages that one cycle empties; they are in flight at a crash.
    pub max_source_bytes: u64,
    /// Bytes per second that the collector itself copies; unlimited if `None`.
    pub bytes_per_second: Option<u64>,
    /// Whether the blocks of sources are given back during the cycle, as soon as everything in them has moved. Costs
    /// two fences for each batch of sources, and a word stored for each object.
    pub release_blocks: bool,
    /// How long the collection waits for each moment without an open operation before it gives up; 10 s by default.
    pub patience: Duration,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            target: 1.25,
            pages: PageSize::Huge,
            everything: false,
            scheme: &PIGGYBACK,
            marking: Marking::Concurrent,
            forwarding: Forwarding::Split,
            max_source_bytes: DEFAULT_SOURCE_BYTES,
            bytes_per_second: None,
            release_blocks: false,
            patience: Duration::from_nanos(STOP_LIMIT_NS),
        }
    }
}

impl CollectOptions {
    pub(super) fn goal(&self) -> Goal {
        Goal {
            pages: self.pages,
            everything: self.everything,
            spares_pages: self.pages == PageSize::Huge,
            target: self.target.max(1.0),
            forwarding: self.forwarding,
            max_source_bytes: self.max_source_bytes,
            max_units: MAX_UNITS,
        }
    }
}

/// How marking is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Marking {
    /// Beside the program, which is stopped for two moments.
    #[default]
    Concurrent,
    /// With the program stopped throughout (FFCCD section 5).
    StopTheWorld,
}

/// Which pages count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageSize {
    /// Pages of 4 KiB.
    Small,
    /// Huge pages of 2 MiB: sources are whole chunks, or nothing is won.
    #[default]
    Huge,
}

impl PageSize {
    /// Bytes of a page.
    pub const fn bytes(self) -> u64 {
        match self {
            PageSize::Small => FRAME_BYTES,
            PageSize::Huge => CHUNK_BYTES,
        }
    }

    /// Frames whose blocks are given back to the device together: a hole splits a huge page into small ones, and wins
    /// nothing where huge pages count.
    pub(crate) const fn frames_together(self) -> u64 {
        match self {
            PageSize::Small => GROUP_FRAMES,
            PageSize::Huge => FRAMES_PER_CHUNK,
        }
    }
}

/// How many destinations a source page may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Forwarding {
    /// Two: survivors from the split on start the next page.
    #[default]
    Split,
    /// One, as FFCCD prints it (section 4.3.1): a source page whose survivors do not fit whole starts a new page.
    OneDestination,
}

/// The goal of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) pages: PageSize,
    pub(super) everything: bool,
    /// Whether the plan must not increase the number of 2 MiB pages that hold objects, whichever pages count.
    pub(super) spares_pages: bool,
    pub(super) target: f64,
    pub(super) forwarding: Forwarding,
    /// The most bytes of source pages.
    pub(super) max_source_bytes: u64,
    /// The most objects.
    pub(super) max_units: u64,
}
