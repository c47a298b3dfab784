//! How large runs are.

use firn_machine::description::{Buffer, Description};
use firn_units::LINE_BYTES;

use super::error::ReproductionError;

/// The size of runs, relative to the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A hundredth, in pages of 4 KiB, on a machine with caches and translation buffers as much smaller as there are
    /// fewer objects than at a tenth: seconds per run.
    Quick,
    /// A tenth, on the machine as it is.
    Tenth,
    /// As in the paper.
    Paper,
}

/// Divisor of the caches' sizes for the smallest runs.
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

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Tenth => "tenth",
            Self::Paper => "paper",
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
