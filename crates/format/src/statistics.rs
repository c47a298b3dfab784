//! The statistics page: counters that a running program keeps where others can read them.
//!
//! A base block holds the sums up to the last open or trace; each lane adds its own changes to a
//! block of its own by plain stores, so nothing is contended. Readers add all blocks up. Counters
//! are signed differences in two's complement. They are exact after a clean close and after a
//! trace; after a crash they may lag until the next.

use firn_units::VirtAddr;

use crate::class::CLASSES;
use crate::geometry::{STATISTICS, STATISTICS_BLOCK_BYTES};
use crate::lane::LANES;

/// Types whose objects are counted one by one; later ones share the last counter.
pub const COUNTED_TYPES: usize = 120;

/// What a word of a block counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Objects.
    Objects,
    /// Bytes of objects as the program requested them, headers excluded.
    LiveBytes,
    /// Frames that hold a live object.
    LiveFrames,
    /// Chunks that hold a live object.
    LiveChunks,
    /// Committed transactions.
    Commits,
    /// Aborted transactions.
    Aborts,
    /// Operations that had to wait for a phase change.
    Stops,
    /// Requests for a phase change that were withdrawn because a guard stayed open.
    Starved,
    /// Objects of a slot class; the last index counts large objects.
    ClassObjects(usize),
    /// Objects of a type.
    TypeObjects(usize),
    /// Requested bytes of a type.
    TypeBytes(usize),
}

const FIRST_CLASS: usize = 64;
const FIRST_TYPE: usize = FIRST_CLASS + CLASSES + 1;
/// Words of a block that are in use.
pub const WORDS: usize = FIRST_TYPE + 2 * COUNTED_TYPES;

const _: () = assert!(WORDS * 8 <= STATISTICS_BLOCK_BYTES as usize);
const _: () =
    assert!(STATISTICS.0 + (LANES as u64 + 1) * STATISTICS_BLOCK_BYTES <= firn_units::CHUNK_BYTES);

impl Counter {
    /// Index of the counter's word in a block.
    #[inline]
    pub const fn word(self) -> usize {
        match self {
            Counter::Objects => 0,
            Counter::LiveBytes => 1,
            Counter::LiveFrames => 2,
            Counter::LiveChunks => 3,
            Counter::Commits => 4,
            Counter::Aborts => 5,
            Counter::Stops => 6,
            Counter::Starved => 7,
            Counter::ClassObjects(class) => FIRST_CLASS + class,
            Counter::TypeObjects(t) => {
                FIRST_TYPE
                    + 2 * if t < COUNTED_TYPES {
                        t
                    } else {
                        COUNTED_TYPES - 1
                    }
            }
            Counter::TypeBytes(t) => Counter::TypeObjects(t).word() + 1,
        }
    }
}

/// Where a block starts; block 0 is the base, block 1 + n belongs to lane n.
#[inline]
pub const fn block_at(block: usize) -> VirtAddr {
    VirtAddr(STATISTICS.0 + block as u64 * STATISTICS_BLOCK_BYTES)
}

/// Number of blocks.
pub const BLOCKS: usize = LANES + 1;
