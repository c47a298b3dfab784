//! The mechanisms that this medium offers: FFCCD's `relocate` and `checklookup` (FFCCD, section 4).

use std::sync::Arc;

use firn_hardware::lookup::Sizes;
use firn_hardware::relocate::{Unit, instructions};
use firn_media::{CheckLookup, Lookup, Move, Offers, Relocate};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use crate::medium::shared::Shared;
use crate::memory::cells::{lines_of, mark_of};

/// What the medium's options ask for.
pub(crate) fn offers(shared: &Arc<Shared>) -> Offers {
    let mut offers = Offers::NONE;
    if let Some(unit) = shared.options.relocate {
        let shared = Arc::clone(shared);
        offers = offers.with::<dyn Relocate>(Box::new(MarkedCopies { shared, unit }));
    }
    if let Some(sizes) = shared.options.lookup {
        let shared = Arc::clone(shared);
        offers = offers.with::<dyn CheckLookup>(Box::new(Processors { shared, sizes }));
    }
    offers
}

fn line_number(at: VirtAddr) -> u64 {
    at.bytes() / LINE_BYTES
}

/// `relocate`, with a mark a line in the place of the buffer of reached bits.
struct MarkedCopies {
    shared: Arc<Shared>,
    unit: Unit,
}

impl Relocate for MarkedCopies {
    /// The words of a line, then its mark: a crash between may leave words of a copy that do not count as
    /// reached, which says less than there is and nothing wrong. The buffer of reached bits goes to memory
    /// when power fails, so that a mark which reached persistence is all there is to it here; its bounds
    /// stand in `firn-hardware`, where a buffer of any size says the same afterwards.
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        let stores = instructions(from, to, len).flat_map(|one| one.stores(self.unit));
        for store in stores {
            let words = store.len.div_ceil(WORD_BYTES);
            let (from, to) = (
                store.from.bytes() / WORD_BYTES,
                store.to.bytes() / WORD_BYTES,
            );
            for word in 0..words {
                self.shared.store(to + word, self.shared.load(from + word));
            }
            self.shared.store_mark(line_number(store.to), true);
        }
    }

    fn reached(&self, at: VirtAddr) -> bool {
        self.shared.load(mark_of(line_number(at))) != 0
    }

    fn any_reached(&self, at: VirtAddr, len: u64) -> bool {
        self.shared.any_marked(lines_of(at.bytes(), len))
    }

    fn unless_reached(&self, at: VirtAddr, copy: &mut dyn FnMut()) {
        let line = line_number(at);
        match self.shared.begin_completion(line) {
            Some(true) => {
                copy();
                self.shared.end_completion(line);
            }
            Some(false) => {}
            None if self.reached(at) => {}
            None => copy(),
        }
    }

    fn clear_reached(&self, at: VirtAddr, len: u64) {
        let lines = lines_of(at.bytes(), len);
        for line in lines.clone() {
            // The bitmap is cleared, the bit that a cached line still carries is not: it comes back with
            // the line.
            if !self.shared.lock().carries_mark(line) {
                self.shared.store_mark(line, false);
            }
        }
        self.shared.write_back(lines);
    }
}

/// `checklookup`, with a processor a thread.
struct Processors {
    shared: Arc<Shared>,
    sizes: Sizes,
}

impl CheckLookup for Processors {
    fn install_lookup(&self, moves: &mut dyn Iterator<Item = Move>) {
        self.shared.lock().lookups.install(moves, &self.sizes);
    }

    fn retire_lookup(&self) {
        self.shared.lock().lookups.retire();
    }

    fn check_lookup(&self, at: VirtAddr) -> Lookup {
        let mut state = self.shared.lock();
        let thread = state.current;
        state.lookups.ask(thread, at, &self.sizes)
    }
}
