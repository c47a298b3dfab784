//! The mechanisms that this medium offers: FFCCD's `relocate` and `checklookup` (FFCCD, section 4).

use std::sync::Arc;

use firn_hardware::lookup::Sizes;
use firn_hardware::relocate::{Unit, instructions};
use firn_media::{CheckLookup, Lookup, Move, Offers, Relocate};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use crate::medium::shared::Shared;
use crate::memory::cells::{lines_of, mark_of};

/// The mechanisms that the medium's options ask for.
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

/// `relocate`, with one mark per line in place of the reached bitmap's buffer.
struct MarkedCopies {
    shared: Arc<Shared>,
    unit: Unit,
}

impl Relocate for MarkedCopies {
    /// Stores the words of a line, then its mark. A crash between them may leave words of a copy that do not count as
    /// reached, which claims less than there is and nothing false. The buffer of reached bits is flushed to memory when
    /// power fails, so a mark that reached persistence is all that matters here. The buffer's bounds are modelled in
    /// `firn-hardware`; after a crash, a buffer of any size gives equal answers.
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
        for line in lines_of(at.bytes(), len) {
            // The bitmap is cleared, but not the bit that a cached line still carries: it comes back with the line.
            if !self.shared.lock().carries_mark(line) {
                self.shared.store_mark(line, false);
            }
        }
        self.shared.write_back(at.0, len);
    }
}

/// `checklookup`, with one processor per thread.
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
