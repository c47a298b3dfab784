//! Reclaiming: slots that hold an object which nothing reaches become free, while the program runs.
//!
//! What marking left unmarked was in use when it began and unreachable then, so it still is. A slot
//! that came into use since was noted as taken before it stopped being free; so a slot that is not
//! free, not marked and not taken is garbage, whatever sessions do meanwhile.

use std::sync::atomic::Ordering;

use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Chunk};
use firn_format::header::ObjectHeader;
use firn_format::statistics::{Counter, FIRST_CLASS, FIRST_EVENT, WORDS};
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES};

use super::mark::Marked;
use crate::alloc::{Footprint, Run};
use crate::error::Error;
use crate::object::requested_bytes;
use crate::pool::Inner;
use crate::tally::{self, type_index};

/// What was reclaimed, by counter.
struct Garbage {
    objects: u64,
    sums: Box<[i64; WORDS]>,
}

impl<M: Medium> Inner<M> {
    /// Reclaims what was not marked. Returns how many objects.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn reclaim(&self, marked: &Marked<'_, M>) -> Result<u64, Error> {
        let medium = &self.medium;
        self.allocator.look_at_all(medium)?;
        let mut garbage = Garbage {
            objects: 0,
            sums: Box::new([0; WORDS]),
        };
        for chunk in data_chunks(medium.len()) {
            for run in self.allocator.runs_of(medium, chunk)? {
                self.reclaim_run(marked, &run, &mut garbage)?;
            }
        }
        self.exact.store(true, Ordering::Release);
        match &marked.counters {
            None => tally::add(medium, &garbage.sums),
            Some(counters) => {
                self.recount(marked, counters)?;
                self.allocator.space().lock(medium).set_emergency(false);
            }
        }
        Ok(garbage.objects)
    }

    fn reclaim_run(
        &self,
        marked: &Marked<'_, M>,
        run: &Run,
        garbage: &mut Garbage,
    ) -> Result<(), Error> {
        let medium = &self.medium;
        if self.allocator.is_closed(medium, run.frame)? {
            // Emptied by a cycle that a crash interrupted: what lives is at its destination.
            return Ok(());
        }
        let used = self.allocator.used_slots(medium, run);
        let marks = marked.trace.marks.of(run.frame);
        let dead: [u64; BITMAP_WORDS as usize] = core::array::from_fn(|word| {
            used[word] & !marks[word] & !marked.taken.of(run.frame, word as u64)
        });
        let count: u64 = dead.iter().map(|w| u64::from(w.count_ones())).sum();
        if count == 0 {
            return Ok(());
        }
        if marked.counters.is_none() {
            self.count_garbage(run, &dead, garbage);
        }
        garbage.objects += count;
        let stamp = self.redo.counter();
        let Footprint { frames, chunks } =
            self.allocator.reclaim_slots(medium, run, dead, stamp)?;
        garbage.sums[Counter::LiveFrames.word()] += frames;
        garbage.sums[Counter::LiveChunks.word()] += chunks;
        Ok(())
    }

    fn count_garbage(&self, run: &Run, dead: &[u64; BITMAP_WORDS as usize], garbage: &mut Garbage) {
        let (slot_bytes, class_index) = match run.what {
            FrameUse::Slots(class) => (class.slot_bytes(), class.index()),
            what => (what.frames() * FRAME_BYTES, firn_format::class::CLASSES),
        };
        for (word, &bits) in dead.iter().enumerate() {
            for bit in (0..64).filter(|bit| bits >> bit & 1 != 0) {
                let at = run.frame.start() + (word as u64 * 64 + bit) * slot_bytes;
                let header = ObjectHeader(self.medium.load_u64(at));
                let bytes = requested_bytes(header, slot_bytes).unwrap_or(0) as i64;
                let type_index = type_index(header.type_id());
                let mut less = |counter: Counter, by: i64| garbage.sums[counter.word()] -= by;
                less(Counter::Objects, 1);
                less(Counter::LiveBytes, bytes);
                less(Counter::ClassObjects(class_index), 1);
                less(Counter::TypeObjects(type_index), 1);
                less(Counter::TypeBytes(type_index), bytes);
            }
        }
    }

    /// Makes the counters exact that a crash left behind: what marking counted, and what sessions
    /// have changed since it began.
    fn recount(&self, marked: &Marked<'_, M>, counters: &[i64; WORDS]) -> Result<(), Error> {
        let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
        for (word, change) in change.iter_mut().enumerate() {
            *change = marked.trace.sums[word] - counters[word];
        }
        change[FIRST_EVENT..FIRST_CLASS].fill(0);
        let now = tally::sums(&self.medium);
        let (frames, chunks) = self.allocator.footprint(&self.medium)?;
        for (counter, count) in [(Counter::LiveFrames, frames), (Counter::LiveChunks, chunks)] {
            change[counter.word()] = count as i64 - now[counter.word()];
        }
        tally::add(&self.medium, &change);
        Ok(())
    }
}

/// The chunks that may hold objects.
pub(crate) fn data_chunks(len: u64) -> impl Iterator<Item = Chunk> {
    (0..len / CHUNK_BYTES)
        .map(Chunk)
        .filter(|chunk| chunk.is_data())
}
