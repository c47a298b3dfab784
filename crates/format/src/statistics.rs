//! The statistics page: counters that a running program keeps where other processes can read them.
//!
//! A base block holds the sums up to the last open or trace. Each lane adds its own changes to its own block by plain
//! stores, so nothing is contended. Readers add all blocks up. Counters are signed differences in two's complement.
//! They are exact after a clean close and after a trace; after a crash they may lag until the next trace or collection.

use firn_units::VirtAddr;

use crate::class::CLASSES;
use core::ops::Range;

use crate::geometry::{STATISTICS, STATISTICS_BLOCK_BYTES};
use crate::lane::LANES;

/// Types whose objects are counted individually; later types share the last counter.
pub const COUNTED_TYPES: usize = 120;

/// The counter in a word of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Objects.
    Objects,
    /// Bytes of objects as the program requested them, headers excluded.
    LiveBytes,
    /// Frames of runs that hold a live object.
    LiveFrames,
    /// Chunks in which such runs lie.
    LiveChunks,
    /// Committed transactions.
    Commits,
    /// Aborted transactions.
    Aborts,
    /// Operations that had to wait for a phase change.
    Stops,
    /// Requests for a phase change that were withdrawn because a guard stayed open.
    Starved,
    /// Cycles of the collector that have ended.
    Cycles,
    /// Objects that the collector's cycles moved, whichever thread copied them.
    MovedObjects,
    /// Bytes of these objects.
    MovedBytes,
    /// Frames of runs that cycles emptied.
    EmptiedFrames,
    /// Frames of runs that cycles filled.
    FilledFrames,
    /// Unreachable objects that were reclaimed.
    Reclaimed,
    /// Bytes of blocks that were given back to the device.
    ReleasedBytes,
    /// Nanoseconds of a step of the collector: marking, summary, compaction, finish.
    StepNs(usize),
    /// CPU time of each of these steps, in nanoseconds.
    StepCpuNs(usize),
    /// Nanoseconds for which the collector stopped the world.
    StoodNs,
    /// The longest of these stops.
    LongestStopNs,
    /// The collector's stops of at least 2^i nanoseconds and less than twice that.
    StopBucket(usize),
    /// Objects of a slot class; the last index counts large objects.
    ClassObjects(usize),
    /// Objects of a type.
    TypeObjects(usize),
    /// Requested bytes of a type.
    TypeBytes(usize),
}

/// Steps of a collection that are timed.
pub const STEPS: usize = 4;
/// Buckets of the histogram of stops.
pub const STOP_BUCKETS: usize = 36;
const FIRST_BUCKET: usize = 28;
/// First word that counts something other than objects and pages.
pub const FIRST_EVENT: usize = 4;
/// First word that counts objects again.
pub const FIRST_CLASS: usize = 64;
const _: () = assert!(FIRST_BUCKET + STOP_BUCKETS <= FIRST_CLASS);
const FIRST_TYPE: usize = FIRST_CLASS + CLASSES + 1;
/// Words of a block that are in use.
pub const WORDS: usize = FIRST_TYPE + 2 * COUNTED_TYPES;

const _: () = assert!(WORDS * 8 <= STATISTICS_BLOCK_BYTES as usize);
const _: () = assert!(ALL_BLOCKS.end <= firn_units::CHUNK_BYTES);

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
            Counter::Cycles => 8,
            Counter::MovedObjects => 9,
            Counter::MovedBytes => 10,
            Counter::EmptiedFrames => 11,
            Counter::FilledFrames => 12,
            Counter::Reclaimed => 13,
            Counter::ReleasedBytes => 14,
            Counter::StepNs(step) => 16 + step % STEPS,
            Counter::StepCpuNs(step) => 20 + step % STEPS,
            Counter::StoodNs => 24,
            Counter::LongestStopNs => 25,
            Counter::StopBucket(bucket) => {
                FIRST_BUCKET
                    + if bucket < STOP_BUCKETS {
                        bucket
                    } else {
                        STOP_BUCKETS - 1
                    }
            }
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

/// The address of a block. Block 0 is the base, block 1 + n belongs to lane n.
#[inline]
pub const fn block_at(block: usize) -> VirtAddr {
    VirtAddr(STATISTICS.0 + block as u64 * STATISTICS_BLOCK_BYTES)
}

/// Number of blocks.
pub const BLOCKS: usize = LANES + 1;

/// The block behind the others: what the log of an open pool does ([`LogFigure`]).
pub const LOG_FIGURES: Range<u64> = block_at(BLOCKS).0..block_at(BLOCKS).0 + STATISTICS_BLOCK_BYTES;

/// All blocks, that of the log included. Recovery believes none of them.
pub const ALL_BLOCKS: Range<u64> = STATISTICS.0..LOG_FIGURES.end;

/// A figure of the log beside an open pool. The log's owner stores them for other processes to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFigure {
    /// Bytes of the log's file.
    Bytes,
    /// Bytes of it that are not home: what a crash would have to bring home.
    Lag,
    /// Records that were written since the pool was opened.
    Records,
    /// Writes that they took, each to the disk or to the system.
    Writes,
    /// Bytes of these writes.
    WrittenBytes,
    /// How often the log was brought home.
    Checkpoints,
    /// Bytes that were written home.
    HomeBytes,
}

impl LogFigure {
    /// All, in the order of their words.
    pub const ALL: [Self; 7] = [
        Self::Bytes,
        Self::Lag,
        Self::Records,
        Self::Writes,
        Self::WrittenBytes,
        Self::Checkpoints,
        Self::HomeBytes,
    ];

    /// The figure's word.
    pub const fn at(self) -> VirtAddr {
        VirtAddr(LOG_FIGURES.start + self as u64 * 8)
    }
}
