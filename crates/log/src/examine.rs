//! Looking at a log without bringing it home: what its parts are, and which of them are not whole.

use std::io;

use firn_format::FormatError;
use firn_format::log::{BLOCK_BYTES, Block, HEAD_BLOCKS, HEAD_BYTES, Head, head_offset};

use crate::scan::{each_block, of_log};
use crate::{Found, ReadLog};

/// A copy of the head that is not whole.
#[derive(Debug)]
pub struct DamagedHead {
    /// Its first byte in the file.
    pub at: u64,
    /// What is wrong with it.
    pub source: FormatError,
}

/// What a log consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Slots for segments in the file.
    pub slots: u64,
    /// Segments that hold records which are not home.
    pub segments: u64,
    /// Blocks of these records.
    pub blocks: u64,
    /// Blocks that nobody was told to be durable and that do not count: not whole, or behind one that is not. A write that
    /// a crash cut short leaves them.
    pub unfinished: u64,
}

/// The copies of the head that are not whole, though one is, the `newest`.
///
/// Errors: what the system says.
pub fn damaged_heads(file: &mut impl ReadLog, newest: &Head) -> io::Result<Vec<DamagedHead>> {
    let mut damaged = Vec::new();
    for copy in 0..HEAD_BLOCKS {
        let (at, mut bytes) = (head_offset(copy), [0; HEAD_BYTES]);
        file.read(at, &mut bytes)?;
        // The second head is the first one to be written, and the other one stays empty until there is another.
        let is_to_come = newest.generation == 1 && bytes.iter().all(|&byte| byte == 0);
        match Head::decode(&bytes, at) {
            Err(source) if !is_to_come => damaged.push(DamagedHead { at, source }),
            _ => {}
        }
    }
    Ok(damaged)
}

/// What the log consists of whose records were `found`.
///
/// Errors: what the system says.
pub fn extent(
    file: &mut impl ReadLog,
    head: &Head,
    found: &Found,
    file_bytes: u64,
) -> io::Result<Extent> {
    let segment_blocks = u64::from(head.segment_blocks);
    let mut unfinished = 0;
    each_block(file, file_bytes, |_, bytes| {
        let counts = match of_log(bytes, head) {
            Some(block) => block.number >= found.end,
            None => Block::decode(bytes).is_none() && bytes.iter().any(|&b| b != 0),
        };
        unfinished += u64::from(counts);
    })?;
    let blocks = found.end - head.tail;
    let segments = match blocks {
        0 => 0,
        _ => (found.end - 1) / segment_blocks - head.tail / segment_blocks + 1,
    };
    Ok(Extent {
        slots: (file_bytes / BLOCK_BYTES).saturating_sub(HEAD_BLOCKS) / segment_blocks,
        segments,
        blocks,
        unfinished,
    })
}
