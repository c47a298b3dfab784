//! Optional help that a medium may offer, declared as facts.

use firn_units::VirtAddr;
use thiserror::Error;

/// What a medium offers beyond loads, stores, write-backs and fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// [`crate::Medium::relocate`]: copy and remember which lines reached persistence
    /// (FFCCD section 4.1, the reached bitmap buffer).
    pub relocate: bool,
    /// [`crate::Medium::check_lookup`]: whether an address is being moved, and where to
    /// (FFCCD section 4.3, bloom filter cache and PMFTLB).
    pub check_lookup: bool,
    /// [`crate::Medium::atomic_begin`] and [`crate::Medium::atomic_end`]: all stores between them
    /// become durable together (HOOP section 3, and the log designs it is compared with).
    pub atomic_region: bool,
    /// Plain stores suffice: after a crash the medium is back at its last epoch (ThyNVM section 3).
    pub checkpoints: bool,
    /// Nothing of value lies on the medium: it serves to show what a protocol loses.
    pub simulated: bool,
}

impl Capabilities {
    /// A plain medium: write-backs and fences.
    pub const NONE: Self = Self {
        relocate: false,
        check_lookup: false,
        atomic_region: false,
        checkpoints: false,
        simulated: false,
    };
}

/// An object that is being moved, for [`crate::Medium::install_lookup`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Where references name it, a multiple of 16.
    pub from: VirtAddr,
    /// Where it goes.
    pub to: VirtAddr,
}

/// The answer of [`crate::Medium::check_lookup`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// No object that is being moved begins at the address.
    Stays,
    /// The object moves to this address.
    MovesTo(VirtAddr),
}

/// A capability was used that the medium does not declare. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the medium does not offer `{0}`; look at its capabilities before using them")]
pub struct Unsupported(pub &'static str);
