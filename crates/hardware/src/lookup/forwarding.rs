//! The look-aside buffer of the forwarding table (FFCCD, sections 4.3.1 and 4.3.2).
//!
//! An entry holds the destinations of a page's objects: the destination page, and for each granule of the source the
//! place there. The paper's text gives an entry 256 bytes of places, enough for a whole page; its Table 1 counts
//! 64 bytes, enough for a quarter. So the bytes that an entry covers are a parameter.

use firn_units::{FRAME_BYTES, VirtAddr};

use super::Lookup;
use crate::lru::Lru;

/// Entries of the buffer (Table 2).
pub const ENTRIES: usize = 16;
/// Bytes that an entry covers if it has a whole page's places, as section 4.3.2 says.
pub const WHOLE_PAGE_BYTES: u64 = FRAME_BYTES;
/// Bytes that an entry covers with 64 bytes of places, as Table 1 counts.
pub const QUARTER_PAGE_BYTES: u64 = FRAME_BYTES / 4;

/// Bytes of addresses that share one place: no two objects begin in them (section 4.3.1).
pub const GRANULE_BYTES: u64 = 16;

/// The destinations of the objects in a block of addresses.
pub trait Entry: Clone {
    /// The destination of the object at `at`, an address in the block; `None` if no moving object begins there.
    fn destination(&self, at: VirtAddr) -> Option<VirtAddr>;
}

/// The forwarding table in memory.
pub trait Table {
    /// The part of the table that one entry of the buffer holds.
    type Entry: Entry;
    /// The entry for the `bytes` bytes from `start`, which lie in one page; `None` if that page is not being emptied.
    fn entry(&self, start: VirtAddr, bytes: u64) -> Option<Self::Entry>;
}

/// The look-aside buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookAside<E> {
    entries: Lru<u64, E>,
    reach_bytes: u64,
}

impl<E: Entry> LookAside<E> {
    /// An empty buffer of `entries` entries, each for `reach_bytes` of addresses: a fraction of a page.
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

    /// The destination of the object at `at`, and how it was found.
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

    /// Forgets everything, because the table is no longer valid.
    pub fn invalidate(&mut self) {
        self.entries.clear();
    }
}
