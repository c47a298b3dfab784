//! The log beside a pool on an ordinary disk: the bytes of the file `NAME.firn-log`.
//!
//! ```text
//! block 0, 1    two heads, written in turns
//! block 2..     slots of `segment_blocks` blocks, each holding one segment of the log
//! ```
//!
//! Blocks of the log are numbered from zero on, and never get a number twice while the pool is open; each opening has a salt of its own. The blocks of
//! one segment follow one another in a slot; segments lie in any order. The first block in a slot tells
//! which segment it is.
//!
//! The log is a sequence of writes. Each write begins with a block of its own and consists of whole records,
//! so no block that was acknowledged is ever written again. A record may reach over several blocks of its write.

mod block;
mod head;
mod record;

pub use block::{BLOCK_BYTES, Block, BlockHeader, PAYLOAD_BYTES};
pub use head::{HEAD_BYTES, Head};
pub use record::{LineWords, Record, RecordWriter, next_record};

/// Blocks of a segment, where nobody asks for another length.
pub const SEGMENT_BLOCKS: u32 = 256;
/// Blocks of the heads, in front of the first slot.
pub const HEAD_BLOCKS: u64 = 2;

/// Where the block with this number lies in the log's file, in bytes, if its segment lies in `slot`.
pub const fn block_offset(segment_blocks: u64, slot: u64, number: u64) -> u64 {
    (HEAD_BLOCKS + slot * segment_blocks + number % segment_blocks) * BLOCK_BYTES
}

/// Where a head lies in the log's file: the one with an even generation first.
pub const fn head_offset(generation: u64) -> u64 {
    generation % HEAD_BLOCKS * BLOCK_BYTES
}
