//! The size of FFCCD's runs, by scale.

use firn_heap::collector::PageSize;

use crate::reproduction::scale::Scale;

/// Objects of the paper's runs (section 6).
const PAPER: u64 = 5_000_000;
/// Injections in each of the paper's settings (section 7.1).
const PAPER_INJECTIONS: u64 = 1_000;
/// Allocations and frees between two polls of the pool by the program. The paper says 'periodically'; at this value the
/// mean of Table 3's normal reductions comes out at a tenth, and everything else follows from it. It is equal at every
/// scale: a cycle ends when nothing that still moves was touched between two polls, which depends on how much is
/// touched. Swept in [`super::sweeps`].
pub(super) const EVERY: u64 = 20;

/// Objects that are inserted first.
pub(super) const fn objects(scale: Scale) -> u64 {
    match scale {
        Scale::Quick => PAPER / 100,
        Scale::Tenth => PAPER / 10,
        Scale::Paper => PAPER,
    }
}

/// Crashes that are injected in each setting of section 7.1.
pub(super) const fn injections(scale: Scale) -> u64 {
    match scale {
        Scale::Quick => PAPER_INJECTIONS / 50,
        Scale::Tenth | Scale::Paper => PAPER_INJECTIONS,
    }
}

/// The pages that count: those of 2 MiB (section 7.2), except where a pool has only a handful of them.
pub(super) const fn pages(scale: Scale) -> PageSize {
    match scale {
        Scale::Quick => PageSize::Small,
        Scale::Tenth | Scale::Paper => PageSize::Huge,
    }
}
