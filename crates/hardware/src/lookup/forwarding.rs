//! The look-aside buffer of the forwarding table (FFCCD, sections 4.3.1 and 4.3.2).
//!
//! An entry holds where the objects of a page go: the page of the destination, and for each 16 bytes of
//! the source the place there. The paper's text gives an entry 256 bytes of places, a whole page's; its
//! Table 1 counts 64 bytes, a quarter's. So how much an entry reaches over is asked for.

use firn_units::{FRAME_BYTES, VirtAddr};

use super::Lookup;
use crate::lru::Lru;

/// Entries of the buffer (Table 2).
pub const ENTRIES: usize = 16;
/// What an entry reaches over if it has a whole page's places, as section 4.3.2 says.
pub const WHOLE_PAGE_BYTES: u64 = FRAME_BYTES;
/// What it reaches over with 64 bytes of places, as Table 1 counts.
pub const QUARTER_PAGE_BYTES: u64 = FRAME_BYTES / 4;

/// Bytes of addresses that have one place: no two objects begin in them (section 4.3.1).
pub const GRANULE_BYTES: u64 = 16;

/// Where the objects of a block of addresses go.
pub trait Entry: Clone {
    /// Where the object at `at` goes, an address in the block; `None` if none that moves is there.
    fn destination(&self, at: VirtAddr) -> Option<VirtAddr>;
}

/// The forwarding table in memory.
pub trait Table {
    /// What the buffer keeps of it.
    type Entry: Entry;
    /// The entry for the `bytes` bytes from `start`, which lie in one page; `None` if that is not being
    /// emptied.
    fn entry(&self, start: VirtAddr, bytes: u64) -> Option<Self::Entry>;
}

/// The look-aside buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookAside<E> {
    entries: Lru<u64, E>,
    reach_bytes: u64,
}

impl<E: Entry> LookAside<E> {
    /// An empty buffer of `entries` entries, each for `reach_bytes` of addresses: a part of a page.
    ///
    /// Panics if a page is not a multiple of `reach_bytes`.
    pub fn new(entries: usize, reach_bytes: u64) -> Self {
        assert!(
            reach_bytes > 0 && FRAME_BYTES.is_multiple_of(reach_bytes),
            "an entry reaches over {reach_bytes} bytes, which is no part of a page"
        );
        Self {
            entries: Lru::new(entries),
            reach_bytes,
        }
    }

    /// Where the object at `at` goes, and what it took to say so.
    pub fn lookup(
        &mut self,
        at: VirtAddr,
        table: &impl Table<Entry = E>,
    ) -> (Lookup, Option<VirtAddr>) {
        let block = at.0 / self.reach_bytes;
        if let Some(entry) = self.entries.get(block) {
            return (Lookup::Hit, entry.destination(at));
        }
        let start = VirtAddr(block * self.reach_bytes);
        let Some(entry) = table.entry(start, self.reach_bytes) else {
            return (Lookup::NotFound, None);
        };
        let to = entry.destination(at);
        let replaced = self.entries.insert(block, entry).is_some();
        (Lookup::Miss { replaced }, to)
    }

    /// Forgets everything: what the table says is no longer so.
    pub fn invalidate(&mut self) {
        self.entries.clear();
    }
}
