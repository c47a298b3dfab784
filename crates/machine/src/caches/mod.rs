//! Caches without data: which lines each level of each core holds, and what became of them.
//!
//! Invariants: a line in a level of a core is in that core's further levels and in the last one, which all
//! share (inclusive). The last level knows whose caches hold a line. A line is *owned* by a core while it is
//! in no other core's caches: only then is it stored to. It is dirty if any level says so.
//!
//! A line stays in its slot until it leaves, and each level of a core knows the slot in the next one. So what is
//! learned of a line is passed on without a search.

mod level;
#[cfg(test)]
mod tests;
mod word;

use crate::description;
use crate::sets::{Choice, Place};
use level::Level;
pub(crate) use word::{MOST_CORES, flag};
use word::{SHARED, sharer, sharers};

/// A line that goes to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Eviction {
    pub(crate) line: u64,
    pub(crate) dirty: bool,
    pub(crate) pending: bool,
}

impl Eviction {
    fn of(line: u64, word: u32) -> Option<Self> {
        (word & flag::KEPT != 0).then_some(Self {
            line,
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
    pub(crate) eviction: Option<Eviction>,
}

impl Found {
    pub(crate) fn at(level: usize) -> Self {
        Self {
            level: level as u8,
            transfer: false,
            eviction: None,
        }
    }
}

/// A line that an access asks for.
#[derive(Clone, Copy)]
struct Request {
    core: usize,
    line: u64,
    /// From [`flag::KEPT`], none of a load.
    flags: u32,
}

/// The caches of all cores.
pub(crate) struct Caches {
    /// Levels that each core has of its own.
    levels: usize,
    /// Those of the first core, the nearest first, then those of the next one.
    private: Vec<Level>,
    last: Level,
}

impl Caches {
    pub(crate) fn new(levels: &[description::Cache], cores: u32) -> Self {
        let (last, near) = levels.split_last().expect("a machine has a cache");
        assert!(cores <= MOST_CORES, "{cores} cores: at most {MOST_CORES}");
        Self {
            levels: near.len(),
            private: (0..cores)
                .flat_map(|_| near.iter().map(Level::new))
                .collect(),
            last: Level::new(last),
        }
    }

    /// A line will soon be accessed that may not be near.
    #[inline(always)]
    pub(crate) fn expect(&self, line: u64) {
        let first = self.last.lines.expect(line);
        self.last.expect(first);
    }

    /// Loads from a line, or stores to it with `flags` from [`flag::KEPT`]. True if that was all: the nearest
    /// cache had it. Otherwise `further` says what became of it.
    #[inline(always)]
    pub(crate) fn is_near(&mut self, core: usize, line: u64, flags: u32) -> bool {
        let Some(near) = self.private.get_mut(core * self.levels) else {
            return false;
        };
        let Some(slot) = near.lines.touch(line) else {
            return false;
        };
        if flags == 0 {
            return true;
        }
        let word = near.word(slot);
        let owned = *word & flag::OWNED != 0;
        *word |= if owned { flags } else { 0 };
        owned
    }

    /// Finds a line that the nearest cache does not have, or not as it has to be.
    #[inline(always)]
    pub(crate) fn further(&mut self, core: usize, line: u64, flags: u32) -> Found {
        let request = Request { core, line, flags };
        // Of loads it is known that the nearest level does not have them.
        for level in usize::from(flags == 0)..self.levels {
            let Some(slot) = self.of(core)[level].lines.touch(line) else {
                continue;
            };
            let word = *self.of(core)[level].word(slot);
            if flags == 0 || word & flag::OWNED != 0 {
                self.fill(request, (level, slot), word & flag::OWNED, None);
                return Found::at(level);
            }
            return self.claim(request, (level, slot));
        }
        self.miss(request)
    }

    /// A store to a line that the core does not own: others give it up.
    #[inline(never)]
    fn claim(&mut self, request: Request, held: (usize, usize)) -> Found {
        let (level, mut slot) = held;
        for level in &mut self.of(request.core)[level..] {
            let word = level.word(slot);
            *word |= flag::OWNED;
            slot = (*word >> flag::BITS) as usize;
        }
        self.last.lines.touch_slot(slot);
        let (transfer, _) = self.enter(request, slot);
        self.fill(request, held, flag::OWNED, None);
        Found {
            transfer,
            ..Found::at(level)
        }
    }

    /// None of the core's own levels has the line.
    #[inline(always)]
    fn miss(&mut self, request: Request) -> Found {
        let mut found = Found::at(self.levels);
        let choice = self.choose(request);
        let slot = match self.last.lines.touch_or_put(request.line) {
            Place::Held(slot) => slot,
            Place::Put(slot, victim) => {
                found.level += 1;
                let word = core::mem::take(self.last.word(slot));
                found.eviction = victim.and_then(|victim| self.leave_last(victim, word));
                slot
            }
        };
        let (transfer, owned) = self.enter(request, slot);
        found.transfer = transfer;
        match self.levels {
            0 => *self.last.word(slot) |= request.flags,
            levels => self.fill(request, (levels, slot), owned, choice),
        }
        found
    }

    /// Where a line will come to in the nearest cache of a core. What leaves it for the line is known to the next
    /// level: the host looks for that ahead of time.
    #[inline(always)]
    fn choose(&mut self, request: Request) -> Option<Choice> {
        let [near, further @ ..] = self.of(request.core) else {
            return None;
        };
        let choice = near.lines.choose(request.line);
        let slot = (*near.word(choice.slot) >> flag::BITS) as usize;
        match further.first() {
            Some(next) => next.expect(slot),
            None => self.last.expect(slot),
        }
        Some(choice)
    }

    /// A line in a slot of the last level enters a core's caches. Returns whether others were asked, and
    /// [`flag::OWNED`] if none is left that has the line.
    #[inline(always)]
    fn enter(&mut self, request: Request, slot: usize) -> (bool, u32) {
        let word = *self.last.word(slot);
        let me = sharer(request.core);
        let others = word & SHARED & !me;
        if others == 0 {
            *self.last.word(slot) = word | me | flag::OWNED;
            return (false, flag::OWNED);
        }
        let stores = request.flags != 0;
        let asked = stores || word & flag::OWNED != 0;
        let mut kept = 0;
        for other in sharers(others).filter(|_| asked) {
            kept |= match stores {
                true => self.invalidate(other, request.line),
                false => self.share(other, request.line),
            };
        }
        let (remaining, owned) = match stores {
            true => (me, flag::OWNED),
            false => (others | me, 0),
        };
        *self.last.word(slot) = (word & flag::KEPT) | kept | remaining | owned;
        (asked, owned)
    }

    #[inline(always)]
    fn of(&mut self, core: usize) -> &mut [Level] {
        let first = core * self.levels;
        &mut self.private[first..first + self.levels]
    }

    /// Puts a line into the levels of a core before the one that has it, in that slot. What the request says of
    /// the line goes to the nearest.
    #[inline(always)]
    fn fill(
        &mut self,
        request: Request,
        (from, slot): (usize, usize),
        owned: u32,
        nearest: Option<Choice>,
    ) {
        let first = request.core * self.levels;
        if from == 0 {
            *self.private[first].word(slot) |= request.flags;
            return;
        }
        let mut next = slot;
        for level in (0..from).rev() {
            let (kept, choice) = match level {
                0 => (request.flags, nearest),
                _ => (0, None),
            };
            let word = (next as u32) << flag::BITS | owned | kept;
            let (slot, victim) = self.private[first + level].put(request.line, word, choice);
            if let Some((line, word)) = victim {
                self.leave(request.core, level, line, word);
            }
            next = slot;
        }
    }

    /// A line leaves a level of a core: nearer ones give it up, the next one learns what they knew.
    #[inline(always)]
    fn leave(&mut self, core: usize, level: usize, line: u64, word: u32) {
        let (nearer, further) = self.of(core).split_at_mut(level);
        let mut known = word & flag::KEPT;
        for near in nearer {
            known |= near.take(line);
        }
        let slot = (word >> flag::BITS) as usize;
        match further.get_mut(1) {
            Some(next) => *next.word(slot) |= known,
            None => {
                let word = self.last.word(slot);
                *word = (*word | known) & !(flag::OWNED | sharer(core));
            }
        }
    }

    /// A line leaves the last level, and so all of them.
    #[inline(always)]
    fn leave_last(&mut self, line: u64, word: u32) -> Option<Eviction> {
        let kept = match word & SHARED {
            0 => 0,
            _ => self.leave_cores(line, word),
        };
        Eviction::of(line, word | kept)
    }

    /// A line leaves the cores whose caches hold it. Returns what was known of it there.
    #[inline(never)]
    fn leave_cores(&mut self, line: u64, word: u32) -> u32 {
        sharers(word).fold(0, |kept, core| kept | self.invalidate(core, line))
    }

    /// Takes a line from a core. Returns what was known of it there.
    #[inline(never)]
    fn invalidate(&mut self, core: usize, line: u64) -> u32 {
        let levels = self.of(core).iter_mut();
        levels.fold(0, |kept, level| kept | level.take(line))
    }

    /// Of what a core knows of a line it forgets `flags`. Returns what of it memory has to learn.
    fn forget(&mut self, core: usize, line: u64, flags: u32) -> u32 {
        let words = self
            .of(core)
            .iter_mut()
            .filter_map(|level| level.find(line));
        words.fold(0, |kept, word| {
            let before = *word;
            *word &= !flags;
            kept | before & flag::KEPT
        })
    }

    /// A core owns a line no longer. Returns what it knew of it.
    #[inline(never)]
    fn share(&mut self, core: usize, line: u64) -> u32 {
        self.forget(core, line, flag::OWNED | flag::KEPT)
    }

    /// Writes a line back, which stays where it is (clwb).
    pub(crate) fn clean(&mut self, line: u64) -> Option<Eviction> {
        let slot = self.last.lines.find(line)?;
        let word = *self.last.word(slot);
        let cores = sharers(word);
        let known = cores.fold(word, |known, core| {
            known | self.forget(core, line, flag::KEPT)
        });
        *self.last.word(slot) &= !flag::KEPT;
        Eviction::of(line, known)
    }

    /// A `relocate` did not store to this line after all.
    pub(crate) fn clear_pending(&mut self, line: u64) {
        let Some(slot) = self.last.lines.find(line) else {
            return;
        };
        let cores = sharers(*self.last.word(slot));
        cores.for_each(|core| _ = self.forget(core, line, flag::PENDING));
        *self.last.word(slot) &= !flag::PENDING;
    }

    /// Every line that memory has not seen as it is.
    pub(crate) fn dirty(&mut self) -> Vec<Eviction> {
        let lines: Vec<(usize, u64)> = self.last.lines.tags().collect();
        let eviction = |(slot, line)| {
            let word = *self.last.word(slot);
            let cores = sharers(word);
            let known = cores.fold(word, |known, core| known | self.forget(core, line, 0));
            Eviction::of(line, known)
        };
        let mut evictions: Vec<Eviction> = lines.into_iter().filter_map(eviction).collect();
        evictions.sort_unstable_by_key(|eviction| eviction.line);
        evictions
    }
}

const LINE: u64 = firn_units::LINE_BYTES;
