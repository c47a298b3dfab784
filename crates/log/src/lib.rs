//! The out-of-place log: updates go to a log in order, and later, coalesced, to their home.
//!
//! HOOP (section III) does this in a memory controller; here it is done for a file on an ordinary disk. This crate
//! is the protocol alone: it decides what is written where and when, and does no I/O. Whoever drives it writes
//! and syncs, and says when that is done. So the real file and the one whose power fails run the same code.
//!
//! ```text
//! append ──► staged ──► in flight ──► handed to the system ──► durable ──► home
//!                 next        written                  synced    begin_checkpoint, end_checkpoint
//! ```
//!
//! # Rules
//!
//! | rule | why |
//! |---|---|
//! | L1: a record gets its place and its content in one step ([`Log::append`]) | a later record never holds an older word |
//! | L2: one write is in flight at a time, and it takes whole records in their order | what is durable is a prefix |
//! | L2b: a write is durable by itself only if all before it are; else a sync makes them so together | a later write may arrive without an earlier one |
//! | L3: a block carries its number and the log's salt, and its checksum covers both | a block of an earlier lap or opening is none |
//! | L4: a write begins with a block of its own, and no number is used twice | acknowledged blocks are never rewritten |
//! | L5: only records that are durable go home | home never holds what the log may lose |
//! | L6: home is synced before a head moves the tail | a torn home is written again from the log |
//! | L7: a segment is free once a durable head's tail is past it | the log that counts is never overwritten |
//! | L8: heads and slots are written before they are used | a write to the log allocates nothing, so it cannot fail for want of space |
//! | L9: recovery empties the log into home and draws a new salt | nothing written after a gap ever follows it |
#![forbid(unsafe_code)]

mod blocks;
mod coalesce;
mod error;
mod examine;
mod kept;
mod log;
mod scan;
mod segments;

pub use blocks::Blocks;
pub use coalesce::{Home, Runs, coalesce};
pub use error::LogError;
pub use examine::{DamagedHead, Extent, damaged_heads, extent};
pub use log::{
    Checkpoint, LEAST_SEGMENTS, LONGEST_RECORD, Log, Next, Options, Reach, Sync, Write,
    append_lines,
};
pub use scan::{Found, ReadLog, newest_head, scan};
pub use segments::Growth;
