//! The order word of a node (the permutation of Masstree, section 4.6.2).
//!
//! ```text
//! bits 0..8    number of entries
//! bits 8..64   14 places of 4 bits: the slots of the entries in order, then the free slots
//! ```
//! An insert fills a free slot and exchanges this word; no other entry moves.

/// Entries of a node.
pub(crate) const FANOUT: usize = 14;
const COUNT_MASK: u64 = 0xff;
const PLACE_BITS: u32 = 4;
const FIRST_PLACE: u32 = 8;
const SLOT_MASK: u64 = 0xf;
const _: () = assert!(FIRST_PLACE as usize + FANOUT * PLACE_BITS as usize == 64);

/// The number of entries, and their slots. Sound: the count is at most [`FANOUT`], and every slot below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order(u64);

impl Order {
    /// `count` entries, each in the slot with its place's number.
    pub(crate) const fn identity(count: usize) -> Self {
        assert!(count <= FANOUT);
        Self(0xdcba_9876_5432_1000 | count as u64)
    }

    /// The order of `word`, if every slot in it exists. Two entries may still share a slot, see
    /// [`Order::is_permutation`].
    #[inline(always)]
    pub(crate) const fn from_word(word: u64) -> Option<Self> {
        // Numbers 14 and 15 have their upper three bits set.
        let places = word & !COUNT_MASK;
        let beyond = places >> 1 & places >> 2 & places >> 3 & 0x1111_1111_1111_1100;
        if beyond != 0 || word & COUNT_MASK > FANOUT as u64 {
            return None;
        }
        Some(Self(word))
    }

    /// The stored word.
    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    /// Number of entries.
    #[inline(always)]
    pub(crate) const fn count(self) -> usize {
        (self.0 & COUNT_MASK) as usize
    }

    /// The slot at `place`; slots from the count on are free.
    #[inline(always)]
    pub(crate) const fn slot(self, place: usize) -> usize {
        (self.0 >> (FIRST_PLACE + PLACE_BITS * place as u32) & SLOT_MASK) as usize
    }

    /// The slots of the places from `first` on, as bits; `first` is a place.
    ///
    /// The loop covers all places, and unused ones count as a slot behind the last: the number of entries differs from
    /// node to node, and a loop over them would end unpredictably.
    #[inline(always)]
    pub(crate) const fn slots(self, first: usize) -> u32 {
        let before = (1 << (PLACE_BITS * first as u32)) - 1;
        let behind = u64::MAX << (PLACE_BITS * self.count() as u32);
        let places = self.0 >> FIRST_PLACE | before | behind;
        let (mut slots, mut place) = (0, 0);
        while place < FANOUT {
            slots |= 1 << (places >> (PLACE_BITS * place as u32) & SLOT_MASK);
            place += 1;
        }
        slots & ((1 << FANOUT) - 1)
    }

    /// Whether no two places name the same slot.
    pub(crate) fn is_permutation(self) -> bool {
        let seen = (0..FANOUT).fold(0u32, |seen, place| seen | 1 << self.slot(place));
        seen == (1 << FANOUT) - 1
    }

    /// The order with the first free slot moved to `place`. The node is not full.
    pub(crate) fn with_inserted(self, place: usize) -> Self {
        let (count, slot) = (self.count(), self.slot(self.count()));
        let mut order = self;
        for i in (place..count).rev() {
            order = order.with(i + 1, self.slot(i));
        }
        Self(order.with(place, slot).0 + 1)
    }

    /// The order with the slot at `place` freed.
    pub(crate) fn with_removed(self, place: usize) -> Self {
        let (count, slot) = (self.count(), self.slot(place));
        let mut order = self;
        for i in place + 1..count {
            order = order.with(i - 1, self.slot(i));
        }
        Self(order.with(count - 1, slot).0 - 1)
    }

    const fn with(self, place: usize, slot: usize) -> Self {
        let shift = FIRST_PLACE + PLACE_BITS * place as u32;
        Self(self.0 & !(SLOT_MASK << shift) | (slot as u64) << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_and_removes_like_a_vector() {
        let mut order = Order::identity(0);
        let mut model: Vec<usize> = Vec::new();
        let mut random = 1u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (random >> 40) as usize;
            if model.len() < FANOUT && (model.is_empty() || random >> 63 == 0) {
                let at = at % (model.len() + 1);
                model.insert(at, order.slot(order.count()));
                order = order.with_inserted(at);
            } else {
                let at = at % model.len();
                model.remove(at);
                order = order.with_removed(at);
            }
            assert!(order.is_permutation());
            assert_eq!(Order::from_word(order.word()), Some(order));
            let slots: Vec<_> = (0..order.count()).map(|i| order.slot(i)).collect();
            assert_eq!(slots, model);
        }
    }

    #[test]
    fn words_beyond_the_node_are_refused() {
        assert_eq!(Order::from_word(15), None);
        for place in 0..FANOUT {
            for slot in FANOUT..16 {
                let bad = Order::identity(3).with(place, slot);
                assert_eq!(Order::from_word(bad.word()), None);
            }
        }
        assert!(!Order::identity(0).with(3, 4).is_permutation());
    }
}
