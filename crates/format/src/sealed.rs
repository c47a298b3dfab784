//! Words that change in one store and still carry a check.
//!
//! A sealed word holds a value of [`VALUE_BITS`] bits and, above it, check bits that depend on the value and on the
//! word's purpose. A word never tears, so a sealed word that does not open was damaged.

use firn_units::VirtAddr;

use crate::FormatError;

/// Bits of a sealed value.
pub const VALUE_BITS: u32 = 52;
/// The largest sealed value.
pub const MAX_VALUE: u64 = (1 << VALUE_BITS) - 1;

/// The purpose of a sealed word. The check depends on it, so that one word cannot be taken for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Seal {
    /// All lower LSNs are durable at home (protocol: `W_pool`).
    Watermark = 1,
    /// The collector's phase.
    Phase = 2,
    /// End of the type registry, in bytes.
    RegistryEnd = 3,
    /// LSN of a lane's last finished undo transaction.
    UndoDone = 4,
    /// A frame's state.
    Frame = 5,
    /// Length of the pool, in chunks.
    Length = 6,
    /// Chunk from which frames were last taken: the first place to look for free ones.
    Frontier = 7,
    /// First frame of the plan of the latest retained cycle.
    Kept = 8,
    /// In a retained plan, the plan of the previous retained cycle.
    KeptBefore = 9,
}

impl Seal {
    const fn what(self) -> &'static str {
        match self {
            Seal::Watermark => "the transaction watermark",
            Seal::Phase => "the collector's phase",
            Seal::RegistryEnd => "the end of the type registry",
            Seal::UndoDone => "the undo mark of a lane",
            Seal::Frame => "a frame word",
            Seal::Length => "the length of the pool",
            Seal::Frontier => "the allocation frontier",
            Seal::Kept => "the list of kept plans",
            Seal::KeptBefore => "the list of kept plans, in a plan",
        }
    }

    #[inline(always)]
    const fn check(self, value: u64) -> u64 {
        // A multiply-xorshift round mixes every bit of the value into the top twelve.
        let mixed = (value ^ (self as u64).wrapping_mul(0xd6e8_feb8_6659_fd93))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> VALUE_BITS
    }

    /// Puts the check above `value`.
    #[inline(always)]
    pub const fn seal(self, value: u64) -> u64 {
        assert!(value <= MAX_VALUE);
        value | (self.check(value) << VALUE_BITS)
    }

    /// The value of `word`, if the check is right.
    #[inline(always)]
    pub const fn open(self, word: u64) -> Option<u64> {
        let value = word & MAX_VALUE;
        if word >> VALUE_BITS == self.check(value) {
            Some(value)
        } else {
            None
        }
    }

    /// The value of the `word` read at `at`, or the error if it is damaged.
    pub fn open_at(self, word: u64, at: VirtAddr) -> Result<u64, FormatError> {
        self.open(word).ok_or(FormatError::Checksum {
            what: self.what(),
            at: at.bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_bit_flip_is_noticed() {
        for value in [0, 1, 77, 0x1234_5678_9abc, MAX_VALUE] {
            let word = Seal::Watermark.seal(value);
            assert_eq!(Seal::Watermark.open(word), Some(value));
            let missed = (0..64)
                .filter(|b| Seal::Watermark.open(word ^ (1 << b)).is_some())
                .count();
            assert_eq!(missed, 0, "value {value}");
        }
    }

    #[test]
    fn seals_of_different_purpose_differ() {
        assert_eq!(Seal::Phase.open(Seal::Watermark.seal(5)), None);
    }
}
