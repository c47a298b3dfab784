//! Finding where objects go.

use firn_units::VirtAddr;

/// An object that is being moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Where references name it, a multiple of 16.
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
    /// Puts filters over the pages of these objects, and a forwarding table of them, where
    /// [`CheckLookup::check_lookup`] finds them, in the place of those that are there. What processors have at hand
    /// of those they keep: [`CheckLookup::retire_lookup`] comes between two cycles. Nobody asks meanwhile.
    ///
    /// Crash: nothing is durable; what is on media says where objects go.
    fn install_lookup(&self, moves: &mut dyn Iterator<Item = Move>);

    /// Takes filters and table away, and empties the buffers of every processor: objects stay from here on.
    fn retire_lookup(&self);

    /// Asks whether the object at `at` is being moved, and where to.
    ///
    /// Source: FFCCD, section 4.3.2.
    fn check_lookup(&self, at: VirtAddr) -> Lookup;
}
