//! Address translation: a core's look-aside buffers, and the cost of a miss.

use crate::description;
use crate::sets::Sets;
use crate::time::{Ticks, cycles};

/// The size of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    #[default]
    Huge,
}

impl PageSize {
    /// The binary logarithm of its bytes.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Small => 12,
            Self::Huge => 21,
        }
    }
}

/// A buffer of one core for pages of one size.
struct Buffer {
    pages: Sets,
    hit: Ticks,
}

impl Buffer {
    fn new(described: &description::Buffer) -> Self {
        Self {
            pages: Sets::new(described.entries.into(), described.ways),
            hit: cycles(described.hit_cycles),
        }
    }
}

/// The buffers of one core for pages of one size, from the nearest on.
struct Levels {
    buffers: Vec<Buffer>,
    walk: Ticks,
}

impl Levels {
    fn new(levels: &[description::Buffer], walk_cycles: u32) -> Self {
        Self {
            buffers: levels.iter().map(Buffer::new).collect(),
            walk: cycles(walk_cycles),
        }
    }

    #[inline(always)]
    fn translate(&mut self, page: u64) -> (Ticks, bool) {
        let mut asked = 0;
        for buffer in &mut self.buffers {
            asked += buffer.hit;
            if buffer.pages.use_or_put(page) {
                return (asked, false);
            }
        }
        (asked + self.walk, true)
    }
}

/// The look-aside buffers of one core.
pub(crate) struct Translator {
    small: Levels,
    huge: Levels,
    /// The page translated last, and its bytes; zero if its translation takes time.
    recent: u64,
    recent_bytes: u64,
}

impl Translator {
    pub(crate) fn new(described: &description::Translation) -> Self {
        Self {
            small: Levels::new(&described.small, described.small_walk_cycles),
            huge: Levels::new(&described.huge, described.huge_walk_cycles),
            recent: 0,
            recent_bytes: 0,
        }
    }

    /// Whether an address is in the page translated last. Finding it takes no time and changes nothing, since no other
    /// page was used later.
    #[inline(always)]
    pub(crate) fn is_recent(&self, address: u64) -> bool {
        address ^ self.recent < self.recent_bytes
    }

    /// The time to translate an address, and whether it took a walk.
    #[inline(always)]
    pub(crate) fn translate(&mut self, address: u64, size: PageSize) -> (Ticks, bool) {
        let page = address >> size.bits();
        let levels = match size {
            PageSize::Small => &mut self.small,
            PageSize::Huge => &mut self.huge,
        };
        let found = levels.translate(page);
        let is_free = levels
            .buffers
            .first()
            .is_some_and(|nearest| nearest.hit == 0);
        self.recent = page << size.bits();
        self.recent_bytes = if is_free { 1 << size.bits() } else { 0 };
        found
    }
}
