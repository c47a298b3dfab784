//! `checklookup`: whether an object is being moved, and to where, in one instruction (FFCCD, section 4.3).
//!
//! The instruction first asks a Bloom filter for the object's page, and is done if the filter says no. Otherwise it
//! asks the look-aside buffer of the forwarding table and, if necessary, the table in memory. A filter may be wrong
//! about a page that is not being moved: the table then has nothing for it.

pub mod bloom;
pub mod counts;
pub mod forwarding;
pub mod table;

use firn_units::{FRAME_BYTES, VirtAddr};

use bloom::{FilterCache, Filters};
use forwarding::{LookAside, Table};

/// A page of the program's addresses, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct VirtPage(pub u64);

impl VirtPage {
    /// The page that holds `at`.
    pub const fn holding(at: VirtAddr) -> Self {
        Self(at.0 / FRAME_BYTES)
    }
}

/// How the filter was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The page lies in no filter's range.
    OutOfRange,
    /// The filter for its range was cached.
    Cached,
    /// The filter was fetched.
    Fetched,
}

/// How the destination was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// The look-aside buffer had the entry.
    Hit,
    /// The entry was fetched from the table.
    Miss {
        /// Whether the least recently used entry was evicted for it.
        replaced: bool,
    },
    /// The table has nothing for the page: the filter was wrong.
    NotFound,
}

/// The instruction's answer, and how it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Where the object goes; `None` if it stays.
    pub to: Option<VirtAddr>,
    /// The first step.
    pub check: Check,
    /// The second, if the filter said yes.
    pub lookup: Option<Lookup>,
}

/// The sizes of the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Most filters in memory. A processor caches one of them.
    pub filters: usize,
    /// Bytes of a filter, and so of the cache for one.
    pub filter_bytes: usize,
    /// Entries of a look-aside buffer.
    pub entries: usize,
    /// Bytes of addresses that an entry covers: a fraction of a page.
    pub reach_bytes: u64,
}

impl Default for Sizes {
    /// The sizes of FFCCD's Table 2, with a whole page's places in an entry, as its section 4.3.2 says.
    fn default() -> Self {
        Self {
            filters: bloom::FILTERS,
            filter_bytes: bloom::BYTES,
            entries: forwarding::ENTRIES,
            reach_bytes: forwarding::WHOLE_PAGE_BYTES,
        }
    }
}

/// A processor's state for the instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckLookup<E> {
    filters: FilterCache,
    look_aside: LookAside<E>,
}

impl<E: forwarding::Entry> CheckLookup<E> {
    /// Empty buffers.
    ///
    /// Panics if a page is not a multiple of the bytes that an entry covers.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            filters: FilterCache::default(),
            look_aside: LookAside::new(sizes.entries, sizes.reach_bytes),
        }
    }

    /// Asks about the object at `at`.
    pub fn check_lookup(
        &mut self,
        at: VirtAddr,
        filters: &Filters,
        table: &impl Table<Entry = E>,
    ) -> Answer {
        let (check, may_move) = self.filters.check(VirtPage::holding(at), filters);
        if !may_move {
            return Answer {
                to: None,
                check,
                lookup: None,
            };
        }
        let (lookup, to) = self.look_aside.lookup(at, table);
        Answer {
            to,
            check,
            lookup: Some(lookup),
        }
    }

    /// Forgets everything: a cycle begins or ends.
    pub fn invalidate(&mut self) {
        self.filters = FilterCache::default();
        self.look_aside.invalidate();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::bloom::{BYTES, FILTERS};
    use super::counts::LookupCounts;
    use super::forwarding::{Entry, QUARTER_PAGE_BYTES};
    use super::table::ForwardingTable;
    use super::*;

    fn unit(entries: usize, reach_bytes: u64) -> Sizes {
        Sizes {
            entries,
            reach_bytes,
            ..Sizes::default()
        }
    }

    /// Objects of the block that begins at an address, each with its destination.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Block(BTreeMap<u64, u64>);

    impl Entry for Block {
        fn destination(&self, at: VirtAddr) -> Option<VirtAddr> {
            self.0.get(&at.0).copied().map(VirtAddr)
        }
    }

    struct Memory(BTreeMap<u64, u64>);

    impl Table for Memory {
        type Entry = Block;
        fn entry(&self, start: VirtAddr, bytes: u64) -> Option<Block> {
            let page = VirtPage::holding(start).0 * FRAME_BYTES;
            self.0.range(page..page + FRAME_BYTES).next()?;
            let objects = self.0.range(start.0..start.0 + bytes);
            Some(Block(objects.map(|(&from, &to)| (from, to)).collect()))
        }
    }

    proptest! {
        #[test]
        fn it_says_what_the_table_says(
            objects in prop::collection::btree_map(0u64..40_000, 0u64..40_000, 0..300),
            asked in prop::collection::vec(0u64..40_000, 1..300),
            narrow in any::<bool>(),
        ) {
            let sixteen = |(from, to): (u64, u64)| (from * 16, to * 16);
            let table = Memory(objects.into_iter().map(sixteen).collect());
            let pages: Vec<VirtPage> = table.0.keys().map(|&at| VirtPage::holding(VirtAddr(at))).collect();
            let filters = Filters::over(pages.iter().copied(), FILTERS, BYTES);
            let reach = if narrow { QUARTER_PAGE_BYTES } else { FRAME_BYTES };
            let mut unit = CheckLookup::new(&unit(2, reach));
            let there: Vec<u64> = table.0.keys().copied().collect();
            for (i, asked) in asked.into_iter().enumerate() {
                let at = match i % 2 {
                    0 if !there.is_empty() => there[asked as usize % there.len()],
                    _ => asked * 16,
                };
                let answer = unit.check_lookup(VirtAddr(at), &filters, &table);
                prop_assert_eq!(answer.to, table.0.get(&at).copied().map(VirtAddr));
                if answer.lookup == Some(Lookup::NotFound) {
                    prop_assert!(!pages.contains(&VirtPage::holding(VirtAddr(at))));
                }
            }
        }
    }

    #[test]
    fn each_step_is_told() {
        let table = Memory([(4096, 16), (4096 * 100, 32)].into());
        // One byte per page: each page has a filter of its own.
        let filters = Filters::over([VirtPage(1), VirtPage(100)], 2, 1);
        let mut unit = CheckLookup::new(&unit(1, FRAME_BYTES));
        let missed = |replaced| Some(Lookup::Miss { replaced });
        let mut ask = |at| unit.check_lookup(VirtAddr(at), &filters, &table);
        let answer = |to, check, lookup| Answer { to, check, lookup };
        assert_eq!(ask(4096 * 50), answer(None, Check::OutOfRange, None));
        let first = Some(VirtAddr(16));
        assert_eq!(ask(4096), answer(first, Check::Fetched, missed(false)));
        assert_eq!(ask(4096), answer(first, Check::Cached, Some(Lookup::Hit)));
        // An address in a moving page at which no object begins.
        assert_eq!(ask(4112), answer(None, Check::Cached, Some(Lookup::Hit)));
        let second = Some(VirtAddr(32));
        assert_eq!(
            ask(4096 * 100),
            answer(second, Check::Fetched, missed(true))
        );
        assert_eq!(ask(4096), answer(first, Check::Fetched, missed(true)));
    }

    /// One object at the start of each of the first pages, with its destination.
    fn moves(pages: u64, to: u64) -> impl Iterator<Item = (VirtAddr, VirtAddr)> {
        let page = |nth| nth * FRAME_BYTES;
        (1..=pages).map(move |nth| (VirtAddr(page(nth)), VirtAddr(to + page(nth))))
    }

    #[test]
    fn a_buffer_that_is_too_small_replaces_and_stays_right() {
        let table = ForwardingTable::of(moves(64, 1 << 20));
        let filters = Filters::over(table.pages(), FILTERS, BYTES);
        let mut counts = LookupCounts::default();
        let mut unit = CheckLookup::new(&unit(4, FRAME_BYTES));
        for round in 0..3 {
            for (from, to) in moves(64, 1 << 20) {
                let answer = unit.check_lookup(from, &filters, &table);
                assert_eq!(answer.to, Some(to), "round {round}");
                counts.add(&answer);
            }
        }
        // The pages are used in turn and outnumber the entries, so every entry is gone before its next use.
        let expected = LookupCounts {
            asked: 3 * 64,
            filters_fetched: 1,
            misses: 3 * 64,
            replaced: 3 * 64 - 4,
            ..LookupCounts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_filter_that_is_too_small_is_wrong_and_the_table_says_so() {
        let every_third = moves(300, 1 << 30).step_by(3);
        let table = ForwardingTable::of(every_third);
        let filters = Filters::over(table.pages(), 1, 8);
        let mut unit = CheckLookup::new(&Sizes::default());
        let mut counts = LookupCounts::default();
        for (nth, (from, to)) in moves(300, 1 << 30).enumerate() {
            let answer = unit.check_lookup(from, &filters, &table);
            assert_eq!(answer.to, (nth % 3 == 0).then_some(to));
            counts.add(&answer);
        }
        // All 64 bits of the filter are set; the last two pages lie beyond its range.
        assert_eq!(
            (counts.wrong, counts.denied, counts.out_of_range),
            (198, 0, 2)
        );
        assert_eq!((counts.misses, counts.hits), (100, 0));
    }

    #[test]
    fn buffers_that_are_not_invalidated_answer_for_the_last_cycle() {
        let filters = |table: &ForwardingTable| Filters::over(table.pages(), FILTERS, BYTES);
        let (old, new) = (
            ForwardingTable::of(moves(2, 1 << 20)),
            ForwardingTable::of(moves(2, 2 << 20)),
        );
        let mut unit = CheckLookup::new(&Sizes::default());
        let at = VirtAddr(FRAME_BYTES);
        let ask = |unit: &mut CheckLookup<_>, table: &ForwardingTable| {
            unit.check_lookup(at, &filters(table), table).to
        };
        assert_eq!(ask(&mut unit, &old), Some(at + (1 << 20)));
        assert_eq!(ask(&mut unit, &new), Some(at + (1 << 20)));
        unit.invalidate();
        assert_eq!(ask(&mut unit, &new), Some(at + (2 << 20)));
    }
}
