//! A core: its clock, what it has not finished yet, and what it waited for.

use crate::description::Translation;
use crate::statistics::{CoreCounts, Scopes};
use crate::time::Ticks;
use crate::translation::Translator;

/// Stores that have not entered the nearest cache yet, in their order: when each will have.
pub(crate) struct StoreBuffer {
    done_at: Vec<Ticks>,
    oldest: usize,
    len: usize,
    last: Ticks,
}

impl StoreBuffer {
    fn new(entries: u32) -> Self {
        Self {
            done_at: vec![0; entries as usize],
            oldest: 0,
            len: 0,
            last: 0,
        }
    }

    /// When the newest store will have entered the cache.
    pub(crate) fn empty_at(&self) -> Ticks {
        self.last
    }

    /// Takes a store that needs `taken` ticks once those before it are done. Returns when there was room.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Ticks, taken: Ticks) -> Ticks {
        let entries = self.done_at.len();
        while self.len > 0 && self.done_at[self.oldest] <= now {
            self.drop_oldest(entries);
        }
        let mut room_at = now;
        if self.len == entries {
            room_at = self.done_at[self.oldest];
            self.drop_oldest(entries);
        }
        self.last = self.last.max(room_at) + taken;
        let mut next = self.oldest + self.len;
        if next >= entries {
            next -= entries;
        }
        self.done_at[next] = self.last;
        self.len += 1;
        room_at
    }

    #[inline(always)]
    fn drop_oldest(&mut self, entries: usize) {
        self.oldest += 1;
        if self.oldest == entries {
            self.oldest = 0;
        }
        self.len -= 1;
    }
}

/// A core.
pub(crate) struct Processor {
    pub(crate) now: Ticks,
    pub(crate) translator: Translator,
    pub(crate) stores: StoreBuffer,
    /// When all lines that it wrote back will have been accepted.
    pub(crate) accepted_at: Ticks,
    pub(crate) counts: CoreCounts,
    pub(crate) scopes: Scopes,
}

impl Processor {
    pub(crate) fn new(translation: &Translation, store_buffer_entries: u32) -> Self {
        Self {
            now: 0,
            translator: Translator::new(translation),
            stores: StoreBuffer::new(store_buffer_entries),
            accepted_at: 0,
            counts: CoreCounts::default(),
            scopes: Scopes::default(),
        }
    }
}
