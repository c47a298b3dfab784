//! Ways in sets, the most recently used first: what caches and translation buffers have in common.

/// A way that holds nothing. Its tag is one that no line and no page has.
const EMPTY: u64 = u64::MAX;

/// Words of a tag and [`Sets::FLAG_BITS`] bits of the user's own, in sets that replace what was used longest
/// ago. The order of use is the order of the words, so replacement needs no other state.
pub(crate) struct Sets {
    ways: usize,
    count: u64,
    /// One over `count`, in fractions of 2^64, rounded up.
    inverse: u64,
    words: Vec<u64>,
}

impl Sets {
    /// Bits of a word below its tag.
    pub(crate) const FLAG_BITS: u32 = 22;
    /// Tags are smaller.
    #[cfg(test)]
    pub(crate) const END_OF_TAGS: u64 = (1 << (64 - Self::FLAG_BITS)) - 1;
    /// With more sets the quotient below would not be exact.
    pub(crate) const MOST_SETS: u64 = 1 << Self::FLAG_BITS;

    pub(crate) fn new(entries: u64, ways: u32) -> Self {
        let count = entries / u64::from(ways);
        assert!(
            0 < count && count <= Self::MOST_SETS,
            "{count} sets: a description has 1 to {}",
            Self::MOST_SETS
        );
        Self {
            ways: ways as usize,
            count,
            inverse: (u64::MAX / count).wrapping_add(1),
            words: vec![EMPTY; (count * u64::from(ways)) as usize],
        }
    }

    /// First word of the set of a tag. The remainder is exact: the error of the inverse is smaller than
    /// `count`, and a tag times that smaller than 2^64.
    #[inline(always)]
    fn start(&self, tag: u64) -> usize {
        let set = match self.count.is_power_of_two() {
            true => tag & (self.count - 1),
            false => {
                let quotient = (u128::from(tag) * u128::from(self.inverse)) >> 64;
                tag - quotient as u64 * self.count
            }
        };
        set as usize * self.ways
    }

    #[inline(always)]
    fn set(&mut self, tag: u64) -> (usize, &mut [u64]) {
        let start = self.start(tag);
        (start, &mut self.words[start..start + self.ways])
    }

    /// The word of a tag, which counts as used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, tag: u64) -> Option<&mut u64> {
        let (_, set) = self.set(tag);
        if set[0] >> Self::FLAG_BITS == tag {
            return Some(&mut set[0]);
        }
        let way = set.iter().position(|word| word >> Self::FLAG_BITS == tag)?;
        set[..=way].rotate_right(1);
        Some(&mut set[0])
    }

    /// The word of a tag, which does not count as used.
    pub(crate) fn peek(&mut self, tag: u64) -> Option<&mut u64> {
        self.set(tag)
            .1
            .iter_mut()
            .find(|word| **word >> Self::FLAG_BITS == tag)
    }

    /// Puts a word where its tag is not, and returns what had to go.
    #[inline(always)]
    pub(crate) fn insert(&mut self, word: u64) -> Option<u64> {
        let (_, set) = self.set(word >> Self::FLAG_BITS);
        set.rotate_right(1);
        let victim = core::mem::replace(&mut set[0], word);
        (victim != EMPTY).then_some(victim)
    }

    /// Takes a tag out, and returns its word.
    pub(crate) fn remove(&mut self, tag: u64) -> Option<u64> {
        let (_, set) = self.set(tag);
        let way = set.iter().position(|word| word >> Self::FLAG_BITS == tag)?;
        set[way..].rotate_left(1);
        set.last_mut().map(|last| core::mem::replace(last, EMPTY))
    }

    /// Every word there is.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.words.iter().copied().filter(|&word| word != EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(tag: u64) -> u64 {
        tag << Sets::FLAG_BITS
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut sets = Sets::new(2, 2);
        assert_eq!(sets.insert(word(1)), None);
        assert_eq!(sets.insert(word(2)), None);
        assert!(sets.touch(1).is_some());
        assert_eq!(sets.insert(word(3)), Some(word(2)));
        assert_eq!(sets.remove(1), Some(word(1)));
        assert_eq!(sets.insert(word(4)), None);
        assert_eq!(sets.words().collect::<Vec<_>>(), [word(4), word(3)]);
    }

    #[test]
    fn sets_are_those_of_a_remainder() {
        for count in [1, 2, 3, 96, 1000, 3072, (1 << 22) - 1, 1 << 22] {
            let sets = Sets::new(count, 1);
            let tags = (0..200).chain((0..200).map(|back| Sets::END_OF_TAGS - 1 - back));
            for tag in tags {
                assert_eq!(sets.start(tag) as u64, tag % count, "{tag} of {count}");
            }
        }
    }
}
