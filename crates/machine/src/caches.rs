//! Caches without data: which lines each level of each core holds, and what became of them.
//!
//! Invariants: a line in a level of a core is in that core's further levels and in the last one, which all
//! share (inclusive). The last level knows whose caches hold a line. A line is *owned* by a core while it is
//! in no other core's caches: only then is it stored to. It is dirty if any level says so.

use crate::description;
use crate::sets::Sets;

/// Flags of a line.
pub(crate) mod flag {
    /// It was stored to since memory saw it.
    pub(crate) const DIRTY: u64 = 1;
    /// No other core holds it.
    pub(crate) const OWNED: u64 = 2;
    /// A `relocate` stored to it: whoever receives it is told (FFCCD, section 4.2).
    pub(crate) const PENDING: u64 = 4;
    /// What a line keeps when it moves to the next level.
    pub(crate) const KEPT: u64 = DIRTY | PENDING;
}

/// The first sharer's bit in a word of the last level.
const SHARERS: u32 = 6;
/// Cores that a word of the last level has bits for.
pub(crate) const MOST_CORES: u32 = Sets::FLAG_BITS - SHARERS;

/// A line that goes to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Departure {
    pub(crate) line: u64,
    pub(crate) dirty: bool,
    pub(crate) pending: bool,
}

impl Departure {
    fn of(word: u64) -> Option<Self> {
        (word & flag::KEPT != 0).then_some(Self {
            line: word >> Sets::FLAG_BITS,
            dirty: word & flag::DIRTY != 0,
            pending: word & flag::PENDING != 0,
        })
    }
}

/// What an access came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// The level that had the line, from zero; the number of levels if none had.
    pub(crate) level: u8,
    /// Another core's caches were asked: for the line, or to give it up.
    pub(crate) transfer: bool,
    /// A line that had to go.
    pub(crate) departure: Option<Departure>,
}

/// The caches of all cores.
pub(crate) struct Caches {
    /// Each core's own, the nearest first.
    private: Vec<Vec<Sets>>,
    last: Sets,
}

impl Caches {
    pub(crate) fn new(levels: &[description::Cache], cores: u32) -> Self {
        let sets = |level: &description::Cache| Sets::new(level.bytes / LINE, level.ways);
        let (last, near) = levels.split_last().expect("a machine has a cache");
        assert!(cores <= MOST_CORES, "{cores} cores: at most {MOST_CORES}");
        Self {
            private: (0..cores)
                .map(|_| near.iter().map(sets).collect())
                .collect(),
            last: sets(last),
        }
    }

    /// Loads from a line, or stores to it with `flags` from [`flag::KEPT`].
    #[inline(always)]
    pub(crate) fn access(&mut self, core: usize, line: u64, flags: u64) -> Found {
        if let Some(word) = self.private[core]
            .first_mut()
            .and_then(|near| near.touch(line))
            && (flags == 0 || *word & flag::OWNED != 0)
        {
            *word |= flags;
            return Found {
                level: 0,
                transfer: false,
                departure: None,
            };
        }
        self.further(core, line, flags)
    }

    fn further(&mut self, core: usize, line: u64, flags: u64) -> Found {
        let near = &mut self.private[core];
        let levels = near.len();
        let held = (0..levels).find_map(|level| near[level].touch(line).map(|word| (level, *word)));
        if let Some((level, word)) = held
            && (flags == 0 || word & flag::OWNED != 0)
        {
            self.fill(core, level, (word & !flag::KEPT) | flags);
            return Found {
                level: level as u8,
                transfer: false,
                departure: None,
            };
        }
        let had = held.map(|(level, _)| level);
        let me = 1 << (SHARERS + core as u32);
        let (mut departure, mut transfer, mut level) = (None, false, levels);
        let others = match self.last.touch(line) {
            Some(&mut word) => word & SHARED & !me,
            None => {
                level += 1;
                let victim = self.last.insert(line << Sets::FLAG_BITS);
                departure = victim.and_then(|victim| self.leave_last(victim));
                0
            }
        };
        let mut kept = 0;
        let word = *self.last.peek(line).expect("it was put there");
        let asked = others != 0 && (flags != 0 || word & flag::OWNED != 0);
        if asked {
            transfer = true;
            for other in sharers(others) {
                kept |= match flags {
                    0 => self.share(other, line),
                    _ => self.invalidate(other, line),
                };
            }
        }
        let alone = flags != 0 || others == 0;
        let owned = if alone { flag::OWNED } else { 0 };
        let remaining = if flags == 0 { others | me } else { me };
        let in_last = self.last.peek(line).expect("it was put there");
        *in_last = (word & !(SHARED | flag::OWNED)) | kept | remaining | owned;
        match had {
            Some(level) => {
                for near in &mut self.private[core][level..] {
                    let word = near.peek(line).expect("further levels hold it as well");
                    *word |= owned;
                }
                self.fill(core, level, line << Sets::FLAG_BITS | owned | flags);
            }
            None if levels > 0 => self.fill(core, levels, line << Sets::FLAG_BITS | owned | flags),
            None => *self.last.peek(line).expect("it was put there") |= flags,
        }
        Found {
            level: had.unwrap_or(level) as u8,
            transfer,
            departure,
        }
    }

    /// Puts a line into the levels of a core before `from`, which has it. What it says of the line goes to the
    /// nearest.
    fn fill(&mut self, core: usize, from: usize, word: u64) {
        let flags = word & flag::KEPT;
        if from == 0 {
            *self.private[core][0]
                .peek(word >> Sets::FLAG_BITS)
                .expect("it was found there") |= flags;
            return;
        }
        for level in (0..from.min(self.private[core].len())).rev() {
            let kept = if level == 0 { flags } else { 0 };
            if let Some(victim) = self.private[core][level].insert((word & !flag::KEPT) | kept) {
                self.leave(core, level, victim);
            }
        }
    }

    /// A line leaves a level of a core: nearer ones give it up, the next one learns what they knew.
    fn leave(&mut self, core: usize, level: usize, victim: u64) {
        let line = victim >> Sets::FLAG_BITS;
        let mut kept = victim & flag::KEPT;
        for near in &mut self.private[core][..level] {
            kept |= near.remove(line).unwrap_or(0) & flag::KEPT;
        }
        match self.private[core].get_mut(level + 1) {
            Some(next) => *next.peek(line).expect("further levels hold it as well") |= kept,
            None => {
                let word = self.last.peek(line).expect("the last level holds it");
                *word = (*word | kept) & !(flag::OWNED | 1 << (SHARERS + core as u32));
            }
        }
    }

    /// A line leaves the last level, and so all of them.
    fn leave_last(&mut self, victim: u64) -> Option<Departure> {
        let line = victim >> Sets::FLAG_BITS;
        let kept =
            sharers(victim & SHARED).fold(0, |kept, core| kept | self.invalidate(core, line));
        Departure::of(victim | kept)
    }

    /// Takes a line from a core. Returns what was known of it there.
    fn invalidate(&mut self, core: usize, line: u64) -> u64 {
        self.private[core].iter_mut().fold(0, |kept, level| {
            kept | level.remove(line).unwrap_or(0) & flag::KEPT
        })
    }

    /// A core owns a line no longer. Returns what it knew of it.
    fn share(&mut self, core: usize, line: u64) -> u64 {
        let mut kept = 0;
        for word in self.private[core]
            .iter_mut()
            .filter_map(|level| level.peek(line))
        {
            kept |= *word & flag::KEPT;
            *word &= !(flag::OWNED | flag::KEPT);
        }
        kept
    }

    /// Writes a line back, which stays where it is (clwb).
    pub(crate) fn clean(&mut self, line: u64) -> Option<Departure> {
        let word = *self.last.peek(line)?;
        let mut kept = 0;
        for core in sharers(word & SHARED) {
            for held in self.private[core]
                .iter_mut()
                .filter_map(|level| level.peek(line))
            {
                kept |= *held & flag::KEPT;
                *held &= !flag::KEPT;
            }
        }
        *self.last.peek(line)? &= !flag::KEPT;
        Departure::of(word | kept)
    }

    /// Every line that memory has not seen as it is.
    pub(crate) fn dirty(&mut self) -> Vec<Departure> {
        let lines: Vec<u64> = self.last.words().collect();
        let mut departures: Vec<Departure> = lines
            .into_iter()
            .filter_map(|word| {
                let line = word >> Sets::FLAG_BITS;
                let kept = sharers(word & SHARED)
                    .flat_map(|core| {
                        self.private[core]
                            .iter_mut()
                            .filter_map(|level| level.peek(line))
                            .map(|word| *word)
                            .collect::<Vec<_>>()
                    })
                    .fold(0, |kept, word| kept | word & flag::KEPT);
                Departure::of(word | kept)
            })
            .collect();
        departures.sort_unstable_by_key(|departure| departure.line);
        departures
    }
}

const LINE: u64 = firn_units::LINE_BYTES;
const SHARED: u64 = ((1 << MOST_CORES) - 1) << SHARERS;

fn sharers(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask >> SHARERS;
    core::iter::from_fn(move || {
        let next = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const LINES: u64 = 96;
    const CORES: usize = 3;

    fn level(lines: u64, ways: u32) -> description::Cache {
        description::Cache {
            name: String::new(),
            bytes: lines * LINE,
            ways,
            hit_cycles: 1,
            shared: false,
        }
    }

    /// What memory lacks, by a plain account of stores and departures.
    #[derive(Default)]
    struct Account {
        dirty: BTreeMap<u64, u64>,
        stored: u64,
        departed: u64,
    }

    impl Account {
        fn store(&mut self, line: u64, flags: u64) {
            *self.dirty.entry(line).or_default() |= flags;
            self.stored += 1;
        }

        fn depart(&mut self, departure: Option<Departure>) {
            let Some(departure) = departure else { return };
            let flags = self.dirty.remove(&departure.line);
            assert_eq!(flags, Some(flags_of(departure)), "{departure:?}");
            self.departed += 1;
        }
    }

    fn flags_of(departure: Departure) -> u64 {
        let pending = if departure.pending { flag::PENDING } else { 0 };
        pending | if departure.dirty { flag::DIRTY } else { 0 }
    }

    /// What the file's header promises.
    fn check(caches: &mut Caches, account: &Account) {
        let mut holders: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        for core in 0..caches.private.len() {
            for level in 0..caches.private[core].len() {
                let words: Vec<u64> = caches.private[core][level].words().collect();
                for word in words {
                    let line = word >> Sets::FLAG_BITS;
                    holders.entry(line).or_default().insert(core);
                    for further in &mut caches.private[core][level..] {
                        assert!(
                            further.peek(line).is_some(),
                            "{line} is in all further levels"
                        );
                    }
                    let last = *caches
                        .last
                        .peek(line)
                        .expect("the last level has all lines");
                    let me = 1 << (SHARERS + core as u32);
                    assert!(last & me != 0, "the last level knows who holds {line}");
                    let owned = word & flag::OWNED != 0;
                    assert!(!owned || last & SHARED == me, "{line} is owned by one");
                    assert!(
                        owned || word & flag::KEPT == 0,
                        "{line} is stored to where it is owned"
                    );
                }
            }
        }
        let dirty: BTreeMap<u64, u64> = caches
            .dirty()
            .into_iter()
            .map(|departure| (departure.line, flags_of(departure)))
            .collect();
        assert_eq!(dirty, account.dirty);
    }

    #[test]
    fn nothing_is_lost_on_the_way_to_memory() {
        let shapes = [
            vec![level(24, 2)],
            vec![level(6, 2), level(24, 3)],
            vec![level(4, 1), level(12, 4), level(36, 4)],
        ];
        for (seed, shape) in shapes.iter().cycle().take(30).enumerate() {
            let mut random = fastrand::Rng::with_seed(seed as u64);
            let mut caches = Caches::new(shape, CORES as u32);
            let mut account = Account::default();
            for _ in 0..2_000 {
                let (core, line) = (random.usize(..CORES), random.u64(..LINES));
                let flags = match random.u32(..8) {
                    0..4 => 0,
                    4 | 5 => flag::DIRTY,
                    6 => flag::KEPT,
                    _ => {
                        account.depart(caches.clean(line));
                        assert!(!account.dirty.contains_key(&line));
                        continue;
                    }
                };
                let found = caches.access(core, line, flags);
                account.depart(found.departure);
                if flags != 0 {
                    account.store(line, flags);
                }
                let again = caches.access(core, line, flags);
                let near = Found {
                    level: 0,
                    transfer: false,
                    departure: None,
                };
                assert_eq!(again, near, "{line} is there now");
                check(&mut caches, &account);
            }
            assert!(account.departed > 300 && account.stored > 600);
        }
    }
}
