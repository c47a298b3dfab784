//! When a copy counts: the settled words (rules 3, 4, 5 and 9), and copies that a crash has left.

use firn_format::class::Class;
use firn_format::plan::Entry;
use firn_media::{Medium, MediumExt, Words};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

use super::cycle::{COPIED, Cycle, DURABLE, NONE, STORED, Unit};
use super::plan::frames_of;
use crate::steps;

impl<M: Medium> Cycle<M> {
    /// Prepares stores to a unit without a log (rule 9): from this thread's next fence on, which comes before any of
    /// these stores counts, the copy counts durably. Issues one fence, if no thread has done so yet.
    pub(crate) fn settle_for_stores(&self, medium: &M, unit: Unit) {
        let state = self.states.load(unit.index as usize);
        // With such hardware a line that reached persistence counts by itself.
        if state == DURABLE || self.scheme.relocates() {
            return;
        }
        if state != STORED {
            let len = self.bytes_of(medium, unit.to, unit.to);
            medium.write_back_for(&steps::RAW_COPY_WRITE_BACK, unit.to, len);
            medium.fence_for(&steps::RAW_COPY_FENCE);
            self.settle(medium, unit.index);
        }
        // Rule 5: whichever thread stored it.
        let at = self.settled_at(unit.index);
        medium.write_back_for(&steps::RAW_SETTLED_WRITE_BACK, at, WORD_BYTES);
    }

    /// Writes back the copies of an entry whose objects have all moved, except those that count already.
    pub(crate) fn write_back_copies(&self, medium: &M, entry: &Entry) {
        let bytes = entry
            .class
            .map_or(frames_of(entry) * FRAME_BYTES, Class::slot_bytes);
        let (mut start, mut len) = (VirtAddr(0), 0);
        for (unit, _) in self.units_of(entry) {
            // Rule 4: the copy of a settled unit was durable before.
            if self.states.load(unit.index as usize) >= STORED {
                continue;
            }
            if start + len != unit.to {
                medium.write_back(start, len);
                (start, len) = (unit.to, 0);
            }
            len += bytes;
        }
        medium.write_back(start, len);
    }

    /// Stores the settled words of an entry and writes them back; the copies are durable (rule 4). A word that another
    /// thread stored may still be in its cache, so it is written back, too (rule 5).
    pub(crate) fn settle_all(&self, medium: &M, entry: &Entry) {
        let count = entry.count();
        for unit in entry.unit..entry.unit + count {
            if self.states.load(unit as usize) < STORED {
                self.settle(medium, unit);
            }
        }
        medium.write_back(self.settled_at(entry.unit), count * WORD_BYTES);
    }

    /// Notes that the settled words of an entry are durable.
    pub(crate) fn settled_all_durably(&self, entry: &Entry) {
        for unit in entry.unit..entry.unit + entry.count() {
            self.settled_durably(unit);
        }
    }

    /// Prepares the change of a unit, before the log's fence: its lines must be durable under that
    /// fence (rule 3, C4). Returns whether the change must also make the settled word durable.
    pub(crate) fn before_change(&self, medium: &M, unit: Unit) -> bool {
        match self.states.load(unit.index as usize) {
            // A durable home lies in a line that reached persistence, and such a line counts.
            _ if self.scheme.relocates() => false,
            DURABLE => false,
            STORED => medium.keeps(&steps::SETTLED_BY_EVERY_ENTRY),
            _ => {
                let len = self.bytes_of(medium, unit.to, unit.to);
                medium.write_back_for(&steps::COPY_WRITE_BACK, unit.to, len);
                true
            }
        }
    }

    /// Settles a unit, strictly after the log's fence (rule 4). The caller writes the word back with its homes,
    /// whichever thread stored it first (rule 5, C5).
    pub(crate) fn settle(&self, medium: &M, unit: u64) {
        medium.store_u64(self.settled_at(unit), 1);
        self.states.store(unit as usize, STORED);
    }

    /// Notes that a unit's settled word is durable.
    pub(crate) fn settled_durably(&self, unit: u64) {
        self.states.store(unit as usize, DURABLE);
    }

    /// Copies a unit again if its copy does not count yet, and writes it back. The unit's state becomes that of a
    /// usable copy that is not settled yet.
    pub(crate) fn recover_unit(&self, medium: &M, unit: u64) {
        if self.states.load(unit as usize) != NONE && medium.keeps(&steps::SETTLED_STAYS) {
            return;
        }
        if let (Some(from), Some(to)) = (self.source_of(unit), self.destination(unit)) {
            let len = self.copy(medium, from, to);
            medium.write_back_for(&steps::RECOVERED_COPY_WRITE_BACK, to, len);
            self.states.store(unit as usize, COPIED);
        }
    }

    /// Figure 7b: copies settled units again whose copies differ from their sources.
    pub(crate) fn recover_different(&self, medium: &M) {
        for unit in 0..self.header.units {
            let (Some(from), Some(to)) = (self.source_of(unit), self.destination(unit)) else {
                continue;
            };
            if self.states.load(unit as usize) == NONE {
                continue;
            }
            let len = self.bytes_of(medium, from, to);
            let differs = (0..len / WORD_BYTES).any(|i| {
                medium.load_u64(from + i * WORD_BYTES) != medium.load_u64(to + i * WORD_BYTES)
            });
            if differs {
                self.copy(medium, from, to);
                medium.write_back(to, len);
            }
        }
    }
}
