//! Bulk access for a trace, which replaces the allocator's knowledge, and for a close, which writes it to media.

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_media::{Medium, Words};
use firn_units::WORD_BYTES;

use super::chunks::{FREE, FrameState, LIVE, STATE, base, slot_mask};
use super::slot::run_frames;
use super::slots::Allocator;
use crate::error::Error;
use firn_format::geometry::FrameRun;

impl<M: Medium> Allocator<M> {
    /// Replaces the knowledge of one run: `used` has a bit for each slot that holds an object. For the trace, while no
    /// operation is open. Sessions' active runs keep theirs: the slots allocated there since the pool was opened are
    /// known. Returns how many slots became free.
    pub(crate) fn set_used(
        &self,
        medium: &M,
        frame: Frame,
        class: Class,
        used: &[u64],
        stamp: u64,
    ) -> Result<u64, Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        let words = chunk.words();
        if words.load(base(frame) + STATE) == FrameState::Owned as u64 {
            return Ok(0);
        }
        let (mut live, mut any_free, mut reclaimed) = (0, false, 0);
        for word in 0..BITMAP_WORDS {
            let mask = slot_mask(class.slots(), word);
            let used = used.get(word as usize).copied().unwrap_or(0) & mask;
            live += u64::from(used.count_ones());
            any_free |= used != mask;
            let before = words.swap(base(frame) + FREE + word as usize, !used & mask);
            reclaimed += u64::from((!used & mask & !before).count_ones());
        }
        self.set_live(medium, frame, live)?;
        if any_free {
            self.lists.offer(medium, &self.chunks, frame, class)?;
        }
        if live == 0 {
            self.leave_if_empty(medium, frame, class, stamp)?;
        }
        Ok(reclaimed)
    }

    /// Bits of the slots of a run that are allocated or in a session's active runs.
    pub(crate) fn used_bits(&self, medium: &M, frame: Frame) -> [u64; BITMAP_WORDS as usize] {
        match self.chunks.get(medium, frame.chunk()) {
            Ok(chunk) => core::array::from_fn(|w| !chunk.words().load(base(frame) + FREE + w)),
            Err(_) => [0; BITMAP_WORDS as usize],
        }
    }

    /// Bits of the slots of a run that are allocated or in a session's active runs, and the number of objects that
    /// committed transactions left there. `None` if this open of the pool has not used the chunk.
    pub(crate) fn known_use(&self, frame: Frame) -> Option<([u64; BITMAP_WORDS as usize], u64)> {
        let words = self.chunks.known(frame.chunk())?.words();
        let used = core::array::from_fn(|w| !words.load(base(frame) + FREE + w));
        Some((used, words.load(base(frame) + LIVE)))
    }

    /// Gives back the frames of a large object that the trace found unreachable.
    pub(crate) fn drop_large(&self, medium: &M, frame: Frame, stamp: u64) -> Result<(), Error> {
        self.set_live(medium, frame, 0)?;
        let frames = run_frames(medium, frame);
        self.give_frames(medium, FrameRun { frame, frames }, stamp);
        Ok(())
    }

    fn set_live(&self, medium: &M, frame: Frame, live: u64) -> Result<(), Error> {
        let frames = run_frames(medium, frame);
        self.set_run_live(medium, frame, frames, live).map(|_| ())
    }

    /// Writes the allocation bitmaps of every chunk that this open of the pool has touched. No operation is open, and
    /// no session holds slots.
    pub(crate) fn write_bitmaps(&self, medium: &M) -> Result<(), Error> {
        for (chunk, state) in self.chunks.all_known() {
            for i in 0..firn_units::FRAMES_PER_CHUNK {
                let frame = chunk.first_frame().plus(i);
                let at = frame.word_at();
                let slots = match FrameUse::from_word(medium.load_u64(at), at)? {
                    FrameUse::Slots(class) => class.slots(),
                    FrameUse::Large { .. } => 1,
                    _ => continue,
                };
                for word in 0..slots.div_ceil(64) {
                    let free = state.words().load(base(frame) + FREE + word as usize);
                    let used = !free & slot_mask(slots, word);
                    let at = frame.bitmap_at() + word * WORD_BYTES;
                    if medium.load_u64(at) != used {
                        medium.store_u64(at, used);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes back the tables of every chunk that this open of the pool has touched.
    pub(crate) fn write_tables(&self, medium: &M) {
        for (chunk, _) in self.chunks.all_known() {
            medium.write_back(chunk.table(), firn_format::geometry::CHUNK_TABLE_BYTES);
        }
    }
}
