//! Allocation: slots from a session's active runs, from lists, from fresh runs; large objects from frames.

use firn_format::class::{Class, MAX_SLOT_BYTES};
use firn_format::frame::{FrameUse, MAX_FRAMES};
use firn_format::geometry::{BITMAP_WORDS, Frame, FrameRun};
use firn_format::header::HEADER_BYTES;
use firn_media::{Medium, Words};
use firn_units::FRAME_BYTES;

use super::cache::Cache;
use super::chunks::{FREE, FrameState, LIVE, OWNER, STATE, base, slot_mask};
use super::frames::Reach;
use super::reserve::Purpose;
use super::slot::{Place, Slot};
use super::slots::Allocator;
use crate::error::Error;

/// Largest object, header included, in bytes: the space between two regions' tables.
const MAX_OBJECT_BYTES: u64 = {
    use firn_format::geometry::{REGION_CHUNKS, TABLE_CHUNKS};
    (REGION_CHUNKS - 2 * TABLE_CHUNKS) * firn_units::CHUNK_BYTES
};
const _: () = assert!(MAX_OBJECT_BYTES / FRAME_BYTES <= MAX_FRAMES);
const _: () = assert!(MAX_SLOT_BYTES < MAX_OBJECT_BYTES);

/// The LSN for which an allocation asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Homes {
    /// The next LSN.
    Counter,
    /// The LSN below which all homes are known to be durable.
    Known,
    /// The LSN below which all homes are durable, after settling them.
    Settled,
}

impl<M: Medium> Allocator<M> {
    /// Takes a slot for an object of `bytes` bytes, header included. The slot's content is arbitrary. `homes` returns
    /// the LSN below which homes are durable.
    #[inline]
    pub(crate) fn take(
        &self,
        medium: &M,
        cache: &mut Cache,
        bytes: u64,
        mut homes: impl FnMut(Homes) -> u64,
    ) -> Result<Slot, Error> {
        let Some(class) = Class::for_bytes(bytes) else {
            return self.take_large(medium, cache, bytes, &mut homes);
        };
        loop {
            let run = cache.active.of(class);
            if let Some(index) = run.next() {
                let frame = run.frame();
                let at = frame.start() + index * class.slot_bytes();
                let place = Place {
                    frame,
                    index,
                    class: Some(class),
                };
                return Ok(Slot {
                    at,
                    bytes: class.slot_bytes(),
                    place,
                });
            }
            self.refill(medium, cache, class, &mut homes)?;
        }
    }

    /// Puts free slots of `class` into the cache.
    #[cold]
    fn refill(
        &self,
        medium: &M,
        cache: &mut Cache,
        class: Class,
        homes: &mut impl FnMut(Homes) -> u64,
    ) -> Result<(), Error> {
        let run = cache.active.of(class);
        if run.is_owned() {
            let frame = run.frame();
            if let Some((word, bits)) = self.grab(medium, frame)? {
                run.fill(word, bits);
                return Ok(());
            }
            run.retire();
            self.retire_run(medium, frame, class)?;
        }
        let lane = cache.lane;
        if let Some(frame) = self.lists.pop(medium, &self.chunks, class, lane)? {
            run.own(frame);
            return Ok(());
        }
        let what = FrameUse::Slots(class);
        let run = match self.new_run(medium, cache, what, (homes(Homes::Known), Reach::Held)) {
            Err(Error::PoolFull { .. }) => {
                // Free slots anywhere in the pool serve before the pool grows.
                let lists = &self.lists;
                if let Some(frame) = lists.pop_anywhere(medium, &self.chunks, class, lane)? {
                    cache.active.of(class).own(frame);
                    return Ok(());
                }
                let durable = self.give_back_empty(medium, homes)?;
                self.new_run(medium, cache, what, (durable, Reach::Growing))?
            }
            run => run?,
        };
        self.own_new(medium, cache, run.frame, class)
    }

    /// Makes a new run active in the session, which has none of its class.
    pub(super) fn own_new(
        &self,
        medium: &M,
        cache: &Cache,
        frame: Frame,
        class: Class,
    ) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        let words = chunk.words();
        for word in 0..BITMAP_WORDS {
            let mask = slot_mask(class.slots(), word);
            words.store(base(frame) + FREE + word as usize, mask);
        }
        words.store(base(frame) + LIVE, 0);
        words.store(base(frame) + OWNER, cache.lane as u64);
        words.store(base(frame) + STATE, FrameState::Owned as u64);
        cache.active.of(class).own(frame);
        Ok(())
    }

    /// Gives back the frames of kept runs without objects, and ends the wait of all freed frames: these serve before
    /// the pool grows. Returns the LSN below which all homes are durable.
    pub(crate) fn give_back_empty(
        &self,
        medium: &M,
        homes: &mut impl FnMut(Homes) -> u64,
    ) -> Result<u64, Error> {
        let empty = self.lists.withdraw_all_empty(medium, &self.chunks)?;
        if !empty.is_empty() {
            // Above every LSN whose entry may name objects that lay in them.
            let stamp = homes(Homes::Counter);
            for (frame, class) in empty {
                let frames = class.frames();
                self.give_frames(medium, FrameRun { frame, frames }, stamp);
            }
        }
        let waits = self.space.lock(medium).has_waiting();
        Ok(homes(match waits {
            true => Homes::Settled,
            false => Homes::Known,
        }))
    }

    /// Takes all free slots of one bitmap word of a frame.
    fn grab(&self, medium: &M, frame: Frame) -> Result<Option<(u64, u64)>, Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        for word in 0..BITMAP_WORDS {
            let index = base(frame) + FREE + word as usize;
            let free = chunk.words().load(index);
            if free != 0 {
                // Noted first, so that every slot that is not free was noted, or in use before. Slots that are freed in
                // between stay in the run.
                self.note(medium, frame, word, free);
                return Ok(Some((word, chunk.words().fetch_and(index, !free) & free)));
            }
        }
        Ok(None)
    }

    /// Ends the ownership of a frame.
    pub(super) fn retire_run(&self, medium: &M, frame: Frame, class: Class) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        chunk
            .words()
            .swap(base(frame) + STATE, FrameState::Full as u64);
        // A thread that freed a slot before the swap found the frame owned and did not list it.
        let freed = (0..BITMAP_WORDS as usize)
            .any(|word| chunk.words().load(base(frame) + FREE + word) != 0);
        if freed {
            self.lists.offer(medium, &self.chunks, frame, class)?;
        }
        Ok(())
    }

    /// Takes frames and marks their use on media; the words reach media with the next commit.
    fn new_run(
        &self,
        medium: &M,
        cache: &mut Cache,
        what: FrameUse,
        from: (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let run = self.take_within(medium, what.frames(), Purpose::Objects, from)?;
        self.begin_run(medium, cache, what, run);
        Ok(run)
    }

    /// Marks the use of taken frames on media.
    pub(super) fn begin_run(&self, medium: &M, cache: &mut Cache, what: FrameUse, run: FrameRun) {
        for word in 0..BITMAP_WORDS {
            self.note(medium, run.frame, word, u64::MAX);
        }
        for (i, frame) in run.each().enumerate() {
            let word = if i == 0 {
                what
            } else {
                FrameUse::Tail { back: i as u64 }
            };
            medium.store_u64(frame.word_at(), word.to_word());
        }
        cache.fresh.push(run.frame);
    }

    #[cold]
    fn take_large(
        &self,
        medium: &M,
        cache: &mut Cache,
        bytes: u64,
        homes: &mut impl FnMut(Homes) -> u64,
    ) -> Result<Slot, Error> {
        if bytes > MAX_OBJECT_BYTES {
            let limit = MAX_OBJECT_BYTES - HEADER_BYTES;
            return Err(Error::ObjectTooLarge {
                bytes: bytes - HEADER_BYTES,
                limit,
            });
        }
        let frames = bytes.div_ceil(FRAME_BYTES);
        let what = FrameUse::Large { frames };
        let run = match self.new_run(medium, cache, what, (homes(Homes::Known), Reach::Held)) {
            Err(Error::PoolFull { .. }) => {
                let durable = self.give_back_empty(medium, homes)?;
                self.new_run(medium, cache, what, (durable, Reach::Growing))?
            }
            run => run?,
        };
        let chunk = self.chunks.get(medium, run.frame.chunk())?;
        for word in 0..BITMAP_WORDS as usize {
            chunk.words().store(base(run.frame) + FREE + word, 0);
        }
        chunk.words().store(base(run.frame) + LIVE, 0);
        chunk
            .words()
            .store(base(run.frame) + STATE, FrameState::Full as u64);
        let place = Place {
            frame: run.frame,
            index: 0,
            class: None,
        };
        Ok(Slot {
            at: run.start(),
            bytes: run.bytes(),
            place,
        })
    }
}
