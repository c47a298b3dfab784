//! `checklookup`: whether an object is being moved, and where to, in one instruction (FFCCD, section 4.3).
//!
//! First a Bloom filter is asked for the object's page; where it says no the instruction is done. Where it
//! says yes the look-aside buffer of the forwarding table is, and if need be the table in memory. A filter
//! may be wrong about a page that is not being moved: the table has nothing for it then.

pub mod bloom;
pub mod forwarding;

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

/// What asking the filters took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The page lies in no filter's range.
    OutOfRange,
    /// The filter for its range was at hand.
    Cached,
    /// It was fetched.
    Fetched,
}

/// What asking for the destination took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// The look-aside buffer had it.
    Hit,
    /// It was fetched from the table.
    Miss,
    /// The table has nothing for the page: the filter was wrong.
    NotFound,
}

/// What the instruction says, and how it came to that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Where the object goes; `None` if it stays.
    pub to: Option<VirtAddr>,
    /// The first step.
    pub check: Check,
    /// The second, if the filter said yes.
    pub lookup: Option<Lookup>,
}

/// What a processor has for the instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckLookup<E> {
    filters: FilterCache,
    look_aside: LookAside<E>,
}

impl<E: forwarding::Entry> CheckLookup<E> {
    /// Empty buffers: of `entries` entries, each for `reach_bytes` of addresses.
    pub fn new(entries: usize, reach_bytes: u64) -> Self {
        Self {
            filters: FilterCache::default(),
            look_aside: LookAside::new(entries, reach_bytes),
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
    use super::forwarding::{ENTRIES, Entry};
    use super::*;

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
            let reach = if narrow { FRAME_BYTES / 4 } else { FRAME_BYTES };
            let mut unit = CheckLookup::new(ENTRIES, reach);
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
        let filters = Filters::over([VirtPage(1), VirtPage(100)], 2, BYTES);
        let mut unit = CheckLookup::new(1, FRAME_BYTES);
        let mut ask = |at| unit.check_lookup(VirtAddr(at), &filters, &table);
        let answer = |to, check, lookup| Answer { to, check, lookup };
        assert_eq!(ask(4096 * 50), answer(None, Check::OutOfRange, None));
        let first = Some(VirtAddr(16));
        assert_eq!(ask(4096), answer(first, Check::Fetched, Some(Lookup::Miss)));
        assert_eq!(ask(4096), answer(first, Check::Cached, Some(Lookup::Hit)));
        // In a page that is moved, and no object's.
        assert_eq!(ask(4112), answer(None, Check::Cached, Some(Lookup::Hit)));
        let second = Some(VirtAddr(32));
        assert_eq!(
            ask(4096 * 100),
            answer(second, Check::Fetched, Some(Lookup::Miss))
        );
        assert_eq!(ask(4096), answer(first, Check::Fetched, Some(Lookup::Miss)));
    }
}
