//! Slots that sessions took into use since some moment: objects allocated in them are new.
//!
//! A slot is noted before it stops being free. So a thread that finds a slot not free, and looks here afterwards, knows
//! whether it was in use at that moment already.

use std::sync::OnceLock;

use firn_format::geometry::{BITMAP_WORDS, Frame, REGION_CHUNKS};
use firn_media::{Medium, Runtime, Words};
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK};

use super::slot::Place;

const WORDS: usize = (FRAMES_PER_CHUNK * BITMAP_WORDS) as usize;

/// One bit per slot, chunk by chunk.
pub(crate) struct TakenSlots<M: Medium> {
    regions: Box<[OnceLock<Region<M>>]>,
}

type Region<M> = Box<[OnceLock<<M as Runtime>::Words>]>;

impl<M: Medium> TakenSlots<M> {
    pub(crate) fn new(medium: &M) -> Self {
        let regions = medium.capacity().div_ceil(CHUNK_BYTES * REGION_CHUNKS) as usize;
        Self {
            regions: (0..regions).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Notes slots of one bitmap word of a run.
    pub(super) fn note(&self, medium: &M, frame: Frame, word: u64, bits: u64) {
        let chunk = frame.chunk().0;
        let region = self.regions[(chunk / REGION_CHUNKS) as usize]
            .get_or_init(|| (0..REGION_CHUNKS).map(|_| OnceLock::new()).collect());
        let words = region[(chunk % REGION_CHUNKS) as usize].get_or_init(|| medium.words(WORDS));
        words.fetch_or(index(frame, word), bits);
    }

    /// The noted slots of one bitmap word of a run.
    pub(crate) fn of(&self, frame: Frame, word: u64) -> u64 {
        let chunk = frame.chunk().0;
        let region = self.regions.get((chunk / REGION_CHUNKS) as usize);
        let region = region.and_then(OnceLock::get);
        let words = region.and_then(|chunks| chunks[(chunk % REGION_CHUNKS) as usize].get());
        words.map_or(0, |words| words.load(index(frame, word)))
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
