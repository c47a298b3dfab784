//! How large runs are.

use firn_heap::collector::PageSize;
use firn_machine::description::{Buffer, Description};
use firn_units::LINE_BYTES;

use super::ReproductionError;

/// How large runs are, against the paper's five million objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A hundredth, on a machine whose caches and translation buffers are smaller by as much as objects are fewer
    /// than at a tenth, counting pages of 4 KiB: seconds a run.
    Quick,
    /// A tenth, on the machine as it is.
    Tenth,
    /// As printed.
    Paper,
}

/// Objects of the paper's runs (section 6).
const PAPER: u64 = 5_000_000;
/// Injections in each setting of the paper's (section 7.1).
const PAPER_INJECTIONS: u64 = 1_000;
/// Allocations and frees between two looks of the program at its pool. The paper says 'periodically'; this is where
/// the mean of Table 3's normal reductions comes out at a tenth, and everything else follows from it. The same at
/// every scale: a cycle ends when nothing that still moves was touched between two looks, which is a question of how
/// much is touched. Swept in [`super::artefacts`].
pub(super) const EVERY: u64 = 20;
/// Parts that the smallest runs take of caches.
const QUICK_CACHES: u64 = 10;

impl Scale {
    /// The scale of this name.
    ///
    /// Errors: there is none.
    pub fn named(name: &str) -> Result<Self, ReproductionError> {
        let all = [Self::Quick, Self::Tenth, Self::Paper];
        let found = all.into_iter().find(|scale| scale.name() == name);
        found.ok_or_else(|| ReproductionError::Scale {
            name: name.to_owned(),
        })
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Tenth => "tenth",
            Self::Paper => "paper",
        }
    }

    /// Objects that are inserted first.
    pub const fn objects(self) -> u64 {
        match self {
            Self::Quick => PAPER / 100,
            Self::Tenth => PAPER / 10,
            Self::Paper => PAPER,
        }
    }

    /// Crashes that are injected in each setting of section 7.1.
    pub(super) const fn injections(self) -> u64 {
        match self {
            Self::Quick => PAPER_INJECTIONS / 50,
            Self::Tenth | Self::Paper => PAPER_INJECTIONS,
        }
    }

    /// The pages that count: those of 2 MiB (section 7.2), but where a pool has a handful of them.
    pub(super) const fn pages(self) -> PageSize {
        match self {
            Self::Quick => PageSize::Small,
            Self::Tenth | Self::Paper => PageSize::Huge,
        }
    }

    /// The machine of this scale.
    pub(super) fn machine(self, mut described: Description) -> Description {
        if self != Self::Quick {
            return described;
        }
        for cache in &mut described.caches {
            let sets = cache.bytes / LINE_BYTES / u64::from(cache.ways) / QUICK_CACHES;
            cache.bytes = sets.max(1) * u64::from(cache.ways) * LINE_BYTES;
        }
        let translation = &mut described.translation;
        for buffer in translation.small.iter_mut().chain(&mut translation.huge) {
            shrink(buffer);
        }
        described
    }
}

fn shrink(buffer: &mut Buffer) {
    let sets = buffer.entries / buffer.ways / QUICK_CACHES as u32;
    buffer.entries = sets.max(1) * buffer.ways;
}
