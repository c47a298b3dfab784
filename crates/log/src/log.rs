//! The log while a pool is open: from a record's place to its home.

use std::collections::VecDeque;

use firn_format::log::{
    BLOCK_BYTES, BlockHeader, Head, PAYLOAD_BYTES, RecordWriter, SEGMENT_BLOCKS, next_record,
};
use firn_units::WORDS_PER_LINE;

use crate::blocks::Blocks;
use crate::coalesce::{Home, coalesce};
use crate::kept::Kept;
use crate::segments::{Growth, Segments};

/// How large a log may be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes that it has from the beginning.
    pub initial_bytes: u64,
    /// Bytes beyond which it does not grow.
    pub bound_bytes: u64,
}

/// The log of an open pool. One thread at a time; its owner locks it, never during I/O.
#[derive(Debug)]
pub struct Log {
    head: Head,
    segments: Segments,
    /// Records that have their place and are in no write yet.
    staged: Vec<u8>,
    /// Records that were ever appended: the newest one's number.
    appended: u64,
    /// The number of the newest record that the system was given.
    handed: u64,
    /// The number of the newest record that is durable.
    durable: u64,
    /// The number of the newest record that is home.
    home: u64,
    /// Number of the block that the next write begins with.
    next_block: u64,
    /// Number of the block before which all are durable.
    durable_block: u64,
    /// Whether a write is in flight, or the file grows.
    in_flight: bool,
    /// Whether a sync is under way.
    syncing: bool,
    /// Writes that the system was given and that are not durable, in order.
    unsynced: VecDeque<Unsynced>,
    /// Records that the system was given and that are on no way home.
    kept: Kept,
    /// Bytes of them that are durable.
    durable_bytes: usize,
    /// Whether a checkpoint is on its way home.
    in_checkpoint: bool,
    /// Memory of the last write, for the next one.
    spare: Spare,
}

/// A write that the system was given.
#[derive(Debug)]
struct Unsynced {
    /// Bytes of its records.
    bytes: usize,
    /// Number of its newest record.
    newest: u64,
    /// Number of the block behind its last one.
    end: u64,
}

/// Empty, but with memory.
#[derive(Debug, Default)]
struct Spare {
    records: Vec<u8>,
    blocks: Blocks,
    offsets: Vec<u64>,
}

/// How far a record is to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// To the system: it survives the process.
    System,
    /// To the disk: it survives a power failure.
    Disk,
}

/// Blocks of a write at most whose memory the next one uses.
const MOST_SPARE_BLOCKS: usize = 64;

/// What is to be done next for a record.
#[derive(Debug)]
pub enum Next {
    /// The record is there.
    Done,
    /// Others do what the record needs: look again when they have.
    Wait,
    /// The file needs more slots: write zeros there, sync, and say [`Log::grown`], or [`Log::stay`] where there is no
    /// space.
    Grow(Growth),
    /// Write these blocks, durably if [`Write::durable`] says so, and say [`Log::written`].
    Write(Write),
    /// Sync the file, and say [`Log::synced`].
    Sync(Sync),
    /// There is no room until a checkpoint has ended.
    Full,
}

/// Makes durable what the system was given.
#[derive(Debug)]
pub struct Sync {
    /// Number of the newest record that it makes durable.
    newest: u64,
}

/// Blocks to write, all of them, in any order.
#[derive(Debug)]
pub struct Write {
    /// Whether the write is to be durable by itself. Only if all before it are.
    pub durable: bool,
    /// The blocks' bytes.
    pub blocks: Blocks,
    /// Where each of them lies in the log's file.
    pub offsets: Vec<u64>,
    records: Vec<u8>,
    end: u64,
    newest: u64,
}

/// Durable records on their way home.
#[derive(Debug)]
pub struct Checkpoint {
    /// Records, in their order.
    pieces: VecDeque<Vec<u8>>,
    /// Number of the newest one.
    newest: u64,
    tail: u64,
}

impl Log {
    /// A log that begins, empty, in a file with slots for `options.initial_bytes`, all written (L8).
    pub fn begin(head: Head, options: Options) -> Self {
        let segment_blocks = u64::from(head.segment_blocks);
        let slots = |bytes: u64| bytes.div_ceil(segment_blocks * BLOCK_BYTES).max(1);
        let (count, most) = (slots(options.initial_bytes), slots(options.bound_bytes));
        // While one segment is written, what is home frees the other.
        let most = most.max(LEAST_SEGMENTS);
        Self {
            segments: Segments::new(segment_blocks, count, most),
            staged: Vec::new(),
            appended: 0,
            handed: 0,
            durable: 0,
            home: 0,
            next_block: head.tail,
            durable_block: head.tail,
            in_flight: false,
            syncing: false,
            unsynced: VecDeque::new(),
            kept: Kept::default(),
            durable_bytes: 0,
            in_checkpoint: false,
            spare: Spare::default(),
            head,
        }
    }

    /// Gives a record its place, behind all others, and its content: `write` appends it to the bytes (L1). Returns the
    /// record's number.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        write(&mut self.staged);
        self.appended += 1;
        self.appended
    }

    /// Number of the newest record.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Number of the newest record that the system was given; so were all before it.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// Number of the newest record that is durable; all before it are, too.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Number of the newest record that is home; all before it are, too.
    pub fn home(&self) -> u64 {
        self.home
    }

    /// Bytes of records that are in no write yet.
    pub fn staged_bytes(&self) -> usize {
        self.staged.len()
    }

    /// Bytes of the log's file.
    pub fn bytes(&self) -> u64 {
        self.segments.bytes()
    }

    /// Bytes of the log that a crash now would have to bring home.
    pub fn lag_bytes(&self) -> u64 {
        (self.next_block - self.head.tail) * BLOCK_BYTES
    }

    /// Whether more than half of what the log may hold is in use, so that a checkpoint is due. Later checkpoints coalesce more:
    /// the log grows to its bound first.
    pub fn is_half_full(&self) -> bool {
        2 * (self.next_block - self.head.tail) > self.segments.most_blocks()
    }

    /// Whether a write is in flight, or the file grows.
    pub fn is_busy(&self) -> bool {
        self.in_flight
    }

    /// What to do next so that a record comes so far (L2).
    pub fn next(&mut self, record: u64, reach: Reach) -> Next {
        match reach {
            Reach::System if self.handed >= record => Next::Done,
            Reach::Disk if self.durable >= record => Next::Done,
            Reach::Disk if self.handed >= record => self.next_sync(),
            Reach::Disk => self.next_write(self.unsynced.is_empty()),
            Reach::System => self.next_write(false),
        }
    }

    fn next_sync(&mut self) -> Next {
        // A sync that is under way may have begun before the record was written.
        if self.syncing {
            return Next::Wait;
        }
        self.syncing = true;
        Next::Sync(Sync {
            newest: self.handed,
        })
    }

    fn next_write(&mut self, durable: bool) -> Next {
        if self.in_flight || self.staged.is_empty() {
            return Next::Wait;
        }
        let wanted = (self.staged.len() as u64).div_ceil(PAYLOAD_BYTES as u64);
        let room = self.segments.room(self.next_block);
        if wanted > room
            && let Some(growth) = self.segments.growth(wanted - room)
        {
            self.in_flight = true;
            return Next::Grow(growth);
        }
        let (bytes, records) = self.that_fit(room as usize * PAYLOAD_BYTES);
        if bytes == 0 {
            return Next::Full;
        }
        let mut taken = core::mem::take(&mut self.spare.records);
        core::mem::swap(&mut taken, &mut self.staged);
        self.staged.extend_from_slice(&taken[bytes..]);
        taken.truncate(bytes);
        self.in_flight = true;
        Next::Write(self.seal(taken, records, durable))
    }

    /// Slots were written and are durable.
    pub fn grown(&mut self, growth: &Growth) {
        self.in_flight = false;
        self.segments.grown(growth);
    }

    /// There is no space for more slots: the log stays as long as it is.
    pub fn stay(&mut self) {
        self.in_flight = false;
        self.segments.stay();
    }

    /// A write is done.
    pub fn written(&mut self, mut write: Write) {
        self.in_flight = false;
        self.handed = write.newest;
        self.unsynced.push_back(Unsynced {
            bytes: write.records.len(),
            newest: write.newest,
            end: write.end,
        });
        self.kept.keep(&mut write.records);
        if write.durable {
            self.settle(write.newest);
        }
        if write.offsets.len() <= MOST_SPARE_BLOCKS {
            self.spare = Spare {
                records: write.records,
                blocks: write.blocks,
                offsets: write.offsets,
            };
        }
    }

    /// A sync is done.
    pub fn synced(&mut self, sync: Sync) {
        self.syncing = false;
        self.settle(sync.newest);
    }

    /// Everything up to a record is durable.
    fn settle(&mut self, newest: u64) {
        while let Some(write) = self.unsynced.pop_front_if(|write| write.newest <= newest) {
            self.durable = write.newest;
            self.durable_block = write.end;
            self.durable_bytes += write.bytes;
        }
    }

    /// Takes everything durable on its way home (L5). `None` where there is nothing, or a checkpoint is on its way.
    pub fn begin_checkpoint(&mut self) -> Option<Checkpoint> {
        if self.in_checkpoint || self.durable_bytes == 0 {
            return None;
        }
        self.in_checkpoint = true;
        Some(Checkpoint {
            pieces: self.kept.take(core::mem::take(&mut self.durable_bytes)),
            newest: self.durable,
            tail: self.durable_block,
        })
    }

    /// The head to be written, durably, once what the checkpoint brought home is durable there (L6).
    pub fn head_after(&self, checkpoint: &Checkpoint) -> Head {
        Head {
            generation: self.head.generation + 1,
            tail: checkpoint.tail,
            ..self.head
        }
    }

    /// The head that says to which generation of the pool the log belongs. Once it is durable, say [`Log::is_of`].
    pub fn head_of(&self, pool_generation: u64) -> Head {
        Head {
            generation: self.head.generation + 1,
            pool_generation,
            ..self.head
        }
    }

    /// A head that [`Log::head_of`] made is durable.
    pub fn is_of(&mut self, head: Head) {
        self.head = head;
    }

    /// The head is durable: the checkpoint's part of the log is free (L7).
    pub fn end_checkpoint(&mut self, checkpoint: Checkpoint) {
        self.in_checkpoint = false;
        self.home = checkpoint.newest;
        self.head = self.head_after(&checkpoint);
        self.segments.release(checkpoint.tail);
    }

    /// The bytes and the number of staged records that fit into so many bytes, from the first on.
    fn that_fit(&self, bytes: usize) -> (usize, u64) {
        let newer = self.appended - self.handed;
        if self.staged.len() <= bytes {
            return (self.staged.len(), newer);
        }
        let (mut rest, mut fit) = (&self.staged[..], (0, 0));
        while next_record(&mut rest).is_some() && self.staged.len() - rest.len() <= bytes {
            fit = (self.staged.len() - rest.len(), fit.1 + 1);
        }
        fit
    }

    /// Makes the blocks of a write (L3, L4).
    fn seal(&mut self, records: Vec<u8>, count: u64, durable: bool) -> Write {
        let mut blocks = core::mem::take(&mut self.spare.blocks);
        let mut offsets = core::mem::take(&mut self.spare.offsets);
        blocks.clear();
        offsets.clear();
        for (index, payload) in records.chunks(PAYLOAD_BYTES).enumerate() {
            let number = self.next_block + index as u64;
            let header = BlockHeader {
                salt: self.head.salt,
                number,
                begins: index == 0,
                durable: self.durable_block,
            };
            header.seal(payload, blocks.push());
            let place = self.segments.place(number);
            offsets.push(place.expect("there is room for what fits"));
        }
        self.next_block += offsets.len() as u64;
        Write {
            blocks,
            offsets,
            records,
            durable,
            end: self.next_block,
            newest: self.handed + count,
        }
    }
}

impl Checkpoint {
    /// What the checkpoint brings home: the newest content of each word, once (section III-E). Takes the records, so that
    /// they are not in memory twice.
    pub fn take_home(&mut self) -> Home {
        let records = self.pieces.drain(..).flat_map(|records| {
            let mut at = 0;
            core::iter::from_fn(move || {
                let mut rest = &records[at..];
                let record = next_record(&mut rest);
                at = records.len() - rest.len();
                record
            })
        });
        coalesce(records)
    }
}

/// Longest record of lines, in bytes: what a fence covers beyond it goes into further records. Until a fence
/// returns, persistent memory may hold any part of what it covers, so a cut between them is one that the heap expects.
pub const LONGEST_RECORD: usize = 256 << 10;

/// Segments that a log may have at least: the longest record fits into what a checkpoint frees.
pub const LEAST_SEGMENTS: u64 = 2;

const _: () = assert!(
    LONGEST_RECORD < (SEGMENT_BLOCKS as usize - 1) * PAYLOAD_BYTES,
    "a log of one segment holds any record"
);

/// Appends a record of lines, or several if one would be too long.
pub fn append_lines<'a>(
    log: &mut Log,
    lines: impl Iterator<Item = (u64, u8, [u64; WORDS_PER_LINE])> + 'a,
) -> u64 {
    let mut lines = lines.peekable();
    let mut newest = log.appended();
    while lines.peek().is_some() {
        newest = log.append(|into| {
            let mut record = RecordWriter::lines(into);
            while record.bytes() < LONGEST_RECORD
                && let Some((line, mask, words)) = lines.next()
            {
                record.line(line, mask, &words);
            }
            record.end();
        });
    }
    newest
}
