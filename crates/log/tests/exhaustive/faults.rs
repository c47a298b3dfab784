//! Rules of the log that are broken on purpose, each named after its place in the crate's table.

use std::collections::BTreeMap;

use firn_format::log::{
    BLOCK_BYTES, Block, BlockHeader, HEAD_BLOCKS, Head, PAYLOAD_BYTES, Record, next_record,
};
use firn_log::{LogError, newest_head, scan};

use crate::disk::{Bytes, Contents, Id};

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// L1: a line is read before its record has its place; another thread's newer record comes between.
    StaleLine,
    /// L2: a later record takes an earlier one's place.
    Order,
    /// L2: a write is said to be durable when it was only begun.
    NotDurable,
    /// L2: recovery goes on behind a block that is missing.
    PastTheEnd,
    /// L2b: a write is taken for durable that is so by itself, while others before it are not.
    DurableAlone,
    /// L3: recovery takes a block whatever its checksum says.
    Checksum,
    /// L3: recovery takes a block for the one that belongs in its place, whatever its number is.
    Lap,
    /// L4: a write begins in the last block of the one before, which is durable and is written again.
    SharedBlock,
    /// L5: home gets what is not durable yet.
    HomeBeforeLog,
    /// L6: a head moves the tail while home is not synced.
    TailBeforeHome,
    /// L7: a segment is given out while no durable head has passed it.
    FreeBeforeHead,
    /// L8: slots count as added to the file though nothing was written there.
    UnwrittenSlots,
    /// L9: the log goes on with its old salt after a crash.
    OldSalt,
    /// A failed sync is tried again, and its success is believed.
    Poison,
}

/// Reads a log that a crash has left.
pub fn read_log(
    log: &[Id],
    contents: &Contents,
    segment: u32,
    fault: Option<Fault>,
) -> Result<(Head, Vec<Record>), LogError> {
    let mut read_block = |block: usize, into: &mut [u8]| {
        let Some(&id) = log.get(block) else {
            return 0;
        };
        let mut bytes = *contents.bytes(id);
        if block as u64 >= HEAD_BLOCKS {
            match fault {
                Some(Fault::Checksum) => sealed_as_it_is(&mut bytes),
                Some(Fault::Lap) => {
                    let first = block - (block - HEAD_BLOCKS as usize) % segment as usize;
                    let leader = contents.bytes(log[first]);
                    numbered_by_place(&mut bytes, leader, (block - first) as u64);
                }
                _ => {}
            }
        }
        into.copy_from_slice(&bytes[..into.len()]);
        into.len()
    };
    let mut read = |at: u64, into: &mut [u8]| {
        let blocks = (at / BLOCK_BYTES) as usize..;
        let parts = into.chunks_mut(BLOCK_BYTES as usize);
        Ok(blocks
            .zip(parts)
            .map(|(block, part)| read_block(block, part))
            .sum())
    };
    let head = newest_head(&mut read)?;
    if fault == Some(Fault::PastTheEnd) {
        return Ok((head, whatever_is_whole(log, contents, &head)));
    }
    let found = scan(&mut read, &head, log.len() as u64 * BLOCK_BYTES)?;
    Ok((head, found.records))
}

/// The last block of a write, with the payload of the next one's first block behind its own, and what is left of that
/// block: it is empty, and in its place because the log counts it. `None` where there is no room.
pub fn joined(last: &Bytes, first: &Bytes) -> Option<(Bytes, Bytes)> {
    let (last, first) = (Block::decode(last)?, Block::decode(first)?);
    let payload = [last.payload, first.payload].concat();
    if payload.len() > PAYLOAD_BYTES {
        return None;
    }
    let sealed = |number, begins, payload: &[u8]| {
        let mut bytes = [0; BLOCK_BYTES as usize];
        let header = BlockHeader {
            salt: first.salt,
            number,
            begins,
            durable: first.durable,
        };
        header.seal(payload, &mut bytes);
        bytes
    };
    let empty = sealed(first.number, false, &[]);
    Some((sealed(last.number, last.begins, &payload), empty))
}

/// Gives a block the checksum of what it holds.
fn sealed_as_it_is(bytes: &mut Bytes) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let header = BlockHeader {
        salt: word(8),
        number: word(16),
        begins: half(26) == 1,
        durable: word(32),
    };
    let payload = bytes[40..].get(..usize::from(half(24))).map(<[u8]>::to_vec);
    if let Some(payload) = payload {
        header.seal(&payload, bytes);
    }
}

/// Gives a block the number that belongs in its place, as the first one of its slot says.
fn numbered_by_place(bytes: &mut Bytes, leader: &Bytes, place: u64) {
    let copy = *bytes;
    if let (Some(leader), Some(read)) = (Block::decode(leader), Block::decode(&copy)) {
        let header = BlockHeader {
            salt: read.salt,
            number: leader.number + place,
            begins: read.begins,
            durable: read.durable,
        };
        header.seal(read.payload, bytes);
    }
}

/// The records of all blocks from the tail on that are whole, by their numbers.
fn whatever_is_whole(log: &[Id], contents: &Contents, head: &Head) -> Vec<Record> {
    let blocks = log.iter().skip(HEAD_BLOCKS as usize);
    let blocks = blocks.filter_map(|&id| Block::decode(contents.bytes(id)));
    let counts = |block: &Block<'_>| block.salt == head.salt && block.number >= head.tail;
    let by_number: BTreeMap<u64, Block<'_>> = blocks
        .filter(counts)
        .map(|block| (block.number, block))
        .collect();
    let mut records = Vec::new();
    let mut write = Vec::new();
    for block in by_number.values() {
        if block.begins {
            write.clear();
        }
        let known = write.len();
        write.extend_from_slice(block.payload);
        // Those that end in this block.
        let mut rest = &write[..];
        while let Some(record) = next_record(&mut rest) {
            if write.len() - rest.len() > known {
                records.push(record);
            }
        }
    }
    records
}
