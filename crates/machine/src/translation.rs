//! Translations of addresses: what a core's look-aside buffers hold, and what a miss costs.

use crate::description;
use crate::sets::Sets;
use crate::time::{Ticks, cycles};

/// What a page measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    #[default]
    Huge,
}

impl PageSize {
    /// Its number of bytes is two to the power of this.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Small => 12,
            Self::Huge => 21,
        }
    }
}

/// The buffers of one core for pages of one size, from the nearest on.
struct Levels {
    buffers: Vec<(Sets, Ticks)>,
    walk: Ticks,
}

impl Levels {
    fn new(levels: &[description::Buffer], walk_cycles: u32) -> Self {
        let level = |level: &description::Buffer| {
            let sets = Sets::new(level.entries.into(), level.ways);
            (sets, cycles(level.hit_cycles))
        };
        Self {
            buffers: levels.iter().map(level).collect(),
            walk: cycles(walk_cycles),
        }
    }

    #[inline(always)]
    fn translate(&mut self, page: u64) -> (Ticks, bool) {
        if let Some((nearest, ticks)) = self.buffers.first_mut()
            && nearest.touch(page).is_some()
        {
            return (*ticks, false);
        }
        self.further(page)
    }

    fn further(&mut self, page: u64) -> (Ticks, bool) {
        let found = self
            .buffers
            .iter_mut()
            .position(|(level, _)| level.touch(page).is_some());
        let missed = found.unwrap_or(self.buffers.len());
        for (level, _) in &mut self.buffers[..missed] {
            level.insert(page << Sets::FLAG_BITS);
        }
        let asked: Ticks = self
            .buffers
            .iter()
            .take(missed + 1)
            .map(|(_, ticks)| ticks)
            .sum();
        match found {
            Some(_) => (asked, false),
            None => (asked + self.walk, true),
        }
    }
}

/// The look-aside buffers of one core.
pub(crate) struct Translator {
    small: Levels,
    huge: Levels,
}

impl Translator {
    pub(crate) fn new(described: &description::Translation) -> Self {
        Self {
            small: Levels::new(&described.small, described.small_walk_cycles),
            huge: Levels::new(&described.huge, described.huge_walk_cycles),
        }
    }

    /// What finding an address takes, and whether it took a walk.
    #[inline(always)]
    pub(crate) fn translate(&mut self, address: u64, size: PageSize) -> (Ticks, bool) {
        let page = address >> size.bits();
        match size {
            PageSize::Small => self.small.translate(page),
            PageSize::Huge => self.huge.translate(page),
        }
    }
}
