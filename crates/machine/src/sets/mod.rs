//! Ways in sets: the common part of caches and translation buffers.
//!
//! The simulator spends its time here, and wrongly predicted branches would cost the host most of it. So a set is
//! searched without branches: all its ways are compared, and at most one adds its number to the result.

#[cfg(test)]
mod tests;

use firn_fibers::prefetch;

/// Ways that are compared at once.
const GROUP: usize = 8;
/// Code of a set's first way, in sets of at most two groups; the bits below are the ways' numbers.
const FIRST_CODE: u32 = 6 * GROUP as u32;
/// The tag of a way that holds nothing. No line and no page has it.
const EMPTY: u32 = u32::MAX;
/// The time of a way that does not exist, in a set whose last group has fewer ways. It has the bits of the greatest
/// finite float, since times are compared as floats.
const NEVER_OLDEST: i32 = f32::MAX.to_bits() as i32;

/// A part of a set, on one line of the host's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group {
    tags: [u32; GROUP],
    /// When each way was last used, with its number in the set in the low bits. An empty way has nothing but its
    /// number.
    used: [i32; GROUP],
}

impl Group {
    /// The group of a set that begins with the way `first`.
    fn new(first: usize, ways: usize) -> Self {
        let used = |way| match first + way < ways {
            true => (first + way) as i32,
            false => NEVER_OLDEST,
        };
        Self {
            tags: [EMPTY; GROUP],
            used: core::array::from_fn(used),
        }
    }

    /// When each way was used, as floats: positive floats have the order of their bits.
    #[inline(always)]
    fn times(&self) -> [f32; GROUP] {
        self.used.map(|used| f32::from_bits(used as u32))
    }

    /// The code of the way that holds a tag, if the first way's code is `first`; zero if no way holds it. The compiler
    /// compares all ways at once, unless a code is a power of two, which it would rather shift.
    #[inline(always)]
    fn code(&self, tag: u32, first: u32) -> u32 {
        let mut code = 0;
        for (way, &held) in (0..).zip(&self.tags) {
            code += if held == tag { first + way } else { 0 };
        }
        code
    }
}

/// The older of each two times. For floats, unlike integers, every x86-64 has an instruction for this.
#[inline(always)]
fn older<const WAYS: usize>(one: [f32; WAYS], other: [f32; WAYS]) -> [f32; WAYS] {
    core::array::from_fn(|way| {
        if one[way] < other[way] {
            one[way]
        } else {
            other[way]
        }
    })
}

/// The oldest of all times.
#[inline(always)]
fn oldest_of([a, b, c, d, e, f, g, h]: [f32; GROUP]) -> i32 {
    let [a, b, c, d] = older([a, b, c, d], [e, f, g, h]);
    let [a, b] = older([a, b], [c, d]);
    let [oldest] = older([a], [b]);
    oldest.to_bits() as i32
}

/// Where a tag is.
pub(crate) enum Place {
    /// It was already in this slot.
    Held(usize),
    /// It was put into this slot and evicted this tag, if the slot held one.
    Put(usize, Option<u64>),
}

/// Tags in sets with least-recently-used replacement. A tag stays in the slot that it was put into.
pub(crate) struct Sets {
    count: u64,
    /// One over `count`, in fractions of 2^64, rounded up.
    inverse: u64,
    groups_per_set: usize,
    groups: Vec<Group>,
    now: i32,
    /// From one time to the next. The bits below it are a way's number.
    step: i32,
    /// The last time before times are renumbered.
    last: i32,
    /// How often a slot was emptied.
    taken: u64,
}

/// The slot chosen for a tag.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) slot: usize,
    taken: u64,
}

impl Sets {
    /// Every tag is smaller.
    pub(crate) const END_OF_TAGS: u64 = EMPTY as u64;
    /// Most sets.
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
        let set: Vec<Group> = groups.map(|first| Group::new(first, ways)).collect();
        let step = (set.len() * GROUP).next_power_of_two() as i32;
        Self {
            count,
            inverse: (u64::MAX / count).wrapping_add(1),
            groups_per_set: set.len(),
            step,
            last: NEVER_OLDEST - 2 * step,
            groups: set.repeat(count as usize),
            now: 0,
            taken: 0,
        }
    }

    /// Every slot's number is smaller.
    pub(crate) fn slots(&self) -> usize {
        self.groups.len() * GROUP
    }

    /// First group of the set of a tag. The remainder is exact for tags and counts of 32 bits (Lemire, Kaser,
    /// Kurz, "Faster remainder by direct computation").
    #[inline(always)]
    fn first(&self, tag: u64) -> usize {
        debug_assert!(tag < Self::END_OF_TAGS);
        let fraction = self.inverse.wrapping_mul(tag);
        let set = (u128::from(fraction) * u128::from(self.count)) >> 64;
        set as usize * self.groups_per_set
    }

    /// Prefetches the set of a tag, which will soon be looked for. Returns the set's first slot.
    #[inline(always)]
    pub(crate) fn expect(&self, tag: u64) -> usize {
        let first = self.first(tag);
        for group in &self.groups[first..first + self.groups_per_set] {
            prefetch(group);
        }
        first * GROUP
    }

    /// The slot of a tag, which does not count as used.
    #[inline(always)]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        self.find_in(self.first(tag), tag as u32)
    }

    #[inline(always)]
    fn find_in(&self, first: usize, tag: u32) -> Option<usize> {
        let code = match self.groups_per_set {
            1 => self.groups[first].code(tag, FIRST_CODE),
            2 => {
                let set = &self.groups[first..first + 2];
                set[0].code(tag, FIRST_CODE) + set[1].code(tag, FIRST_CODE + GROUP as u32)
            }
            _ => return self.find_in_many(first, tag),
        };
        let way = code as usize % (2 * GROUP);
        (code != 0).then_some(first * GROUP + way)
    }

    fn find_in_many(&self, first: usize, tag: u32) -> Option<usize> {
        let mut groups = first..first + self.groups_per_set;
        groups.find_map(|group| {
            let code = self.groups[group].code(tag, FIRST_CODE);
            (code != 0).then(|| group * GROUP + code as usize % GROUP)
        })
    }

    /// The slot of a tag, which counts as used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, tag: u64) -> Option<usize> {
        let first = self.first(tag);
        if self.groups_per_set > 1 {
            let slot = self.find_in(first, tag as u32)?;
            self.touch_way(first, slot - first * GROUP);
            return Some(slot);
        }
        let time = self.tick();
        let group = &mut self.groups[first];
        let code = group.code(tag as u32, FIRST_CODE);
        if code == 0 {
            return None;
        }
        let way = code as usize % GROUP;
        group.used[way] = time | way as i32;
        Some(first * GROUP + way)
    }

    /// The tag in a slot counts as used.
    #[inline(always)]
    pub(crate) fn touch_slot(&mut self, slot: usize) {
        let (group, way) = (slot / GROUP, slot % GROUP);
        let used = self.groups[group].used[way];
        self.groups[group].used[way] = self.tick() | used & (self.step - 1);
    }

    #[inline(always)]
    fn touch_way(&mut self, first: usize, way: usize) {
        let time = self.tick();
        self.groups[first + way / GROUP].used[way % GROUP] = time | way as i32;
    }

    /// Touches a tag, or inserts it if it is absent.
    #[inline(always)]
    pub(crate) fn touch_or_put(&mut self, tag: u64) -> Place {
        let first = self.first(tag);
        match self.find_in(first, tag as u32) {
            Some(slot) => {
                self.touch_way(first, slot - first * GROUP);
                Place::Held(slot)
            }
            None => {
                let (slot, victim) = self.put_in(first, tag as u32);
                Place::Put(slot, victim)
            }
        }
    }

    /// Touches a tag or inserts it, for callers that need no slot. Returns true if it was there.
    #[inline(always)]
    pub(crate) fn use_or_put(&mut self, tag: u64) -> bool {
        if self.groups_per_set > 1 {
            return matches!(self.touch_or_put(tag), Place::Held(_));
        }
        let first = self.first(tag);
        let time = self.tick();
        let group = &mut self.groups[first];
        let code = group.code(tag as u32, FIRST_CODE);
        let is_held = code != 0;
        let way = match is_held {
            true => code as usize % GROUP,
            false => (oldest_of(group.times()) & (self.step - 1)) as usize % GROUP,
        };
        group.used[way] = time | way as i32;
        if !is_held {
            group.tags[way] = tag as u32;
        }
        is_held
    }

    /// Inserts an absent tag. Returns its slot and the evicted tag.
    #[inline(always)]
    pub(crate) fn put(&mut self, tag: u64) -> (usize, Option<u64>) {
        self.put_in(self.first(tag), tag as u32)
    }

    #[inline(always)]
    fn put_in(&mut self, first: usize, tag: u32) -> (usize, Option<u64>) {
        let slot = self.oldest_in(first);
        (slot, self.put_at(slot, tag.into()))
    }

    /// The slot that a tag would be put into. It is chosen early, so that the host can prefetch its data.
    #[inline(always)]
    pub(crate) fn choose(&self, tag: u64) -> Choice {
        Choice {
            slot: self.oldest_in(self.first(tag)),
            taken: self.taken,
        }
    }

    /// Inserts a tag into its chosen slot. No tag may have been used since the choice.
    #[inline(always)]
    pub(crate) fn put_chosen(&mut self, tag: u64, choice: Choice) -> (usize, Option<u64>) {
        // A slot that was emptied meanwhile comes before any other.
        if choice.taken != self.taken {
            return self.put(tag);
        }
        (choice.slot, self.put_at(choice.slot, tag))
    }

    #[inline(always)]
    fn put_at(&mut self, slot: usize, tag: u64) -> Option<u64> {
        self.touch_slot(slot);
        let held = &mut self.groups[slot / GROUP].tags[slot % GROUP];
        let victim = core::mem::replace(held, tag as u32);
        (victim != EMPTY).then_some(victim.into())
    }

    /// The least recently used slot of a set.
    #[inline(always)]
    fn oldest_in(&self, first: usize) -> usize {
        first * GROUP + (self.oldest(first) & (self.step - 1)) as usize
    }

    /// When the least recently used way of a set was used.
    #[inline(always)]
    fn oldest(&self, first: usize) -> i32 {
        let groups = &self.groups[first..first + self.groups_per_set];
        match groups {
            [one] => oldest_of(one.times()),
            [one, two] => oldest_of(older(one.times(), two.times())),
            groups => oldest_of(groups.iter().fold([f32::MAX; GROUP], |oldest, group| {
                older(oldest, group.times())
            })),
        }
    }

    /// Empties a slot.
    pub(crate) fn take(&mut self, slot: usize) {
        self.taken += 1;
        let (group, way) = (&mut self.groups[slot / GROUP], slot % GROUP);
        group.tags[way] = EMPTY;
        group.used[way] &= self.step - 1;
    }

    /// Every tag, with its slot.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (usize, u64)> {
        let tags = self.groups.iter().flat_map(|group| group.tags).enumerate();
        tags.filter(|&(_, tag)| tag != EMPTY)
            .map(|(slot, tag)| (slot, tag.into()))
    }

    #[inline(always)]
    fn tick(&mut self) -> i32 {
        self.now += self.step;
        if self.now > self.last {
            self.renumber();
        }
        self.now
    }

    /// Numbers the times anew; their order in each set stays.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self) {
        let step = self.step;
        for set in self.groups.chunks_mut(self.groups_per_set) {
            let used = set.iter_mut().flat_map(|group| &mut group.used);
            let held = used.filter(|used| (step..NEVER_OLDEST).contains(*used));
            let mut held: Vec<&mut i32> = held.collect();
            held.sort();
            for (place, used) in (1..).zip(held) {
                *used = place * step + *used % step;
            }
        }
        self.now = (step + 1) * step;
    }
}
