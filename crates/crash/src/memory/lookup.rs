//! `checklookup` on this medium: filters and forwarding table in memory, and each processor's buffers (FFCCD, section
//! 4.3).
//!
//! Every simulated thread has a processor of its own. All of it is volatile: a crash leaves nothing, and recovery
//! installs it anew. A lookup is no scheduling point, because no answer changes during one.

use firn_hardware::lookup::bloom::Filters;
use firn_hardware::lookup::counts::LookupCounts;
use firn_hardware::lookup::table::{ForwardingTable, Places};
use firn_hardware::lookup::{CheckLookup, Sizes};
use firn_media::{Lookup, Move};
use firn_units::VirtAddr;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The lookup hardware of all threads.
#[derive(Default)]
pub(crate) struct Lookups {
    filters: Filters,
    table: ForwardingTable,
    /// By thread.
    processors: Vec<CheckLookup<Places>>,
    pub(crate) counts: LookupCounts,
    /// Identifies the installed moves, whatever their order; zero if there are none.
    pub(crate) digest: u64,
}

impl Lookups {
    /// Replaces the moves in memory.
    pub(crate) fn install(&mut self, moves: impl Iterator<Item = Move>, sizes: &Sizes) {
        self.digest = 0;
        let digest = &mut self.digest;
        self.table = ForwardingTable::of(moves.map(|one| {
            *digest ^= xxh3_64_with_seed(&one.to.bytes().to_le_bytes(), one.from.bytes());
            (one.from, one.to)
        }));
        self.filters = Filters::over(self.table.pages(), sizes.filters, sizes.filter_bytes);
    }

    /// Ends all moves, and makes every processor forget them.
    pub(crate) fn retire(&mut self) {
        (self.filters, self.table) = (Filters::default(), ForwardingTable::default());
        self.digest = 0;
        self.processors.iter_mut().for_each(CheckLookup::invalidate);
    }

    /// The answer of the thread's processor.
    pub(crate) fn ask(&mut self, thread: usize, at: VirtAddr, sizes: &Sizes) -> Lookup {
        while self.processors.len() <= thread {
            self.processors.push(CheckLookup::new(sizes));
        }
        let processor = &mut self.processors[thread];
        let answer = processor.check_lookup(at, &self.filters, &self.table);
        self.counts.add(&answer);
        answer.to.map_or(Lookup::Stays, Lookup::MovesTo)
    }
}
