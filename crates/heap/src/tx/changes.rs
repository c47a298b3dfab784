//! The changes of a transaction so far.

use firn_format::header::TypeId;
use firn_units::VirtAddr;

use super::write_set::WriteSet;
use crate::alloc::Slot;
use crate::locks::LockSet;
use crate::relocation::Unit;
use crate::roots::Slots;

/// The changes of a transaction so far.
pub(crate) struct Changes {
    pub(super) writes: WriteSet,
    pub(super) allocated: Vec<Change>,
    pub(super) freed: Vec<Change>,
    /// Slots of objects that this transaction allocated and freed.
    pub(super) short_lived: Vec<Slot>,
    pub(super) locks: LockSet,
    /// Places of the root table to which it has stored.
    pub(super) roots: Slots,
    /// A large object was written at home: its lines need a fence before the entry.
    pub(super) wrote_home: bool,
    /// References that were stored while marking goes on.
    pub(super) linked: Vec<VirtAddr>,
    /// Scratch for the moved objects that a commit changes.
    pub(super) units: Vec<Unit>,
    pub(super) scratch: Vec<u64>,
}

/// An object that came or goes.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) slot: Slot,
    pub(crate) type_id: TypeId,
    pub(crate) requested: u64,
}

impl Changes {
    pub(crate) fn new(lane: usize) -> Self {
        Self {
            writes: WriteSet::new(),
            allocated: Vec::new(),
            freed: Vec::new(),
            short_lived: Vec::new(),
            locks: LockSet::new(lane),
            roots: Slots::default(),
            wrote_home: false,
            linked: Vec::new(),
            units: Vec::new(),
            scratch: Vec::new(),
        }
    }
}
