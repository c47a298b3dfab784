//! The forwarding table in memory, page by page (FFCCD, section 4.3.1).
//!
//! The paper's table has one destination page for each emptied page, and a byte for each place in it; `storage` counts
//! that. Here the objects of one page may move to any addresses, so a place is an address.

use std::collections::BTreeMap;

use firn_units::{FRAME_BYTES, VirtAddr};

use super::VirtPage;
use super::forwarding::{Entry, GRANULE_BYTES, Table};

const PLACES: usize = (FRAME_BYTES / GRANULE_BYTES) as usize;

/// The destinations of the objects in a block of addresses, by the granule in which each begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    start: VirtAddr,
    to: Box<[Option<VirtAddr>]>,
}

impl Entry for Places {
    fn destination(&self, at: VirtAddr) -> Option<VirtAddr> {
        let offset = at.0.checked_sub(self.start.0)?;
        let place = self.to.get((offset / GRANULE_BYTES) as usize)?;
        place.filter(|_| offset.is_multiple_of(GRANULE_BYTES))
    }
}

/// The table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ForwardingTable(BTreeMap<VirtPage, Box<[Option<VirtAddr>; PLACES]>>);

impl ForwardingTable {
    /// The table of these objects, each given by source and destination.
    ///
    /// Panics if an object does not lie at a multiple of [`GRANULE_BYTES`].
    pub fn of(moves: impl IntoIterator<Item = (VirtAddr, VirtAddr)>) -> Self {
        let mut pages = BTreeMap::new();
        for (from, to) in moves {
            assert!(
                from.0.is_multiple_of(GRANULE_BYTES),
                "an object at {from}, which is no multiple of {GRANULE_BYTES}"
            );
            let places = pages
                .entry(VirtPage::holding(from))
                .or_insert_with(|| Box::new([None; PLACES]));
            places[(from.0 % FRAME_BYTES / GRANULE_BYTES) as usize] = Some(to);
        }
        Self(pages)
    }

    /// The pages that hold its objects, ascending.
    pub fn pages(&self) -> impl Iterator<Item = VirtPage> + '_ {
        self.0.keys().copied()
    }
}

impl Table for ForwardingTable {
    type Entry = Places;

    fn entry(&self, start: VirtAddr, bytes: u64) -> Option<Places> {
        let places = self.0.get(&VirtPage::holding(start))?;
        let first = (start.0 % FRAME_BYTES / GRANULE_BYTES) as usize;
        let to = &places[first..first + (bytes / GRANULE_BYTES) as usize];
        Some(Places {
            start,
            to: to.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_where_they_begin() {
        let object = (VirtAddr(2 * FRAME_BYTES + 1040), VirtAddr(16));
        let table = ForwardingTable::of([object]);
        assert!(table.pages().eq([VirtPage(2)]));
        let quarter = |nth: u64| table.entry(VirtAddr(2 * FRAME_BYTES + nth * 1024), 1024);
        let second = quarter(1).unwrap();
        assert_eq!(second.destination(object.0), Some(object.1));
        for at in [1024, 1048, 1056, 16, 2047] {
            assert_eq!(second.destination(VirtAddr(2 * FRAME_BYTES + at)), None);
        }
        // A part of the page without objects is known to be empty.
        assert_eq!(quarter(0).unwrap().destination(object.0), None);
        assert_eq!(table.entry(VirtAddr(FRAME_BYTES), 1024), None);
    }
}
