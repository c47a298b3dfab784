//! The changes of an undo transaction so far.

use std::collections::BTreeMap;

use firn_media::Medium;
use firn_units::VirtAddr;

use super::changes::Change;
use super::ranges::Ranges;
use super::undo::Log;
use crate::error::Error;
use crate::inner::Inner;
use crate::locks::LockSet;
use crate::roots::{Slots, Storing};

/// The changes of an open transaction.
#[derive(Default)]
pub(crate) struct Open {
    pub(super) log: Log,
    /// Ranges that may be stored to, and are written back at commit.
    pub(super) ranges: Ranges,
    pub(super) allocated: Listed,
    /// How many of those allocated have the undoing of their bits in the log.
    pub(super) logged: usize,
    pub(super) freed: Listed,
    pub(super) locks: LockSet,
    /// Places of the root table to which it has stored; other threads do not read them until it ends.
    pub(super) roots: Vec<Storing>,
}

/// Changes in the order in which they were made, with a search by slot.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) changes: Vec<Change>,
    /// The position of each in the list, once it is long.
    pub(super) places: BTreeMap<VirtAddr, usize>,
}

/// Up to this many changes are searched one by one.
const FEW: usize = 16;

impl Listed {
    pub(super) fn push(&mut self, change: Change) {
        self.changes.push(change);
        let known = self.places.len();
        if self.changes.len() > FEW {
            let new = self.changes[known..].iter().enumerate();
            let places = new.map(|(i, change)| (change.slot.at, known + i));
            self.places.extend(places);
        }
    }

    pub(super) fn find(&self, at: VirtAddr) -> Option<&Change> {
        match self.changes.len() {
            0..=FEW => self.changes.iter().find(|change| change.slot.at == at),
            _ => self.places.get(&at).map(|&place| &self.changes[place]),
        }
    }

    pub(super) fn clear(&mut self) {
        self.changes.clear();
        // Clearing even an empty tree takes time.
        if !self.places.is_empty() {
            self.places.clear();
        }
    }
}

impl Open {
    /// Forgets everything, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.log.clear();
        self.ranges.clear();
        self.allocated.clear();
        self.logged = 0;
        self.freed.clear();
    }

    /// Places of the root table to which it has stored.
    pub(crate) fn own_roots(&self) -> Slots {
        let mut own = Slots::default();
        self.roots.iter().for_each(|root| own.insert(root.place()));
        own
    }

    /// Whether it has stored to any.
    pub(crate) fn stores_roots(&self) -> bool {
        !self.roots.is_empty()
    }

    /// Records, for the next batch, how to undo the bits of objects allocated since the last call. Until that batch is
    /// logged, the bits keep their old values.
    pub(super) fn save_allocated_bits(&mut self) {
        let new = &self.allocated.changes[self.logged..];
        self.log.save_bits(new, false);
    }

    /// Logs the records as a batch.
    ///
    /// Errors: as [`Log::append`].
    pub(super) fn append<M: Medium>(&mut self, inner: &Inner<M>) -> Result<(), Error> {
        self.log.append(inner)?;
        self.logged = self.allocated.changes.len();
        Ok(())
    }
}
