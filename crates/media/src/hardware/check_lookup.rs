//! Finding where objects go.

use firn_units::VirtAddr;

/// An object that is being moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Its address in references, a multiple of 16.
    pub from: VirtAddr,
    /// Where it goes.
    pub to: VirtAddr,
}

/// The answer of [`CheckLookup::check_lookup`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// No object that is being moved begins at the address.
    Stays,
    /// The object moves to this address.
    MovesTo(VirtAddr),
}

/// An instruction `checklookup`: filters and buffers of every processor over a forwarding table in memory.
///
/// Source: FFCCD, section 4.3 (bloom filter cache and PMFTLB).
pub trait CheckLookup: Send + Sync {
    /// Installs filters over the pages of these objects and a forwarding table for [`CheckLookup::check_lookup`],
    /// replacing the previous ones. Processors keep their buffered parts of the old ones, so
    /// [`CheckLookup::retire_lookup`] must come between two cycles. Nobody may look up meanwhile.
    ///
    /// Crash: nothing of this is durable; media say where objects go.
    fn install_lookup(&self, moves: &mut dyn Iterator<Item = Move>);

    /// Removes the filters and the table and empties every processor's buffers: objects stay from here on.
    fn retire_lookup(&self);

    /// Asks whether the object at `at` is being moved, and to where.
    ///
    /// Source: FFCCD, section 4.3.2.
    fn check_lookup(&self, at: VirtAddr) -> Lookup;
}
