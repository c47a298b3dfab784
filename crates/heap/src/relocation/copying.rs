//! The read barrier, and the copying of an object: by one thread, once (rule 2).

use core::sync::atomic::Ordering;

use firn_format::class::Class;
use firn_format::geometry::Frame;
use firn_format::header::{HEADER_BYTES, ObjectHeader};
use firn_format::reference::RefWord;
use firn_media::{Medium, MediumExt, Scope, Words};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES, round_up};

use super::cycle::{BUSY, COPIED, Cycle, DURABLE, NONE, STORED, Unit, load_frame};
use super::frame_map::Part;
use super::scheme::{Settle, Shown};
use crate::{steps, work};

impl<M: Medium> Cycle<M> {
    /// The read barrier: returns the address at which the program may use the object that `word` names. The program
    /// read `word` from `field` on media. Copies the object if no thread has, and heals the reference in `field`.
    #[cold]
    #[inline(never)]
    pub(crate) fn touch(&self, medium: &M, word: RefWord, field: Option<VirtAddr>) -> VirtAddr {
        let at = word.address();
        if self.asks_hardware() {
            return self.touch_by_hardware(medium, word, field);
        }
        {
            let _scope = medium.scope(Scope::Check);
            load_frame(medium, at);
            match self.part(Frame::holding(at)) {
                None => return at,
                Some(Part::Destination(_)) if !self.has_lost_copies(medium) => return at,
                Some(_) => {}
            }
        }
        let found = {
            let _scope = medium.scope(Scope::Lookup);
            self.find_in_tables(medium, at)
        };
        let Some(unit) = found else {
            return at;
        };
        self.relocate(medium, unit);
        if let Some(field) = field
            && unit.to != at
        {
            let _scope = medium.scope(Scope::Reference);
            heal(medium, field, word, unit);
        }
        unit.to
    }

    /// Whether a reference on media may name a destination without a copy (rule 8).
    #[inline]
    pub(super) fn has_lost_copies(&self, medium: &M) -> bool {
        self.resumed && medium.keeps(&steps::FOUND_BY_DESTINATION)
    }

    /// Makes the object at `at`, or its destination if it moves, usable.
    pub(crate) fn bring(&self, medium: &M, at: VirtAddr) {
        if let Some(unit) = self.find(medium, at) {
            self.relocate(medium, unit);
        }
    }

    /// Makes the unit's copy usable.
    #[inline]
    pub(crate) fn relocate(&self, medium: &M, unit: Unit) {
        if self.states.load(unit.index as usize) < COPIED {
            let from = self.source_of(unit.index).unwrap_or(unit.to);
            self.claim(medium, unit, from);
        }
    }

    /// Relocates a unit whose source is known. Returns how many objects this thread copied for it.
    #[inline]
    pub(crate) fn relocate_from(&self, medium: &M, unit: Unit, from: VirtAddr) -> u64 {
        match self.states.load(unit.index as usize) < COPIED {
            true => self.claim(medium, unit, from),
            false => 0,
        }
    }

    /// Copies the unit and its group, or waits for the thread that does. Returns how many objects this thread copied.
    fn claim(&self, medium: &M, unit: Unit, from: VirtAddr) -> u64 {
        medium.work(work::MOVED);
        if self.scheme.relocates() {
            return self.claim_group(medium, unit);
        }
        if self.scheme.claims && !self.takes(medium, unit.index) {
            return 0;
        }
        self.move_unit(medium, unit, from);
        self.count_copy();
        1
    }

    /// Rule 2: one thread copies, the losers wait. Returns whether this thread copies.
    pub(super) fn takes(&self, medium: &M, unit: u64) -> bool {
        let index = unit as usize;
        let taken = self.states.compare_exchange(index, NONE, BUSY).is_ok()
            || medium.leaves_out(&steps::CLAIM);
        if !taken {
            let mut attempt = 0;
            while self.states.load(index) < COPIED {
                medium.pause(attempt);
                attempt += 1;
            }
        }
        taken
    }

    /// Copies that this process has made so far; a group that is copied together counts once.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.load(Ordering::Relaxed)
    }

    /// Counts a copy.
    pub(super) fn count_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the unit's copy may be used.
    pub(crate) fn is_copied(&self, unit: u64) -> bool {
        self.states.load(unit as usize) >= COPIED
    }

    /// Makes the unit's copy usable.
    pub(super) fn copied(&self, unit: u64) {
        if !self.is_copied(unit) {
            self.states.store(unit as usize, COPIED);
        }
    }

    fn move_unit(&self, medium: &M, unit: Unit, from: VirtAddr) {
        let needs_flush = medium.domain().needs_flush();
        let scheme = self.scheme;
        {
            let _scope = medium.scope(Scope::Copy);
            let len = self.copy(medium, from, unit.to);
            if scheme.write_back_copy {
                medium.write_back_for(&steps::SCHEME_COPY_WRITE_BACK, unit.to, len);
            }
            if scheme.fence_copy && needs_flush {
                medium.fence_for(&steps::SCHEME_COPY_FENCE);
            }
        }
        let _scope = medium.scope(Scope::State);
        // Where visible stores are durable in their order, the word after the copy suffices.
        let state = if !needs_flush || scheme.settle == Settle::AtCopy {
            let at = self.settled_at(unit.index);
            medium.store_u64(at, 1);
            if scheme.shown == Shown::AtStore {
                self.states.store(unit.index as usize, DURABLE);
            }
            medium.write_back_for(&steps::SCHEME_SETTLED_WRITE_BACK, at, WORD_BYTES);
            if scheme.fence_settled && needs_flush {
                medium.fence_for(&steps::SCHEME_SETTLED_FENCE);
            }
            if scheme.fence_settled || !needs_flush {
                DURABLE
            } else {
                STORED
            }
        } else {
            COPIED
        };
        self.states.store(unit.index as usize, state);
    }

    /// Copies an object by ordinary stores. Returns its length.
    pub(super) fn copy(&self, medium: &M, from: VirtAddr, to: VirtAddr) -> u64 {
        let len = self.bytes_of(medium, from, to);
        medium.copy(from, to, len);
        len
    }

    /// Bytes of the object at `from`: its slot without the unrequested rest.
    pub(crate) fn bytes_of(&self, medium: &M, from: VirtAddr, to: VirtAddr) -> u64 {
        let slot = match self.map.get(Frame::holding(to)) {
            Some(Part::Destination(index)) => {
                let run = &self.destinations[index];
                run.class
                    .map_or(run.frames * FRAME_BYTES, Class::slot_bytes)
            }
            _ => HEADER_BYTES,
        };
        let slack = ObjectHeader(medium.load_u64(from)).slack_bytes();
        round_up(slot.saturating_sub(slack).max(HEADER_BYTES), WORD_BYTES)
    }
}

/// Makes a reference to a moved object name its destination, T3 and C7: replaces only the old reference, never the
/// program's own update. Returns whether it was still there.
pub(crate) fn heal<M: Medium>(medium: &M, field: VirtAddr, old: RefWord, unit: Unit) -> bool {
    let healed = RefWord::new(old.pool(), unit.to).with_tag(old.tag());
    if medium.leaves_out(&steps::HEAL_BY_EXCHANGE) {
        medium.store_u64(field, healed.0);
        return true;
    }
    let found = medium.compare_exchange_u64(field, old.0, healed.0);
    found.is_ok()
}
