//! Caches without data: which lines each level of each core holds, and their flags.
//!
//! Invariants: a line in one of a core's levels is also in that core's further levels and in the last level, which all
//! cores share (inclusive). The last level knows which cores' caches hold a line. A core *owns* a line while no other
//! core's caches hold it, and stores to it only then. A line is dirty if any level says so.
//!
//! A line stays in its slot until it leaves, and each level of a core knows the line's slot in the next one. So flags
//! are passed on without a search.

mod level;
#[cfg(test)]
mod tests;
mod word;

use crate::description;
use crate::sets::{Choice, Place};
use level::Level;
pub(crate) use word::{MOST_CORES, flag};
use word::{SHARED, sharer, sharers};

/// A line that leaves for memory.
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

/// The outcome of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// The level that had the line, from zero; the number of levels if none had.
    pub(crate) level: u8,
    /// Whether another core's caches were asked for the line, or to give it up.
    pub(crate) transfer: bool,
    /// The line that was evicted.
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
    /// Flags from [`flag::KEPT`]; zero for a load.
    flags: u32,
}

/// The caches of all cores.
pub(crate) struct Caches {
    /// Private levels of each core.
    levels: usize,
    /// The first core's levels, the nearest first, then the next core's.
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

    /// Prefetches the host's data about a line that will soon be accessed and may not be near.
    #[inline(always)]
    pub(crate) fn expect(&self, line: u64) {
        let first = self.last.lines.expect(line);
        self.last.expect(first);
    }

    /// Loads from a line, or stores to it with `flags` from [`flag::KEPT`]. Returns true if the nearest cache sufficed;
    /// otherwise `further` completes the access.
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

    /// Finds a line that the nearest cache lacks, or does not own as a store requires.
    #[inline(always)]
    pub(crate) fn further(&mut self, core: usize, line: u64, flags: u32) -> Found {
        let request = Request { core, line, flags };
        // The nearest level is known to lack the lines of loads.
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

    /// A store to a line that the core holds but does not own: other cores give it up.
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

    /// Chooses the slot of a line in a core's nearest cache. The line that leaves this slot has a word in the next
    /// level, which the host prefetches.
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

    /// A line in a slot of the last level enters a core's caches. Returns whether other cores were asked, and
    /// [`flag::OWNED`] if no other core has the line any more.
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

    /// Inserts a line into a core's levels that are nearer than `from`, which has it in `slot`. The request's flags go
    /// to the nearest level.
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

    /// A line leaves a level of a core: nearer levels drop it, and the next level receives their flags.
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

    /// A line leaves the last level, and so all levels.
    #[inline(always)]
    fn leave_last(&mut self, line: u64, word: u32) -> Option<Eviction> {
        let kept = match word & SHARED {
            0 => 0,
            _ => self.leave_cores(line, word),
        };
        Eviction::of(line, word | kept)
    }

    /// A line leaves all cores whose caches hold it. Returns its flags there.
    #[inline(never)]
    fn leave_cores(&mut self, line: u64, word: u32) -> u32 {
        sharers(word).fold(0, |kept, core| kept | self.invalidate(core, line))
    }

    /// Removes a line from a core. Returns its flags there.
    #[inline(never)]
    fn invalidate(&mut self, core: usize, line: u64) -> u32 {
        let levels = self.of(core).iter_mut();
        levels.fold(0, |kept, level| kept | level.take(line))
    }

    /// Clears `flags` of a line in a core's levels. Returns the flags of which memory has to learn.
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

    /// A core no longer owns a line. Returns its flags there.
    #[inline(never)]
    fn share(&mut self, core: usize, line: u64) -> u32 {
        self.forget(core, line, flag::OWNED | flag::KEPT)
    }

    /// Writes a line back and keeps it in the caches (clwb).
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

    /// Every line that is newer than in memory.
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
