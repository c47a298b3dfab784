//! Lists of runs with free slots, one a class.
//!
//! A run is on its class's list exactly while its state is `Listed`; both change together under the
//! list's lock. A run knows its position, so that it leaves the list in constant time.

use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Chunk, Frame};
use firn_media::{Lock, Medium, Words};
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK};

use super::chunks::{Chunks, FREE, FrameState, POSITION, STATE, base, slot_mask};
use crate::error::Error;

/// Chunks that one search looks at for runs with free slots, before it takes new frames.
const LOOK_AHEAD: usize = 4;

/// Frames of runs with free slots that a class keeps, empty or not: a program that frees what it
/// allocates would otherwise give frames back and take them again, all threads through one lock.
const KEPT_FRAMES: u64 = 8;

/// The lists, and how far the chunks have been looked at for runs that belong on them.
pub(crate) struct Lists {
    lists: Box<[Lock<Vec<Frame>>]>,
    cursor: Lock<u64>,
}

impl Lists {
    pub(crate) fn new() -> Self {
        Self {
            lists: (0..CLASSES).map(|_| Lock::new(Vec::new())).collect(),
            cursor: Lock::new(0),
        }
    }

    /// Takes a run off the list and makes the caller its owner.
    pub(crate) fn pop<M: Medium>(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        class: Class,
    ) -> Result<Option<Frame>, Error> {
        for _ in 0..LOOK_AHEAD {
            let mut list = self.lists[class.index()].lock(medium);
            if let Some(frame) = list.pop() {
                let words = chunks.get(medium, frame.chunk())?.words();
                words.swap(base(frame) + STATE, FrameState::Owned as u64);
                return Ok(Some(frame));
            }
            drop(list);
            if !self.look_further(medium, chunks)? {
                break;
            }
        }
        Ok(None)
    }

    /// Lists the runs with free slots of the next chunk. False if there is none, or if media does
    /// not know which slots are free.
    fn look_further<M: Medium>(&self, medium: &M, chunks: &Chunks<M>) -> Result<bool, Error> {
        if !chunks.bitmaps_hold() {
            return Ok(false);
        }
        let chunk = {
            let mut cursor = self.cursor.lock(medium);
            while *cursor * CHUNK_BYTES < medium.len() && !Chunk(*cursor).is_data() {
                *cursor += 1;
            }
            if (*cursor + 1) * CHUNK_BYTES > medium.len() {
                return Ok(false);
            }
            *cursor += 1;
            Chunk(*cursor - 1)
        };
        let words = chunks.get(medium, chunk)?.words();
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            let at = frame.word_at();
            if let FrameUse::Slots(class) = FrameUse::from_word(medium.load_u64(at), at)?
                && (0..BITMAP_WORDS as usize).any(|w| words.load(base(frame) + FREE + w) != 0)
            {
                self.offer(medium, chunks, frame, class)?;
            }
        }
        Ok(true)
    }

    /// Offers a run with free slots to everybody, unless it has an owner or is offered already.
    pub(crate) fn offer<M: Medium>(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        frame: Frame,
        class: Class,
    ) -> Result<(), Error> {
        let words = chunks.get(medium, frame.chunk())?.words();
        let mut list = self.lists[class.index()].lock(medium);
        let (full, listed) = (FrameState::Full as u64, FrameState::Listed as u64);
        if words
            .compare_exchange(base(frame) + STATE, full, listed)
            .is_ok()
        {
            list.push(frame);
            words.store(base(frame) + POSITION, list.len() as u64);
        }
        Ok(())
    }

    /// Takes a run off its list for good if all of its slots are free, and the class has others.
    pub(crate) fn withdraw_empty<M: Medium>(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        frame: Frame,
        class: Class,
    ) -> Result<bool, Error> {
        let words = chunks.get(medium, frame.chunk())?.words();
        let mut list = self.lists[class.index()].lock(medium);
        if list.len() as u64 * class.frames() <= KEPT_FRAMES {
            return Ok(false);
        }
        let empty = words.load(base(frame) + STATE) == FrameState::Listed as u64
            && (0..BITMAP_WORDS).all(|word| {
                words.load(base(frame) + FREE + word as usize) == slot_mask(class.slots(), word)
            });
        if !empty {
            return Ok(false);
        }
        words.swap(base(frame) + STATE, FrameState::Leaving as u64);
        let position = words.load(base(frame) + POSITION) as usize - 1;
        list.swap_remove(position);
        if let Some(&moved) = list.get(position) {
            let words = chunks.get(medium, moved.chunk())?.words();
            words.store(base(moved) + POSITION, position as u64 + 1);
        }
        Ok(true)
    }
}
