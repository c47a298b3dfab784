//! Reading a log that was left by a crash.

use std::collections::HashMap;
use std::io;

use firn_format::FormatError;
use firn_format::log::{
    BLOCK_BYTES, Block, HEAD_BLOCKS, HEAD_BYTES, Head, Record, block_offset, head_offset,
    next_record,
};

use crate::LogError;

/// Reads the log's file.
pub trait ReadLog {
    /// Fills `into` from byte `at` on; what lies behind the file's end stays as it is. Returns how much it read.
    ///
    /// Errors: what the system says.
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl<F: FnMut(u64, &mut [u8]) -> io::Result<usize>> ReadLog for F {
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self(at, into)
    }
}

/// The records that survived.
#[derive(Debug)]
pub struct Found {
    /// Records in their order.
    pub records: Vec<Record>,
    /// Number of the block behind the last one that counts.
    pub end: u64,
}

/// The head that counts.
///
/// Errors: neither is sound.
pub fn newest_head(file: &mut impl ReadLog) -> Result<Head, LogError> {
    let mut refused = FormatError::NotAPool;
    let mut newest: Option<Head> = None;
    for copy in 0..HEAD_BLOCKS {
        let (at, mut bytes) = (head_offset(copy), [0; HEAD_BYTES]);
        file.read(at, &mut bytes)?;
        match Head::decode(&bytes, at) {
            Ok(head) if newest.is_none_or(|other| other.generation < head.generation) => {
                newest = Some(head);
            }
            Ok(_) => {}
            Err(error) => refused = error,
        }
    }
    newest.ok_or(LogError::Head(refused))
}

/// Reads the records from `head`'s tail to the first block that is missing (L2, L3): a prefix of what was appended, with
/// all that was durable.
///
/// Concurrency: a program may write to the log meanwhile. As long as it writes no other head, the result is a prefix with
/// all that was durable at the beginning.
///
/// Errors: a block is missing of which a later one says that it was durable; the file ends within a segment; a write is no
/// sequence of records.
pub fn scan(file: &mut impl ReadLog, head: &Head, file_bytes: u64) -> Result<Found, LogError> {
    // Before anything else is read: what is durable by now will be found, whatever is written meanwhile.
    let durable = durable(file, head, file_bytes)?;
    let slots = Slots::read(file, head, file_bytes)?;
    if slots.is_cut(head, file_bytes) {
        return Err(LogError::Cut { bytes: file_bytes });
    }
    let mut records = Vec::new();
    let (mut number, mut write, mut first) = (head.tail, Vec::new(), head.tail);
    let mut ahead = Ahead::new(file);
    let segment_blocks = u64::from(head.segment_blocks);
    while let Some(block) = slots.block(&mut ahead, head, number)? {
        if block.begins {
            let at = slots.place(segment_blocks, first);
            take_records(&write, (first, at), true, &mut records)?;
            (write, first) = (Vec::new(), number);
        } else if number == head.tail {
            // A tail is where a write begins.
            let at = slots.place(segment_blocks, number);
            return Err(LogError::Damaged { number, at });
        }
        write.extend_from_slice(block.payload);
        number += 1;
    }
    take_records(&write, (first, None), false, &mut records)?;
    // Another block says that more was durable than was found.
    if durable > number {
        let at = match slots.place(segment_blocks, number) {
            None => place_by_others(file, head, file_bytes, number)?,
            known => known,
        };
        return Err(LogError::Damaged { number, at });
    }
    Ok(Found {
        records,
        end: number,
    })
}

/// Takes the records of a write. Of one that is not whole, those that are.
fn take_records(
    write: &[u8],
    (number, at): (u64, Option<u64>),
    whole: bool,
    records: &mut Vec<Record>,
) -> Result<(), LogError> {
    let mut rest = write;
    records.extend(core::iter::from_fn(|| next_record(&mut rest)));
    match whole && !rest.is_empty() {
        true => Err(LogError::NoRecords { number, at }),
        false => Ok(()),
    }
}

/// Number of a block before which all were durable, as the blocks of the file say.
fn durable(file: &mut impl ReadLog, head: &Head, file_bytes: u64) -> io::Result<u64> {
    let mut durable = head.tail;
    each_block(file, file_bytes, |_, bytes| {
        if let Some(block) = of_log(bytes, head) {
            durable = durable.max(block.durable);
        }
    })?;
    Ok(durable)
}

/// Where a block belongs whose segment begins with a block that is not whole: others of the segment tell.
fn place_by_others(
    file: &mut impl ReadLog,
    head: &Head,
    file_bytes: u64,
    number: u64,
) -> io::Result<Option<u64>> {
    let segment_blocks = u64::from(head.segment_blocks);
    let mut place = None;
    each_block(file, file_bytes, |at, bytes| {
        let block = of_log(bytes, head);
        if let Some(block) = block.filter(|b| b.number / segment_blocks == number / segment_blocks)
        {
            let first = at.checked_sub(block.number % segment_blocks * BLOCK_BYTES);
            place = first.map(|first| first + number % segment_blocks * BLOCK_BYTES);
        }
    })?;
    Ok(place)
}

/// Shows each block of the slots, with its first byte in the file.
pub(crate) fn each_block(
    file: &mut impl ReadLog,
    file_bytes: u64,
    mut show: impl FnMut(u64, &[u8; BLOCK_BYTES as usize]),
) -> io::Result<()> {
    let mut ahead = Ahead::new(file);
    let mut at = block_offset(1, 0, 0);
    while at + BLOCK_BYTES <= file_bytes {
        if let Some(bytes) = ahead.block(at)? {
            show(at, bytes);
        }
        at += BLOCK_BYTES;
    }
    Ok(())
}

/// The block in these bytes, if it is whole and was written since the log's last recovery.
pub(crate) fn of_log<'b>(bytes: &'b [u8; BLOCK_BYTES as usize], head: &Head) -> Option<Block<'b>> {
    Block::decode(bytes).filter(|block| block.salt == head.salt)
}

/// Which slot holds which segment.
struct Slots(HashMap<u64, u64>);

impl Slots {
    /// By the first block of each slot. A slot whose first block is not whole holds no segment: whatever else it
    /// holds lies behind a block that is missing.
    fn read(file: &mut impl ReadLog, head: &Head, file_bytes: u64) -> io::Result<Self> {
        let mut slots = HashMap::new();
        let mut bytes = [0; BLOCK_BYTES as usize];
        let segment_blocks = u64::from(head.segment_blocks);
        for slot in 0.. {
            let at = block_offset(segment_blocks, slot, 0);
            if at + BLOCK_BYTES > file_bytes {
                break;
            }
            if let Some(block) = read_block(file, head, at, &mut bytes)?
                && block.number.is_multiple_of(segment_blocks)
            {
                slots.insert(block.number / segment_blocks, slot);
            }
        }
        Ok(Self(slots))
    }

    /// Whether the file ends within a slot that is in use. A slot that is being added is not (L8).
    fn is_cut(&self, head: &Head, file_bytes: u64) -> bool {
        let segment_blocks = u64::from(head.segment_blocks);
        let oldest = head.tail / segment_blocks;
        let ends_late = |slot| block_offset(segment_blocks, slot + 1, 0) > file_bytes;
        let mut of_use = self.0.iter().filter(|&(&segment, _)| segment >= oldest);
        of_use.any(|(_, &slot)| ends_late(slot))
    }

    /// Where a block lies in the file.
    fn place(&self, segment_blocks: u64, number: u64) -> Option<u64> {
        let slot = self.0.get(&(number / segment_blocks))?;
        Some(block_offset(segment_blocks, *slot, number))
    }

    fn block<'b, F: ReadLog>(
        &self,
        file: &'b mut Ahead<'_, F>,
        head: &Head,
        number: u64,
    ) -> io::Result<Option<Block<'b>>> {
        let Some(at) = self.place(head.segment_blocks.into(), number) else {
            return Ok(None);
        };
        let block = file.block(at)?.and_then(|bytes| of_log(bytes, head));
        Ok(block.filter(|block| block.number == number))
    }
}

/// Blocks that are read with one call.
const BLOCKS_AHEAD: usize = 16;

/// Reads blocks one by one, and the file in larger pieces. A block is as old as the piece that it came with, so whoever
/// relies on an order of readings begins each with an `Ahead` of its own.
struct Ahead<'f, F> {
    file: &'f mut F,
    at: u64,
    /// Blocks that were read as a whole, from byte `at` of the file on.
    count: usize,
    blocks: Box<[[u8; BLOCK_BYTES as usize]; BLOCKS_AHEAD]>,
}

impl<'f, F: ReadLog> Ahead<'f, F> {
    fn new(file: &'f mut F) -> Self {
        Self {
            file,
            at: 0,
            count: 0,
            blocks: Box::new([[0; BLOCK_BYTES as usize]; BLOCKS_AHEAD]),
        }
    }

    /// The block at byte `at`, or none if the file ends before its end.
    fn block(&mut self, at: u64) -> io::Result<Option<&[u8; BLOCK_BYTES as usize]>> {
        let read = self.at..self.at + self.count as u64 * BLOCK_BYTES;
        if !read.contains(&at) {
            let bytes = self.file.read(at, self.blocks.as_flattened_mut())?;
            (self.at, self.count) = (at, bytes / BLOCK_BYTES as usize);
        }
        let index = ((at - self.at) / BLOCK_BYTES) as usize;
        Ok(self.blocks[..self.count].get(index))
    }
}

/// The block with this salt at byte `at`, if it is whole.
fn read_block<'b>(
    file: &mut impl ReadLog,
    head: &Head,
    at: u64,
    bytes: &'b mut [u8; BLOCK_BYTES as usize],
) -> io::Result<Option<Block<'b>>> {
    if file.read(at, bytes)? < bytes.len() {
        return Ok(None);
    }
    Ok(of_log(bytes, head))
}
