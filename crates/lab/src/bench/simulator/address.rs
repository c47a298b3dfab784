//! The addresses of patterns.

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
/// More than any cache holds.
pub(super) const LARGE: u64 = 512 * MIB;
/// One access in this many is a store.
pub(super) const STORES: u64 = 4;

/// Parts into which the whole is divided for shares.
const PARTS: usize = 1024;
/// Shares of the accesses that miss the nearest cache, the next one, and the last: in [`PARTS`], as near as possible to
/// 5, 1 and 0.1 percent.
const BEYOND: [usize; 3] = [51, 10, 1];

/// Addresses of working sets that fit the nearest cache, the next one, the last one and memory: 95, 4, 0.9 and 0.1
/// percent.
pub(super) struct Mix {
    masks: Box<[u64; PARTS]>,
    random: fastrand::Rng,
}

impl Mix {
    /// The mix whose largest working set has `largest` bytes.
    pub(super) fn new(seed: u64, largest: u64) -> Self {
        let mut masks = Box::new([16 * KIB - 1; PARTS]);
        for (beyond, bytes) in BEYOND.into_iter().zip([128 * KIB, MIB, largest]) {
            masks[..beyond].fill(bytes - 1);
        }
        Self {
            masks,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        let random = self.random.u64(..);
        (random / PARTS as u64) & self.masks[random as usize % PARTS]
    }
}
