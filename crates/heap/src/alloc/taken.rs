//! Slots that came into sessions' hands since a moment: what is allocated in them is new.
//!
//! A slot is noted before it stops being free. So who finds a slot that is not free, and looks here
//! after that, knows whether it was in use at that moment already.

use std::sync::OnceLock;

use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_media::{Medium, Words};
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK};

use super::slot::Place;

const WORDS: usize = (FRAMES_PER_CHUNK * BITMAP_WORDS) as usize;

/// A bit a slot, chunk by chunk.
pub(crate) struct TakenSlots<M: Medium> {
    chunks: Box<[OnceLock<M::Words>]>,
}

impl<M: Medium> TakenSlots<M> {
    pub(super) fn new(medium: &M) -> Self {
        let chunks = medium.capacity().div_ceil(CHUNK_BYTES) as usize;
        Self {
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Notes slots of one bitmap word of a run.
    pub(super) fn note(&self, medium: &M, frame: Frame, word: u64, bits: u64) {
        let chunk = self.chunks[frame.chunk().0 as usize].get_or_init(|| medium.words(WORDS));
        chunk.fetch_or(index(frame, word), bits);
    }

    /// The noted slots of one bitmap word of a run.
    pub(crate) fn of(&self, frame: Frame, word: u64) -> u64 {
        let chunk = self
            .chunks
            .get(frame.chunk().0 as usize)
            .and_then(OnceLock::get);
        chunk.map_or(0, |words| words.load(index(frame, word)))
    }

    /// Whether the slot was noted.
    pub(crate) fn has(&self, place: Place) -> bool {
        let (word, bit) = place.bit();
        self.of(place.frame, word) & bit != 0
    }
}

fn index(frame: Frame, word: u64) -> usize {
    (frame.index_in_chunk() * BITMAP_WORDS + word) as usize
}
