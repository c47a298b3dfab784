//! The relocations of the open cycle, object by object, for checkers.

use firn_media::Medium;
use firn_units::VirtAddr;

use crate::pool::Pool;
use crate::relocation::Unit;
use crate::relocation::cycle::Cycle;

/// One object that the open cycle moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Its source.
    pub from: VirtAddr,
    /// Its destination.
    pub to: VirtAddr,
    /// Bytes of its copy, with header and padding to words.
    pub bytes: u64,
    /// Whether it lives at its destination, or still at its source.
    pub moved: bool,
}

impl<M: Medium> Cycle<M> {
    fn relocations(&self, medium: &M) -> Vec<Relocation> {
        let units = self.entries.iter().flat_map(|entry| self.units_of(entry));
        let relocation = |(unit, from): (Unit, VirtAddr)| Relocation {
            from,
            to: unit.to,
            bytes: self.bytes_of(medium, from, unit.to),
            moved: self.is_copied(unit.index),
        };
        units.map(relocation).collect()
    }

    fn moved_units(&self) -> u64 {
        let units = 0..self.header.units;
        units.filter(|&unit| self.is_copied(unit)).count() as u64
    }
}

impl<M: Medium> Pool<M> {
    /// The relocations of the open cycle by ascending sources, with each object's current place. Empty if no cycle is
    /// open. Moves nothing. FFCCD's second validation checks this against media (section 7.1).
    ///
    /// Concurrency: an object that is being copied counts as not moved yet.
    pub fn relocations(&self) -> Vec<Relocation> {
        let medium = &self.inner.medium;
        let cycle = self.inner.collector.cycle(medium);
        cycle.map_or_else(Vec::new, |cycle| cycle.relocations(medium))
    }

    /// How many objects of the open cycle live at their destination, whichever thread moved them. `None` if no cycle is
    /// open.
    pub fn moved_objects(&self) -> u64 {
        let cycle = self.inner.collector.cycle(&self.inner.medium);
        cycle.map_or(0, |cycle| cycle.moved_units())
    }

    /// How many copies the open cycle has made, if one is open: while the number stays the same, nothing has moved.
    pub(super) fn copies(&self) -> Option<u64> {
        let cycle = self.inner.collector.cycle(&self.inner.medium);
        cycle.map(|cycle| cycle.copies())
    }
}
