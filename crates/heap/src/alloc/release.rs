//! Release: slots of objects become free, runs without objects go back.

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{Frame, FrameRun};
use firn_media::{Medium, Words};

use super::chunks::{FREE, FrameState, LIVE, STATE, base};
use super::slot::{Place, run_frames};
use super::slots::Allocator;
use crate::alloc::LOGGED_OBJECT_BYTES;
use crate::alloc::lists::KEPT_FRAMES;
use crate::error::Error;
use crate::steps;

impl<M: Medium> Allocator<M> {
    /// Frees slots: the `bits` of the bitmap word in which `place` lies. Rule A4: the freeing transaction's in-place
    /// stores are done. `stamp` is the LSN counter now.
    #[inline]
    pub(crate) fn release(
        &self,
        medium: &M,
        place: Place,
        bits: u64,
        stamp: u64,
    ) -> Result<(), Error> {
        let Some(class) = place.class else {
            return self.release_large(medium, place, stamp);
        };
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let (word, _) = place.bit();
        let index = base(place.frame) + FREE + word as usize;
        self.note_freed(class, stamp);
        chunk.words().fetch_or(index, bits);
        let state = chunk.words().load(base(place.frame) + STATE);
        if is_closed(state) {
            if state == FrameState::Source as u64 {
                self.hold(medium, place, bits);
            } else if medium.leaves_out(&steps::DESTINATIONS_WAIT) {
                let word = FrameUse::Slots(class).to_word();
                medium.store_u64(place.frame.word_at(), word);
                return self.open_filled(medium, place.frame, Some(class), stamp);
            }
            return Ok(());
        }
        if state == FrameState::Full as u64 {
            self.lists.offer(medium, &self.chunks, place.frame, class)?;
        }
        if chunk.words().load(base(place.frame) + LIVE) == 0 {
            self.leave_if_empty(medium, place.frame, class, stamp)?;
        }
        Ok(())
    }

    /// Frees the frames of an object that has a run of its own.
    fn release_large(&self, medium: &M, place: Place, stamp: u64) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let index = base(place.frame) + STATE;
        loop {
            let state = chunk.words().load(index);
            // A run of a cycle is given back when the cycle ends.
            if is_closed(state) {
                self.held.lock(medium).push(place);
                return Ok(());
            }
            // Closing a run and giving it back race on this exchange; the loser sees the winner's state.
            let leaving = FrameState::Leaving as u64;
            if chunk
                .words()
                .compare_exchange(index, state, leaving)
                .is_ok()
            {
                break;
            }
        }
        let run = FrameRun {
            frame: place.frame,
            frames: run_frames(medium, place.frame),
        };
        self.give_frames(medium, run, stamp);
        Ok(())
    }

    /// Gives a listed run of slots back if all of them are free.
    pub(super) fn leave_if_empty(
        &self,
        medium: &M,
        frame: Frame,
        class: Class,
        stamp: u64,
    ) -> Result<(), Error> {
        if self
            .lists
            .withdraw_empty(medium, &self.chunks, frame, class, KEPT_FRAMES)?
        {
            self.give_frames(
                medium,
                FrameRun {
                    frame,
                    frames: class.frames(),
                },
                stamp,
            );
        }
        Ok(())
    }

    /// The state of a large object's run was `Full`. A thread with an old place in this run must not list it while it
    /// becomes a run of slots.
    pub(super) fn leave(&self, run: FrameRun) {
        if let Some(chunk) = self.chunks.known(run.frame.chunk()) {
            let leaving = FrameState::Leaving as u64;
            chunk.words().store(base(run.frame) + STATE, leaving);
        }
    }

    /// Remembers slots that were freed in a closed run, so that the plan leaves them out.
    #[cold]
    fn hold(&self, medium: &M, place: Place, bits: u64) {
        let word = place.index / 64 * 64;
        let slots = (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| Place {
            index: word + bit,
            ..place
        });
        self.held.lock(medium).extend(slots);
    }

    /// Notes that a slot was freed, before it is offered.
    fn note_freed(&self, class: Class, stamp: u64) {
        if class.slot_bytes() <= LOGGED_OBJECT_BYTES {
            return;
        }
        let mut seen = self.freed_at.load(0);
        while seen < stamp {
            match self.freed_at.compare_exchange(0, seen, stamp) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

/// Whether an open cycle has closed a run in this state.
fn is_closed(state: u64) -> bool {
    state == FrameState::Source as u64 || state == FrameState::Destination as u64
}
