//! Ways in sets: what caches and translation buffers have in common.
//!
//! Whoever simulates spends his time here, and a processor that has to guess spends his in wrong guesses. So a
//! set is searched without branches: all its ways are compared, and at most one adds its number to the result.

/// Ways that are compared at once.
const GROUP: usize = 8;
/// Codes of the ways of a set's first two groups; the bits below are the ways' numbers.
const FIRST_CODE: u32 = 6 * GROUP as u32;
const SECOND_CODE: u32 = FIRST_CODE + GROUP as u32;
/// A way that holds nothing. No line and no page has its tag.
const EMPTY: u32 = u32::MAX;
/// When a way was used that is none: a set's last group may have fewer.
const NEVER_OLDEST: i32 = i32::MAX;
/// A time's step: the bits below are the way's number in its group.
const STEP: i32 = GROUP as i32;
/// The last time before times are numbered anew.
const LAST: i32 = NEVER_OLDEST - 2 * STEP;

/// A part of a set, on one line of the host's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group {
    tags: [u32; GROUP],
    /// When each was used last; its own number if it holds nothing.
    used: [i32; GROUP],
}

impl Group {
    fn new(ways: usize) -> Self {
        let used = |way| if way < ways { way as i32 } else { NEVER_OLDEST };
        Self {
            tags: [EMPTY; GROUP],
            used: core::array::from_fn(used),
        }
    }

    /// The code of the way that holds a tag, where the first way's is `first`; zero if none does. The compiler
    /// compares all ways at once, as long as no code is a power of two, which it had better shift.
    #[inline(always)]
    fn code(&self, tag: u32, first: u32) -> u32 {
        let mut code = 0;
        for (way, &held) in (0..).zip(&self.tags) {
            code += if held == tag { first + way } else { 0 };
        }
        code
    }

    /// When the way was used that was not for longest.
    #[inline(always)]
    fn oldest(&self) -> i32 {
        self.used
            .iter()
            .fold(NEVER_OLDEST, |oldest, &used| oldest.min(used))
    }
}

/// Tags in sets that replace what was used longest ago. Each stays in the slot that it was put into.
pub(crate) struct Sets {
    count: u64,
    /// One over `count`, in fractions of 2^64, rounded up.
    inverse: u64,
    groups_per_set: usize,
    groups: Vec<Group>,
    now: i32,
}

impl Sets {
    /// Tags are smaller.
    pub(crate) const END_OF_TAGS: u64 = EMPTY as u64;
    /// Sets there may be.
    pub(crate) const MOST_SETS: u64 = 1 << 22;

    pub(crate) fn new(entries: u64, ways: u32) -> Self {
        let count = entries / u64::from(ways);
        assert!(
            0 < count && count <= Self::MOST_SETS,
            "{count} sets: a description has 1 to {}",
            Self::MOST_SETS
        );
        let ways = ways as usize;
        let groups = (0..ways).step_by(GROUP);
        let set: Vec<Group> = groups.map(|first| Group::new(ways - first)).collect();
        Self {
            count,
            inverse: (u64::MAX / count).wrapping_add(1),
            groups_per_set: set.len(),
            groups: set.repeat(count as usize),
            now: 0,
        }
    }

    /// Slots are smaller.
    pub(crate) fn slots(&self) -> usize {
        self.groups.len() * GROUP
    }

    /// First group of the set of a tag. The remainder is exact for tags and counts of 32 bits (Lemire, Kaser,
    /// Kurz, "Faster remainder by direct computation").
    #[inline(always)]
    fn first(&self, tag: u64) -> usize {
        let fraction = self.inverse.wrapping_mul(tag);
        let set = (u128::from(fraction) * u128::from(self.count)) >> 64;
        set as usize * self.groups_per_set
    }

    /// The slot of a tag, which does not count as used.
    #[inline(always)]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        debug_assert!(tag < Self::END_OF_TAGS);
        let (first, tag) = (self.first(tag), tag as u32);
        let code = match self.groups_per_set {
            1 => self.groups[first].code(tag, FIRST_CODE),
            2 => {
                let set = &self.groups[first..first + 2];
                set[0].code(tag, FIRST_CODE) + set[1].code(tag, SECOND_CODE)
            }
            _ => return self.find_in_many(first, tag),
        };
        let way = code as usize % (2 * GROUP);
        (code != 0).then_some(first * GROUP + way)
    }

    fn find_in_many(&self, first: usize, tag: u32) -> Option<usize> {
        let groups = first..first + self.groups_per_set;
        let codes = groups.map(|group| (group, self.groups[group].code(tag, FIRST_CODE)));
        let (group, code) = { codes }.find(|&(_, code)| code != 0)?;
        Some(group * GROUP + code as usize % GROUP)
    }

    /// The slot of a tag, which counts as used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, tag: u64) -> Option<usize> {
        if self.groups_per_set > 1 {
            let slot = self.find(tag)?;
            self.touch_slot(slot);
            return Some(slot);
        }
        let (first, time) = (self.first(tag), self.tick());
        let group = &mut self.groups[first];
        let code = group.code(tag as u32, FIRST_CODE);
        if code == 0 {
            return None;
        }
        let way = code as usize % GROUP;
        group.used[way] = time | way as i32;
        Some(first * GROUP + way)
    }

    /// What a slot holds counts as used.
    #[inline(always)]
    pub(crate) fn touch_slot(&mut self, slot: usize) {
        let time = self.tick();
        let way = slot % GROUP;
        self.groups[slot / GROUP].used[way] = time | way as i32;
    }

    /// Puts a tag where it is not. Returns its slot, and what had to go from it.
    #[inline(always)]
    pub(crate) fn put(&mut self, tag: u64) -> (usize, Option<u64>) {
        debug_assert!(tag < Self::END_OF_TAGS);
        let time = self.tick();
        let first = self.first(tag);
        let set = &mut self.groups[first..first + self.groups_per_set];
        let (mut number, mut oldest) = (0, set[0].oldest());
        for (next, group) in set.iter().enumerate().skip(1) {
            let used = group.oldest();
            (number, oldest) = if used < oldest {
                (next, used)
            } else {
                (number, oldest)
            };
        }
        let way = oldest as usize % GROUP;
        let group = &mut set[number];
        group.used[way] = time | way as i32;
        let victim = core::mem::replace(&mut group.tags[way], tag as u32);
        let slot = (first + number) * GROUP + way;
        (slot, (victim != EMPTY).then_some(victim.into()))
    }

    /// Empties a slot.
    pub(crate) fn take(&mut self, slot: usize) {
        let (group, way) = (&mut self.groups[slot / GROUP], slot % GROUP);
        (group.tags[way], group.used[way]) = (EMPTY, way as i32);
    }

    /// Every tag there is, with its slot.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (usize, u64)> {
        let tags = self.groups.iter().flat_map(|group| group.tags).enumerate();
        tags.filter(|&(_, tag)| tag != EMPTY)
            .map(|(slot, tag)| (slot, tag.into()))
    }

    #[inline(always)]
    fn tick(&mut self) -> i32 {
        self.now += STEP;
        if self.now > LAST {
            self.renumber();
        }
        self.now
    }

    /// Times begin anew; in each set their order stays.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self) {
        let ways = self.groups_per_set * GROUP;
        for set in self.groups.chunks_mut(self.groups_per_set) {
            let used = set.iter_mut().flat_map(|group| &mut group.used);
            let mut used: Vec<&mut i32> = used
                .filter(|used| (STEP..NEVER_OLDEST).contains(*used))
                .collect();
            used.sort();
            for (place, used) in (1..).zip(used) {
                *used = place * STEP + *used % STEP;
            }
        }
        self.now = (ways as i32 + 1) * STEP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tags of each set, the most recently used first.
    struct Model {
        sets: Vec<Vec<u64>>,
        ways: usize,
    }

    impl Model {
        fn set(&mut self, tag: u64) -> &mut Vec<u64> {
            let count = self.sets.len() as u64;
            &mut self.sets[(tag % count) as usize]
        }

        fn remove(&mut self, tag: u64) -> bool {
            let set = self.set(tag);
            let place = set.iter().position(|&held| held == tag);
            place.map(|place| set.remove(place)).is_some()
        }

        fn put(&mut self, tag: u64) -> Option<u64> {
            let ways = self.ways;
            let set = self.set(tag);
            set.insert(0, tag);
            (set.len() > ways).then(|| set.pop()).flatten()
        }
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        for (seed, ways) in (0..).zip([1, 3, 4, 8, 12, 16, 20, 40]) {
            let count = 5;
            let mut random = fastrand::Rng::with_seed(seed);
            let mut sets = Sets::new(count * u64::from(ways), ways);
            sets.now = (LAST / STEP - 500) * STEP;
            let mut model = Model {
                sets: vec![Vec::new(); count as usize],
                ways: ways as usize,
            };
            for _ in 0..4_000 {
                let tag = random.u64(..count * u64::from(ways) * 3 / 2);
                let slot = sets.find(tag);
                let held = model.remove(tag);
                assert_eq!(slot.is_some(), held, "{tag}");
                match slot {
                    Some(slot) if random.u32(..5) == 0 => sets.take(slot),
                    Some(slot) => {
                        match random.bool() {
                            true => sets.touch_slot(slot),
                            false => assert_eq!(sets.touch(tag), Some(slot)),
                        }
                        model.put(tag);
                    }
                    None => assert_eq!(sets.put(tag).1, model.put(tag), "{ways} ways"),
                }
            }
            let mut found: Vec<u64> = sets.tags().map(|(_, tag)| tag).collect();
            found.sort_unstable();
            let mut expected = model.sets.concat();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert!(sets.now < LAST / 2, "times began anew");
        }
    }

    #[test]
    fn sets_are_those_of_a_remainder() {
        for count in [1, 2, 3, 96, 1000, 3072, (1 << 22) - 1, 1 << 22] {
            let sets = Sets::new(count, 1);
            let tags = (0..200).chain((0..200).map(|back| Sets::END_OF_TAGS - 1 - back));
            for tag in tags {
                assert_eq!(sets.first(tag) as u64, tag % count, "{tag} of {count}");
            }
        }
    }
}
