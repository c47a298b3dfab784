//! Which lines of copies reached persistence (FFCCD, section 4.2).
//!
//! A `relocate` sets a *pending bit* on each line that it stores to. The bit travels with the line, through the caches
//! and into the write-pending queue, on any write-back: an eviction, or a `clwb` of the program. When a line with the
//! bit reaches persistence, the memory controller clears the pending bit and sets the line's bit in the *reached
//! bitmap*, which has a word in memory for each page. The *reached bitmap buffer* holds the most recently used words;
//! on a power failure its content goes to memory.
//!
//! Where the paper is silent, we assume: the buffer is fully associative and replaces the least recently used word; a
//! cycle begins with buffer and bitmap empty, since a bit left from the previous cycle would count.

use firn_units::{FRAME_BYTES, LINE_BYTES, PhysAddr};

use crate::lru::Lru;

/// Words of the buffer (Table 2).
pub const ENTRIES: usize = 8;
/// Lines of a page: the bits of a word.
pub const LINES_PER_PAGE: u64 = FRAME_BYTES / LINE_BYTES;
const _: () = assert!(LINES_PER_PAGE == u64::BITS as u64);

/// The page that holds a line of a destination, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PhysPage(pub u64);

impl PhysPage {
    /// The page that holds `at`.
    pub const fn holding(at: PhysAddr) -> Self {
        Self(at.0 / FRAME_BYTES)
    }
}

/// The bit of the line that holds `at`, in its page's word.
pub const fn line_bit(at: PhysAddr) -> u64 {
    1 << (at.0 / LINE_BYTES % LINES_PER_PAGE)
}

/// The reached bitmap in memory.
pub trait Bitmap {
    /// A page's word: a bit for each line that reached persistence.
    fn load(&self, page: PhysPage) -> u64;
    /// Replaces it. It is durable at once: the memory controller is in the persistence domain.
    fn store(&mut self, page: PhysPage, word: u64);
}

/// How the buffer was accessed to set a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The page's word was in the buffer.
    Hit,
    /// The word was fetched; another may have been written to memory for it.
    Miss {
        /// The page whose word went to memory.
        written: Option<PhysPage>,
    },
}

/// The reached bitmap buffer.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Buffer {
    words: Lru<PhysPage, u64>,
}

impl Buffer {
    /// An empty buffer of `entries` words.
    pub fn new(entries: usize) -> Self {
        Self {
            words: Lru::new(entries),
        }
    }

    /// Records that a line with its pending bit set has reached persistence.
    pub fn reach(&mut self, at: PhysAddr, bitmap: &mut impl Bitmap) -> Access {
        let (page, bit) = (PhysPage::holding(at), line_bit(at));
        if let Some(word) = self.words.get(page) {
            *word |= bit;
            return Access::Hit;
        }
        let gone = self.words.insert(page, bitmap.load(page) | bit);
        if let Some((page, word)) = gone {
            bitmap.store(page, word);
        }
        Access::Miss {
            written: gone.map(|(page, _)| page),
        }
    }

    /// Writes everything to memory: power fails, or software asks which lines were reached. Returns the number of
    /// words.
    pub fn drain(&mut self, bitmap: &mut impl Bitmap) -> usize {
        let words = self.words.drain();
        words.map(|(page, word)| bitmap.store(page, word)).count()
    }

    /// Forgets everything, for the next cycle.
    pub fn invalidate(&mut self) {
        self.words.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Memory(BTreeMap<PhysPage, u64>);

    impl Bitmap for Memory {
        fn load(&self, page: PhysPage) -> u64 {
            self.0.get(&page).copied().unwrap_or(0)
        }
        fn store(&mut self, page: PhysPage, word: u64) {
            self.0.insert(page, word);
        }
    }

    fn at(page: u64, line: u64) -> PhysAddr {
        PhysAddr(page * FRAME_BYTES + line * LINE_BYTES)
    }

    #[test]
    fn a_full_buffer_makes_room_and_loses_nothing() {
        let (mut buffer, mut memory) = (Buffer::new(2), Memory::default());
        assert_eq!(
            buffer.reach(at(1, 0), &mut memory),
            Access::Miss { written: None }
        );
        assert_eq!(
            buffer.reach(at(2, 5), &mut memory),
            Access::Miss { written: None }
        );
        assert_eq!(buffer.reach(at(1, 63), &mut memory), Access::Hit);
        let evicted = Access::Miss {
            written: Some(PhysPage(2)),
        };
        assert_eq!(buffer.reach(at(3, 1), &mut memory), evicted);
        assert_eq!(memory.load(PhysPage(2)), 1 << 5);
        let evicted = Access::Miss {
            written: Some(PhysPage(1)),
        };
        // A fetched word keeps the bits that it has in memory.
        assert_eq!(buffer.reach(at(2, 6), &mut memory), evicted);
        assert_eq!(buffer.drain(&mut memory), 2);
        let words = [1, 2, 3].map(|page| memory.load(PhysPage(page)));
        assert_eq!(words, [1 | 1 << 63, 1 << 5 | 1 << 6, 1 << 1]);
    }

    #[test]
    fn what_was_forgotten_reaches_no_bitmap() {
        let (mut buffer, mut memory) = (Buffer::new(2), Memory::default());
        buffer.reach(at(1, 0), &mut memory);
        buffer.invalidate();
        assert_eq!(buffer.drain(&mut memory), 0);
        assert_eq!(memory.load(PhysPage(1)), 0);
        assert_eq!(buffer, Buffer::new(2));
    }

    proptest! {
        #[test]
        fn a_buffer_of_any_size_says_the_same_after_a_power_failure(
            lines in prop::collection::vec((0u64..12, 0u64..64), 0..200),
            entries in 1usize..10,
            fails_at in prop::collection::vec(0usize..200, 0..4),
        ) {
            let (mut buffer, mut memory) = (Buffer::new(entries), Memory::default());
            let mut expected = BTreeMap::<PhysPage, u64>::new();
            for (i, &(page, line)) in lines.iter().enumerate() {
                buffer.reach(at(page, line), &mut memory);
                *expected.entry(PhysPage(page)).or_default() |= 1 << line;
                if fails_at.contains(&i) {
                    buffer.drain(&mut memory);
                    prop_assert_eq!(&memory.0, &expected);
                }
            }
            buffer.drain(&mut memory);
            prop_assert_eq!(&memory.0, &expected);
        }
    }
}
