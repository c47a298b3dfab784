//! A core: its clock, its unfinished stores, and its waits.

use firn_units::{CHUNK_BYTES, LINE_BYTES, PhysAddr};

use crate::controller::FIRST_DRAM_LINE;
use crate::description::Translation;
use crate::statistics::{CoreCounts, Scopes};
use crate::time::Ticks;
use crate::translation::{PageSize, Translator};

/// The end of addresses. The last huge page is left out, because caches need a number that no line has.
const END_OF_MEMORY: PhysAddr = PhysAddr(2 * FIRST_DRAM_LINE * LINE_BYTES - CHUNK_BYTES);

/// Stores that have not yet entered the nearest cache: a ring of the times when each will enter, in their order.
pub(crate) struct StoreBuffer {
    done_at: Box<[Ticks]>,
    oldest: usize,
    last: Ticks,
}

impl StoreBuffer {
    fn new(entries: u32) -> Self {
        Self {
            done_at: vec![0; entries as usize].into(),
            oldest: 0,
            last: 0,
        }
    }

    /// When the newest store will have entered the cache.
    #[inline(always)]
    pub(crate) fn empty_at(&self) -> Ticks {
        self.last
    }

    /// Adds a store that takes `taken` ticks once the earlier ones are done. Returns when there is room: stores finish
    /// in order, so this is when the oldest one is done.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Ticks, taken: Ticks) -> Ticks {
        let entries = self.done_at.len();
        let oldest = &mut self.done_at[self.oldest];
        let room_at = now.max(*oldest);
        self.last = self.last.max(room_at) + taken;
        *oldest = self.last;
        self.oldest += 1;
        if self.oldest == entries {
            self.oldest = 0;
        }
        room_at
    }
}

/// A core.
pub(crate) struct Processor {
    pub(crate) now: Ticks,
    pub(crate) translator: Translator,
    pub(crate) stores: StoreBuffer,
    /// When all lines that it wrote back will have been accepted.
    pub(crate) accepted_at: Ticks,
    /// Without the counts that follow from others: instructions that touch memory, and lines of the nearest cache.
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

    /// Counts an access for which the nearest cache did not suffice.
    #[inline(always)]
    pub(crate) fn count_further(&mut self, level: u8) {
        self.counts.found_in[usize::from(level)] += 1;
    }

    /// All counts, including those that follow from others.
    pub(crate) fn all_counts(&self) -> CoreCounts {
        let mut counts = self.counts;
        let accesses = counts.loads + counts.stores + counts.locked;
        counts.instructions += accesses + counts.write_backs + counts.fences;
        counts.found_in[0] = accesses - counts.found_in[1..].iter().sum::<u64>();
        counts
    }

    /// Translates an address in a page of this size.
    #[inline(always)]
    pub(crate) fn translate(&mut self, at: PhysAddr, size: PageSize) {
        assert!(
            at < END_OF_MEMORY,
            "memory ends before {at}: it has 128 GiB of either kind"
        );
        let (ticks, walked) = self.translator.translate(at.bytes(), size);
        self.counts.walks += u64::from(walked);
        self.counts.stalls.translation += ticks;
        self.now += ticks;
    }

    /// A store enters the store buffer.
    #[inline(always)]
    pub(crate) fn store(&mut self, taken: Ticks) {
        let room_at = self.stores.push(self.now, taken);
        self.counts.stalls.store_buffer += room_at - self.now;
        self.now = room_at;
    }
}
