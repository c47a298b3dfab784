//! Reclaiming: slots whose objects are unreachable become free, while the program runs.
//!
//! Unmarked objects were in use when marking began and unreachable then, so they still are. A slot that came into use
//! since was noted as taken before it stopped being free. So a slot that is not free, not marked and not taken is
//! garbage, whatever sessions do meanwhile.

use std::sync::atomic::Ordering;

use firn_format::frame::FrameUse;
use firn_format::geometry::BITMAP_WORDS;
use firn_format::header::ObjectHeader;
use firn_format::statistics::{Counter, WORDS};
use firn_media::{Medium, MediumExt};
use firn_units::FRAME_BYTES;

use super::mark::Reached;
use super::recount::recount;
use crate::alloc::{Footprint, Run};
use crate::error::Error;
use crate::object::requested_bytes;
use crate::stat_shard;
use crate::steps;
use crate::walk::data_chunks;

/// The reclaimed objects, by counter.
struct Garbage {
    objects: u64,
    sums: Box<[i64; WORDS]>,
}

impl<M: Medium> Reached<'_, M> {
    /// Reclaims the unmarked objects. Returns how many.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn reclaim(&self) -> Result<u64, Error> {
        let medium = &self.inner.medium;
        self.inner.allocator.look_at_all(medium)?;
        let mut garbage = Garbage {
            objects: 0,
            sums: Box::new([0; WORDS]),
        };
        for chunk in data_chunks(medium.len()) {
            for run in self.inner.allocator.runs_of(medium, chunk)? {
                self.reclaim_run(&run, &mut garbage)?;
            }
        }
        match &self.counters {
            None => stat_shard::add(medium, &garbage.sums),
            Some(counters) => {
                recount(self.inner, &self.trace.sums, counters)?;
                self.inner
                    .allocator
                    .space()
                    .lock(medium)
                    .set_emergency(false);
            }
        }
        self.inner.exact.store(true, Ordering::Release);
        Ok(garbage.objects)
    }

    fn reclaim_run(&self, run: &Run, garbage: &mut Garbage) -> Result<(), Error> {
        let medium = &self.inner.medium;
        if self.inner.allocator.is_closed(medium, run.frame)? {
            // The source of a cycle that a crash interrupted: the live objects are at their destinations.
            return Ok(());
        }
        let used = self.inner.allocator.used_slots(medium, run);
        let marks = self.trace.marks.of(run.frame);
        let dead: [u64; BITMAP_WORDS as usize] = core::array::from_fn(|word| {
            let mut dead = used[word] & !marks[word];
            if medium.keeps(&steps::NEW_LIVE) {
                dead &= !self.taken.of(run.frame, word as u64);
            }
            dead
        });
        let count: u64 = dead.iter().map(|w| u64::from(w.count_ones())).sum();
        if count == 0 {
            return Ok(());
        }
        if self.counters.is_none() {
            self.count_garbage(run, &dead, garbage);
        }
        garbage.objects += count;
        let stamp = self.inner.redo.counter();
        let Footprint { frames, chunks } = self
            .inner
            .allocator
            .reclaim_slots(medium, run, dead, stamp)?;
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
                let header = ObjectHeader(self.inner.medium.load_u64(at));
                let bytes = requested_bytes(header, slot_bytes).unwrap_or(0) as i64;
                let what = (header.type_id(), class_index);
                stat_shard::count(&mut garbage.sums, what, (-1, -bytes));
            }
        }
    }
}
