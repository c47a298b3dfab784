//! What a collection is to do, and how.

use core::time::Duration;

use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use crate::alloc::GROUP_FRAMES;
use crate::inner::STOP_LIMIT_NS;
use crate::relocation::scheme::{PIGGYBACK, Scheme};

/// Objects of a cycle at most.
const MAX_UNITS: u64 = 1 << 18;
/// Bytes of source pages that one cycle empties, unless told otherwise.
const DEFAULT_SOURCE_BYTES: u64 = 256 << 20;

/// How a collection works.
#[derive(Clone, Copy, Debug)]
pub struct CollectOptions {
    /// Ratio of page bytes to live bytes at which it is content; at least 1. In a pool with a limit, and on a device
    /// that has refused blocks, it goes on below that until what pages waste is a sixteenth of what is left.
    pub target: f64,
    /// Which pages count.
    pub pages: PageSize,
    /// Whether all that can move does, in one cycle as far as `max_source_bytes` goes, whatever that wins: to
    /// find programs that hold what they should not.
    pub everything: bool,
    /// How a copy comes to count.
    pub scheme: &'static Scheme,
    /// How marking is done.
    pub marking: Marking,
    /// How many destinations a source page may have.
    pub forwarding: Forwarding,
    /// Bytes of source pages that one cycle empties at most; what is in flight at a crash.
    pub max_source_bytes: u64,
    /// Bytes copied a second by the collector itself; as fast as it can if `None`.
    pub bytes_per_second: Option<u64>,
    /// Whether the blocks of sources are given back while the cycle goes on, as soon as everything in
    /// them has moved. Costs two fences for every 8 MiB of sources, and a word stored for each object.
    pub release_blocks: bool,
    /// How long each moment without an open operation is waited for; 10 s by itself. Then the collection gives up.
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

    /// Frames whose blocks are given back to the device together: a hole in a huge page makes small ones of
    /// it, and wins nothing where it is huge ones that count.
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
    /// One, as FFCCD prints it (section 4.3.1): what does not fit whole starts a new page.
    OneDestination,
}

/// What a plan aims at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) pages: PageSize,
    pub(super) everything: bool,
    /// Whether no more pages of 2 MiB may hold objects afterwards, whichever pages count.
    pub(super) spares_pages: bool,
    pub(super) target: f64,
    pub(super) forwarding: Forwarding,
    /// Bytes of source pages at most.
    pub(super) max_source_bytes: u64,
    /// Objects at most.
    pub(super) max_units: u64,
}
