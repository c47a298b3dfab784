//! The hardware that answers `checklookup` (section 4.3).

use firn_hardware::lookup::bloom::Filters;
use firn_hardware::lookup::counts::LookupCounts;
use firn_hardware::lookup::table::{ForwardingTable, Places};
use firn_hardware::lookup::{self, Check, CheckLookup, Sizes, VirtPage};
use firn_media::{Lookup, Move};
use firn_units::{DevAddr, LINE_BYTES, PhysAddr, VirtAddr};

use super::{ENTRY_BYTES, FILTER_CHECK, FILTER_MISS, LOOK_ASIDE};
use crate::DRAM_START;
use crate::mechanism::{Cost, Counts};
use crate::time::cycles;

/// Cycles for software to put a page into its filter: four hashes and four bits.
const FILTER_INSERT: u32 = 20;

/// Filters and table in memory, and the buffers of each core.
pub(super) struct Lookups {
    table_at: DevAddr,
    sizes: Sizes,
    filters: Filters,
    table: ForwardingTable,
    units: Vec<CheckLookup<Places>>,
    counts: LookupCounts,
}

impl Lookups {
    pub(super) fn new(table_at: DevAddr, cores: usize, sizes: Sizes) -> Self {
        Self {
            table_at,
            sizes,
            filters: Filters::default(),
            table: ForwardingTable::default(),
            units: (0..cores).map(|_| CheckLookup::new(&sizes)).collect(),
            counts: LookupCounts::default(),
        }
    }

    /// Software makes the filters, and so touches each of their lines. The table is the plan, which software has
    /// already stored.
    pub(super) fn install(&mut self, moves: &mut dyn Iterator<Item = Move>) -> Cost {
        self.table = ForwardingTable::of(moves.map(|one| (one.from, one.to)));
        let pages: Vec<VirtPage> = self.table.pages().collect();
        self.filters = Filters::over(
            pages.iter().copied(),
            self.sizes.filters,
            self.sizes.filter_bytes,
        );
        let bytes = (self.filters.all().len() * self.sizes.filter_bytes) as u64;
        let lines = (0..bytes).step_by(LINE_BYTES as usize);
        Cost {
            ticks: cycles(FILTER_INSERT) * pages.len() as u64,
            // Volatile memory that nothing else uses.
            loads: lines.map(|at| DRAM_START + (1 << 36) + at).collect(),
        }
    }

    pub(super) fn retire(&mut self) {
        (self.filters, self.table) = (Filters::default(), ForwardingTable::default());
        self.units.iter_mut().for_each(CheckLookup::invalidate);
    }

    pub(super) fn ask(&mut self, core: usize, at: PhysAddr) -> (Lookup, Cost) {
        let at = VirtAddr(at.bytes());
        let answer = self.units[core].check_lookup(at, &self.filters, &self.table);
        self.counts.add(&answer);
        let mut cost = Cost {
            ticks: FILTER_CHECK,
            loads: Vec::new(),
        };
        if answer.check == Check::Fetched {
            cost.ticks += FILTER_MISS;
        }
        if answer.lookup.is_some() {
            cost.ticks += LOOK_ASIDE;
        }
        match answer.lookup {
            Some(lookup::Lookup::Miss { .. }) => cost.loads = self.entry(at).collect(),
            // The tag alone shows that this is no entry of the page.
            Some(lookup::Lookup::NotFound) => cost.loads = self.entry(at).take(1).collect(),
            None | Some(lookup::Lookup::Hit) => {}
        }
        (answer.to.map_or(Lookup::Stays, Lookup::MovesTo), cost)
    }

    /// The lines of a page's entry.
    fn entry(&self, at: VirtAddr) -> impl Iterator<Item = PhysAddr> + use<> {
        let entry = self.table_at.bytes() + VirtPage::holding(at).0 * ENTRY_BYTES;
        let lines = (entry..entry + ENTRY_BYTES).step_by(LINE_BYTES as usize);
        lines.map(PhysAddr)
    }

    pub(super) fn counts(&self) -> Counts {
        let counts = &self.counts;
        vec![
            ("checklookup", counts.asked),
            ("checklookup: out of range", counts.out_of_range),
            ("checklookup: filter says no", counts.denied),
            ("checklookup: filters fetched", counts.filters_fetched),
            ("checklookup: look-aside hits", counts.hits),
            ("checklookup: look-aside misses", counts.misses),
            ("checklookup: filter was wrong", counts.wrong),
        ]
    }
}
