//! What the hardware is told of an open cycle, under a scheme that asks it where objects go (FFCCD, section
//! 4.3).
//!
//! It knows the sources. In a cycle that a crash interrupted references may name destinations that nobody has
//! copied to (rule 8), so it is told of those as well, as objects that move to where they are, and one
//! question is all that the read barrier asks. Which unit an object is follows from its destination.

use firn_format::class::Class;
use firn_media::{Lookup, Medium, MediumExt, Move, Unsupported};
use firn_units::VirtAddr;

use super::cycle::{Cycle, destination_of};
use crate::steps;

impl<M: Medium> Cycle<M> {
    /// Whether the hardware says where objects go.
    #[inline(always)]
    pub(super) fn asks_hardware(&self) -> bool {
        M::MAY_CHECK_LOOKUP && self.scheme.checks_lookup()
    }

    /// Tells the hardware where objects go, before anybody asks about this cycle.
    pub(super) fn install_lookup(&self, medium: &M) {
        if self.asks_hardware() && medium.keeps(&steps::LOOKUP_INSTALLED) {
            has_lookup(medium.install_lookup(self.moves(medium)));
        }
    }

    /// The same of a cycle that was interrupted: the hardware has forgotten it, or what it may know is of a
    /// process that is no more.
    pub(crate) fn restore_lookup(&self, medium: &M) {
        if self.asks_hardware() && medium.keeps(&steps::LOOKUP_RESTORED) {
            has_lookup(medium.retire_lookup());
            has_lookup(medium.install_lookup(self.moves(medium)));
        }
    }

    /// Objects stay from here on. While no operation is open, and nobody will ask about this cycle.
    pub(super) fn retire_lookup(&self, medium: &M) {
        if self.asks_hardware() && medium.keeps(&steps::LOOKUP_RETIRED) {
            has_lookup(medium.retire_lookup());
        }
    }

    /// Where the hardware says that the object at `at` goes.
    pub(super) fn looked_up(&self, medium: &M, at: VirtAddr) -> Option<VirtAddr> {
        match has_lookup(medium.check_lookup(at)) {
            Lookup::Stays => None,
            Lookup::MovesTo(to) => Some(to),
        }
    }

    fn moves(&self, medium: &M) -> impl Iterator<Item = Move> {
        let sources = self.entries.iter().flat_map(|entry| {
            let bytes = entry.class.map_or(0, Class::slot_bytes);
            (0..entry.count()).filter_map(move |rank| {
                Some(Move {
                    from: entry.source.start() + entry.slot_of_rank(rank)? * bytes,
                    to: destination_of(entry, rank),
                })
            })
        });
        let may_be_named = self.has_lost_copies(medium);
        let runs = self.destinations.iter().filter(move |_| may_be_named);
        let destinations = runs.flat_map(|run| {
            let bytes = run.class.map_or(0, Class::slot_bytes);
            (0..run.units).map(move |slot| {
                let at = run.frame.start() + slot * bytes;
                Move { from: at, to: at }
            })
        });
        sources.chain(destinations)
    }
}

/// A cycle of a scheme that asks the hardware begins, and is gone on with, where the medium can answer.
fn has_lookup<R>(done: Result<R, Unsupported>) -> R {
    done.expect("the medium has the instruction that the scheme asks")
}
