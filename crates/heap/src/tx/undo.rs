//! The log of undo transactions: for programs that store in place.
//!
//! The old contents and a checksum go to the lane, one fence makes them durable, then the program may store. At commit
//! the program's stores are made durable, then the lane's `done` word moves past the transaction, which invalidates its
//! log: three fences with one batch of ranges. The undoing of allocation bits is logged in the batch after the
//! allocation, or in a batch of its own at commit.
//!
//! A log that outgrows its lane continues in frames: the last entry before the end says where.

use firn_format::lane::{
    ENTRY_HEADER_WORDS, EntryHeader, MAX_RECORD_BYTES, Record, UNDO_BYTES, lane_at, undo_done_at,
};
use firn_format::sealed::{MAX_VALUE, Seal};
use firn_media::{Medium, MediumExt};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

use super::bits;
use super::overflow::take_overflow;
use super::redo::Ring;
use crate::alloc::Reach;
use crate::error::Error;
use crate::inner::Inner;
use crate::steps;
use crate::tx::changes::Change;
use crate::tx::entry::{load_header, load_payload, store_long};
use crate::tx::records::{HEADROOM, apply};
use firn_format::geometry::FrameRun;

/// Marks an undo batch's second word, so that it is never taken for a redo entry's W.
pub(crate) const UNDO_MARK: u64 = 1 << 63;
/// Marks the entry that says where the log continues: its payload is an address and a number of bytes.
const CONTINUES: u64 = 1 << 62;
/// Bytes of that entry; room for it is always kept.
const CONTINUES_BYTES: u64 = (ENTRY_HEADER_WORDS as u64 + 2) * 8;
/// Words that one record holds.
const RECORD_WORDS: usize = 1 << 12;
/// The most bytes in one record of bytes, counting those of its first word in front of the range.
const RECORD_BYTES: u64 = 1 << 12;
const _: () = assert!(RECORD_BYTES <= MAX_RECORD_BYTES);
/// Frames of the first place where a log continues; each later place has twice as many, up to a limit.
const FIRST_FRAMES: u64 = 16;
const MOST_FRAMES: u64 = 512;

/// The log of an open undo transaction.
#[derive(Default)]
pub(crate) struct Log {
    number: u64,
    batches: u64,
    /// Where the next batch goes, and where its room ends.
    at: VirtAddr,
    end: VirtAddr,
    /// All records, oldest first; those from `appended` on are not in the log yet.
    records: Vec<u64>,
    appended: usize,
    /// Frames that hold a part of the log.
    frames: Vec<FrameRun>,
}

impl Log {
    /// Begins the lane's next transaction.
    ///
    /// Errors: the lane's mark is damaged.
    pub(super) fn begin<M: Medium>(&mut self, medium: &M, lane: usize) -> Result<(), Error> {
        self.number = next_number(medium, lane)?;
        self.at = lane_at(lane);
        self.end = lane_at(lane) + UNDO_BYTES;
        Ok(())
    }

    /// Forgets everything, and keeps the memory. The frames were given back.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.appended = 0;
        self.batches = 0;
    }

    /// Whether anything was logged.
    pub(super) fn is_used(&self) -> bool {
        self.batches > 0
    }

    /// Whether there are records that are not in the log yet.
    pub(super) fn has_news(&self) -> bool {
        self.appended < self.records.len()
    }

    /// Records the current bytes from `start` to `end`.
    #[inline]
    pub(super) fn save<M: Medium>(&mut self, medium: &M, start: u64, end: u64) {
        if (start | end).is_multiple_of(WORD_BYTES) {
            self.save_words(medium, start, end);
        } else {
            self.save_bytes(medium, start, end);
        }
    }

    fn save_words<M: Medium>(&mut self, medium: &M, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let count = (((end - at) / WORD_BYTES) as usize).min(RECORD_WORDS);
            let words = Record::push_zeros(&mut self.records, VirtAddr(at), count);
            medium.load_bytes(VirtAddr(at), bytemuck::cast_slice_mut(words));
            at += count as u64 * WORD_BYTES;
        }
    }

    /// Other threads may store to the rest of the first and last word meanwhile: the loaded rest is never used.
    fn save_bytes<M: Medium>(&mut self, medium: &M, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let word = at & !(WORD_BYTES - 1);
            let until = end.min(word + RECORD_BYTES);
            let words = Record::push_bytes(&mut self.records, VirtAddr(at), until - at);
            medium.load_bytes(VirtAddr(word), bytemuck::cast_slice_mut(words));
            at = until;
        }
    }

    /// Records that undoing sets the bits of these objects again, or clears them.
    pub(super) fn save_bits(&mut self, changes: &[Change], set: bool) {
        bits::push(&mut self.records, changes, set);
    }

    /// Forgets the records that are not in the log yet.
    pub(super) fn forget_news(&mut self) {
        self.records.truncate(self.appended);
    }

    /// Appends the records that are not in the log yet as a batch, and makes it durable: one fence, and another where
    /// the log continues elsewhere. If it fails, they are forgotten.
    ///
    /// Errors: the pool is full.
    pub(super) fn append<M: Medium>(&mut self, inner: &Inner<M>) -> Result<(), Error> {
        let appended = self.try_append(inner);
        match appended {
            Ok(()) => self.appended = self.records.len(),
            Err(_) => self.forget_news(),
        }
        appended
    }

    fn try_append<M: Medium>(&mut self, inner: &Inner<M>) -> Result<(), Error> {
        let payload = self.records.len() - self.appended;
        // The redo log is empty in a pool that was opened with an undo log.
        let overflow = take_overflow(inner, &mut Ring::default(), payload)?;
        let inline = match overflow.len() {
            0 => payload,
            extents => extents * 2,
        };
        self.frames.extend(&overflow);
        let bytes = (ENTRY_HEADER_WORDS + inline) as u64 * 8;
        if self.at + bytes + CONTINUES_BYTES > self.end {
            self.continue_in(inner, bytes + CONTINUES_BYTES)?;
        }
        self.store(&inner.medium, 0, &self.records[self.appended..], &overflow);
        inner.medium.fence_for(&steps::UNDO_LOG_FENCE);
        self.at = self.at + bytes;
        self.batches += 1;
        Ok(())
    }

    fn store<M: Medium>(&self, medium: &M, mark: u64, payload: &[u64], overflow: &[FrameRun]) {
        let header = EntryHeader {
            lsn: self.number,
            watermark: self.batches | UNDO_MARK | mark,
            payload_words: payload.len() as u64,
            extents: overflow.len(),
            checksum: 0,
        };
        store_long(medium, self.at, header, payload, overflow);
    }

    /// Continues the log in frames with room for `bytes` bytes. They are durably zero before any entry leads there:
    /// otherwise leftovers of another lane's transaction with the same number would count. The entry that leads there
    /// becomes durable with the batch that follows.
    fn continue_in<M: Medium>(&mut self, inner: &Inner<M>, bytes: u64) -> Result<(), Error> {
        let medium = &inner.medium;
        let least = bytes.div_ceil(FRAME_BYTES);
        let mut frames = self.next_frames().max(least);
        let mut reach = Reach::Held;
        let run = loop {
            let durable = inner.redo.known_durable();
            match (
                inner.allocator.take_log(medium, frames, (durable, reach)),
                reach,
            ) {
                // Free space may be in pieces, which serve before the pool grows.
                (Err(Error::PoolFull { .. }), _) if frames > least => {
                    frames = (frames / 2).max(least);
                }
                (Err(Error::PoolFull { .. }), Reach::Held) => reach = Reach::Growing,
                (taken, _) => break taken?,
            }
        };
        self.frames.push(run);
        medium.zero(run.start(), run.bytes());
        medium.write_back_for(&steps::UNDO_ZEROS_WRITE_BACK, run.start(), run.bytes());
        medium.fence_for(&steps::UNDO_ZEROS_FENCE);
        self.store(medium, CONTINUES, &[run.start().0, run.bytes()], &[]);
        self.batches += 1;
        (self.at, self.end) = (run.start(), run.start() + run.bytes());
        Ok(())
    }

    /// How many frames the next place has.
    fn next_frames(&self) -> u64 {
        let doubled = self.frames.iter().map(|run| run.frames * 2).max();
        doubled.unwrap_or(0).clamp(FIRST_FRAMES, MOST_FRAMES)
    }

    /// Restores the saved contents, newest first.
    pub(super) fn restore<M: Medium>(&self, medium: &M) {
        // The records are this transaction's own.
        let _ = undo_batch(medium, &self.records[..self.appended]);
    }

    /// Invalidates its batches.
    pub(super) fn invalidate<M: Medium>(&self, medium: &M, lane: usize) {
        if self.is_used() {
            let at = undo_done_at(lane);
            medium.store_u64(at, Seal::UndoDone.seal(self.number));
            medium.persist_for(&steps::UNDO_DONE_PERSIST, at, 8);
        }
    }

    /// Gives the frames back, once its batches are invalid.
    pub(super) fn give_space_back<M: Medium>(&mut self, inner: &Inner<M>) {
        for run in self.frames.drain(..) {
            inner.allocator.give_log(&inner.medium, run);
        }
    }
}

/// The number of the lane's open transaction, or of its next one.
///
/// Errors: the lane's mark is damaged, or leaves no numbers for later transactions.
fn next_number<M: Medium>(medium: &M, lane: usize) -> Result<u64, Error> {
    let at = undo_done_at(lane);
    let done = Seal::UndoDone.open_at(medium.load_u64(at), at)?;
    match done <= MAX_VALUE - HEADROOM {
        true => Ok(done + 1),
        false => Err(Error::Damaged {
            what: "the undo mark of a lane",
            at: at.0,
        }),
    }
}

/// Restores the contents that one batch saved, newest record first.
///
/// Errors: the batch is damaged, though its checksum is right.
fn undo_batch<M: Medium>(medium: &M, payload: &[u64]) -> Result<(), Error> {
    let mut records = Vec::new();
    let mut rest = payload;
    while let Some(record) = Record::take(&mut rest) {
        records.push(record);
    }
    if !rest.is_empty() {
        return Err(Error::Damaged {
            what: "a log entry with a sound checksum",
            at: 0,
        });
    }
    let mut newest_first = records.iter().rev();
    newest_first.try_for_each(|record| apply(medium, record))
}

/// The batches of a lane's open transaction, oldest first.
///
/// Errors: an entry with a sound checksum leads nowhere.
fn batches_of<M: Medium>(medium: &M, lane: usize, number: u64) -> Result<Vec<Vec<u64>>, Error> {
    let (mut at, mut end) = (lane_at(lane), lane_at(lane) + UNDO_BYTES);
    let mut batches = Vec::new();
    let mut entries = 0;
    while at + ENTRY_HEADER_WORDS as u64 * 8 <= end {
        let header = load_header(medium, at);
        if header.lsn != number || header.watermark & !CONTINUES != entries | UNDO_MARK {
            break;
        }
        let Some(payload) = load_payload(medium, at, header) else {
            break;
        };
        entries += 1;
        if header.watermark & CONTINUES != 0 {
            (at, end) = next_place(medium, at, &payload)?;
            continue;
        }
        let inline = match header.extents {
            0 => payload.len(),
            extents => extents * 2,
        };
        at = at + (ENTRY_HEADER_WORDS + inline) as u64 * 8;
        batches.push(payload);
    }
    Ok(batches)
}

/// The place where a log continues.
fn next_place<M: Medium>(
    medium: &M,
    at: VirtAddr,
    payload: &[u64],
) -> Result<(VirtAddr, VirtAddr), Error> {
    if let &[start, bytes] = payload
        && start.is_multiple_of(FRAME_BYTES)
        && let Some(end) = start.checked_add(bytes)
        && end <= medium.len()
    {
        return Ok((VirtAddr(start), VirtAddr(end)));
    }
    Err(Error::Damaged {
        what: "where the log of a transaction goes on",
        at: at.0,
    })
}

/// Rolls every lane's open transaction back. Returns the watermark, which undo leaves alone.
pub(crate) fn roll_back_all<M: Medium>(
    medium: &M,
    watermark: u64,
    lanes: usize,
) -> Result<u64, Error> {
    let mut numbers = Vec::new();
    for lane in 0..lanes {
        let done_at = undo_done_at(lane);
        if medium.load_u64(done_at) == 0 {
            continue;
        }
        let number = next_number(medium, lane)?;
        let batches = batches_of(medium, lane, number)?;
        for batch in batches.iter().rev() {
            undo_batch(medium, batch)?;
        }
        if !batches.is_empty() {
            numbers.push((done_at, number));
        }
    }
    // The contents are durable at home before any log is invalidated.
    medium.fence_for(&steps::ROLLBACK_FENCE);
    for (done_at, number) in numbers {
        medium.store_u64(done_at, Seal::UndoDone.seal(number));
        medium.write_back_for(&steps::ROLLBACK_DONE_WRITE_BACK, done_at, 8);
    }
    Ok(watermark)
}
