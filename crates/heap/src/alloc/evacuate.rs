//! The allocator's interface to the collector: runs that are emptied, and runs that are filled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Chunk, Frame};
use firn_media::{Medium, MediumExt, Words};
use firn_units::{FRAMES_PER_CHUNK, WORD_BYTES};

use super::chunks::{FREE, FrameState, LIVE, STATE, base, slot_mask};
use super::slot::{Place, run_frames};
use super::slots::Allocator;
use super::taken::TakenSlots;
use crate::alloc::footprint::Footprint;
use crate::error::Error;
use crate::steps;
use firn_format::geometry::FrameRun;

/// A run that holds objects, as of one look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) frame: Frame,
    pub(crate) what: FrameUse,
    /// Slots in use or in a session's active runs.
    pub(crate) used: u64,
}

impl Run {
    pub(crate) fn class(&self) -> Option<Class> {
        match self.what {
            FrameUse::Slots(class) => Some(class),
            _ => None,
        }
    }
}

impl<M: Medium> Allocator<M> {
    /// Takes back all active runs of sessions. The world is stopped.
    pub(crate) fn drain_all(&self, medium: &M) -> Result<(), Error> {
        for active in self.active.iter().filter_map(std::sync::OnceLock::get) {
            self.drain(medium, active)?;
        }
        Ok(())
    }

    /// From now on notes slots that sessions take into use in `taken`. The world is stopped, and no run is active.
    pub(crate) fn note_in(&self, medium: &M, taken: &Arc<TakenSlots<M>>) {
        self.takers.lock(medium).push(Arc::clone(taken));
        self.notes.store(true, Ordering::Release);
    }

    /// Stops noting in `taken`.
    pub(crate) fn stop_noting(&self, medium: &M, taken: &Arc<TakenSlots<M>>) {
        let mut takers = self.takers.lock(medium);
        takers.retain(|other| !Arc::ptr_eq(other, taken));
        self.notes.store(!takers.is_empty(), Ordering::Release);
    }

    #[inline]
    pub(super) fn note(&self, medium: &M, frame: Frame, word: u64, bits: u64) {
        if self.notes.load(Ordering::Acquire) {
            let takers = self.takers.lock(medium).clone();
            takers
                .iter()
                .for_each(|taken| taken.note(medium, frame, word, bits));
        }
    }

    /// Makes one slot free, or gives one large object's frames back.
    pub(crate) fn release_one(&self, medium: &M, place: Place, stamp: u64) {
        // The chunk's state was read when the object was located, so this cannot fail.
        let _ = self.release(medium, place, place.bit().1, stamp);
    }

    /// Every run of a chunk that holds objects. The result may lack concurrent changes by sessions.
    pub(crate) fn runs_of(&self, medium: &M, chunk: Chunk) -> Result<Vec<Run>, Error> {
        let mut runs = Vec::new();
        let state = self.chunks.get(medium, chunk)?;
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            let at = frame.word_at();
            let what = FrameUse::from_word(medium.load_u64(at), at)?;
            let slots = match what {
                FrameUse::Slots(class) => class.slots(),
                FrameUse::Large { .. } => 1,
                _ => continue,
            };
            let used = (0..slots.div_ceil(u64::from(u64::BITS)))
                .map(|word| {
                    let free = state.words().load(base(frame) + FREE + word as usize);
                    u64::from((!free & slot_mask(slots, word)).count_ones())
                })
                .sum();
            runs.push(Run { frame, what, used });
        }
        Ok(runs)
    }

    /// Gives back a listed run that holds nothing.
    pub(crate) fn give_empty(&self, medium: &M, run: &Run, stamp: u64) -> Result<(), Error> {
        let Some(class) = run.class() else {
            return Ok(());
        };
        let (lists, chunks) = (&self.lists, &self.chunks);
        if lists.withdraw_empty(medium, chunks, run.frame, class, 0)? {
            let (frame, frames) = (run.frame, class.frames());
            self.give_frames(medium, FrameRun { frame, frames }, stamp);
        }
        Ok(())
    }

    /// Lists a run that holds nothing, if it is on no list because no session has allocated from it since the pool was
    /// opened.
    pub(crate) fn list_empty(&self, medium: &M, run: &Run) -> Result<(), Error> {
        match run.class().filter(|_| run.used == 0) {
            Some(class) => self.lists.offer(medium, &self.chunks, run.frame, class),
            None => Ok(()),
        }
    }

    /// The slots of a run that are not free.
    pub(crate) fn used_slots(&self, medium: &M, run: &Run) -> [u64; BITMAP_WORDS as usize] {
        let slots = run.class().map_or(1, Class::slots);
        let used = self.used_bits(medium, run.frame);
        core::array::from_fn(|word| used[word] & slot_mask(slots, word as u64))
    }

    fn state(&self, medium: &M, frame: Frame) -> Result<u64, Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        Ok(chunk.words().load(base(frame) + STATE))
    }

    fn set_state(&self, medium: &M, frame: Frame, state: FrameState) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        chunk.words().swap(base(frame) + STATE, state as u64);
        Ok(())
    }

    /// Closes a run: nothing is allocated in it any more. False if it is active in a session, or no longer the run that
    /// it was.
    pub(crate) fn close_run(&self, medium: &M, run: &Run, stamp: u64) -> Result<bool, Error> {
        let Some(class) = run.class() else {
            let chunk = self.chunks.get(medium, run.frame.chunk())?;
            let (full, source) = (FrameState::Full as u64, FrameState::Source as u64);
            let state = base(run.frame) + STATE;
            if chunk.words().compare_exchange(state, full, source).is_err() {
                return Ok(false);
            }
            // It may have been given back before that, and be another run by now.
            let at = run.frame.word_at();
            let word = medium.load_u64(at);
            if word == run.what.to_word() {
                return Ok(true);
            }
            let class = match FrameUse::from_word(word, at)? {
                FrameUse::Slots(class) => Some(class),
                _ => None,
            };
            self.open_filled(medium, run.frame, class, stamp)?;
            return Ok(false);
        };
        self.lists.close(medium, &self.chunks, run.frame, class)
    }

    /// Whether a run is closed.
    pub(crate) fn is_closed(&self, medium: &M, frame: Frame) -> Result<bool, Error> {
        Ok(self.state(medium, frame)? == FrameState::Source as u64)
    }

    /// Opens a closed run that is not emptied after all.
    pub(crate) fn reopen_run(&self, medium: &M, run: &Run, stamp: u64) -> Result<(), Error> {
        if !self.is_closed(medium, run.frame)? {
            return Ok(());
        }
        self.open_filled(medium, run.frame, run.class(), stamp)
    }

    fn offer_if_free(&self, medium: &M, frame: Frame, class: Option<Class>) -> Result<(), Error> {
        let Some(class) = class else { return Ok(()) };
        let chunk = self.chunks.get(medium, frame.chunk())?;
        let free = |word| chunk.words().load(base(frame) + FREE + word) != 0;
        if (0..BITMAP_WORDS as usize).any(free) {
            self.lists.offer(medium, &self.chunks, frame, class)?;
        }
        Ok(())
    }

    /// Slots that were freed in closed runs, and large objects that were freed in runs of a cycle.
    pub(crate) fn take_held(&self, medium: &M) -> Vec<Place> {
        core::mem::take(&mut *self.held.lock(medium))
    }

    /// The freed slots alone, without the large objects.
    pub(crate) fn take_held_slots(&self, medium: &M) -> Vec<Place> {
        let mut held = self.held.lock(medium);
        held.extract_if(.., |place| place.class.is_some()).collect()
    }

    /// Turns frames that were taken for it into a run that the open cycle fills. Nothing else is allocated in it before
    /// [`Allocator::open_filled`]. The words must reach media before the plan counts.
    pub(crate) fn reserve_run(
        &self,
        medium: &M,
        run: FrameRun,
        what: FrameUse,
    ) -> Result<(), Error> {
        self.chunks.get_all(medium, run.frame, run.frames)?;
        self.set_state(medium, run.frame, FrameState::Destination)?;
        for (i, frame) in run.each().enumerate() {
            let word = if i == 0 {
                what.to_reserved_word()
            } else {
                FrameUse::Tail { back: i as u64 }.to_word()
            };
            medium.store_u64(frame.word_at(), word);
        }
        Ok(())
    }

    /// Marks the slots of a reserved run that will be filled, from the first one on.
    pub(crate) fn fill_run(
        &self,
        medium: &M,
        frame: Frame,
        class: Option<Class>,
        units: u64,
    ) -> Result<(), Error> {
        let slots = class.map_or(1, Class::slots);
        let chunk = self.chunks.get(medium, frame.chunk())?;
        for word in 0..BITMAP_WORDS {
            let filled = slot_mask(units, word);
            let free = match class {
                Some(_) => slot_mask(slots, word) & !filled,
                None => 0,
            };
            chunk
                .words()
                .store(base(frame) + FREE + word as usize, free);
            if self.logs_bits {
                medium.store_u64(frame.bitmap_at() + word * WORD_BYTES, filled);
            }
        }
        Ok(())
    }

    /// Notes that a run's objects count, or no longer do. Returns the change of the footprint.
    pub(crate) fn set_run_live(
        &self,
        medium: &M,
        frame: Frame,
        frames: u64,
        live: u64,
    ) -> Result<Footprint, Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        let before = chunk.words().swap(base(frame) + LIVE, live);
        if (before == 0) == (live == 0) {
            return Ok(Footprint::default());
        }
        self.count_run(medium, frame, frames, live != 0)
    }

    /// Leaves a planned slot of a reserved run free: its object was freed before the plan counted.
    pub(crate) fn unfill(&self, medium: &M, place: Place) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let (word, bit) = place.bit();
        chunk
            .words()
            .fetch_or(base(place.frame) + FREE + word as usize, bit);
        if self.logs_bits {
            let at = place.bitmap_word_at();
            medium.store_u64(at, medium.load_u64(at) & !bit);
            medium.write_back_for(&steps::LEFT_OUT_BITS_WRITE_BACK, at, WORD_BYTES);
        }
        Ok(())
    }

    /// Turns a filled run into an ordinary one.
    pub(crate) fn open_filled(
        &self,
        medium: &M,
        frame: Frame,
        class: Option<Class>,
        stamp: u64,
    ) -> Result<(), Error> {
        self.set_state(medium, frame, FrameState::Full)?;
        self.offer_if_free(medium, frame, class)?;
        if let Some(class) = class {
            self.leave_if_empty(medium, frame, class, stamp)?;
        }
        Ok(())
    }

    /// Gives back the frames of an emptied run. Their words on media already say that they are free.
    pub(crate) fn give_emptied(&self, medium: &M, frame: Frame, frames: u64, stamp: u64) {
        self.leave_emptied(frame);
        self.space()
            .lock(medium)
            .give(FrameRun { frame, frames }, stamp);
    }

    /// Ends an emptied run.
    pub(crate) fn leave_emptied(&self, frame: Frame) {
        if let Some(chunk) = self.chunks.known(frame.chunk()) {
            for word in 0..BITMAP_WORDS as usize {
                chunk.words().store(base(frame) + FREE + word, 0);
            }
            chunk
                .words()
                .store(base(frame) + STATE, FrameState::Leaving as u64);
        }
    }

    /// Frees slots whose objects are unreachable. Returns the change of the footprint.
    pub(crate) fn reclaim_slots(
        &self,
        medium: &M,
        run: &Run,
        garbage: [u64; BITMAP_WORDS as usize],
        stamp: u64,
    ) -> Result<Footprint, Error> {
        let Some(class) = run.class() else {
            let frames = run_frames(medium, run.frame);
            let footprint = self.set_run_live(medium, run.frame, frames, 0)?;
            let place = Place {
                frame: run.frame,
                index: 0,
                class: None,
            };
            self.release(medium, place, 1, stamp)?;
            return Ok(footprint);
        };
        let count: u64 = garbage.iter().map(|w| u64::from(w.count_ones())).sum();
        let place = Place {
            frame: run.frame,
            index: 0,
            class: Some(class),
        };
        let footprint = self.count_live(medium, place, -(count as i64))?;
        for (word, &bits) in garbage.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let place = Place {
                index: word as u64 * 64,
                ..place
            };
            self.release(medium, place, bits, stamp)?;
        }
        Ok(footprint)
    }

    /// Whether a chunk holds objects.
    pub(crate) fn holds_objects(&self, medium: &M, chunk: Chunk) -> Result<bool, Error> {
        Ok(self.chunks.get(medium, chunk)?.holds_objects())
    }
}
