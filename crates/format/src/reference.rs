//! References: one word.
//!
//! ```text
//! 63        48 47                         4 3    0
//! [ pool id   | address in 16-byte units   | tag  ]
//! ```
//! Masking off the tag leaves the address in bytes, so following a reference is an `and` and an
//! addition. Zero is the null reference.

use firn_units::VirtAddr;

/// Bits of the tag, which the program owns and the collector preserves.
pub const TAG_MASK: u64 = 0xf;
/// Bits of the address.
pub const ADDRESS_MASK: u64 = (1 << 48) - 1 - TAG_MASK;
const ID_SHIFT: u32 = 48;

/// The pool that a reference belongs to. Never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PoolId(pub u16);

/// A reference as it lies on media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct RefWord(pub u64);

impl RefWord {
    /// Refers to nothing.
    pub const NULL: Self = Self(0);

    /// A reference to the object whose header lies at `at`, a multiple of 16.
    #[inline(always)]
    pub const fn new(pool: PoolId, at: VirtAddr) -> Self {
        Self((pool.0 as u64) << ID_SHIFT | at.0 & ADDRESS_MASK)
    }

    /// Whether it refers to nothing; a tag alone is still null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 & !TAG_MASK == 0
    }

    /// The address of the object's header.
    #[inline(always)]
    pub const fn address(self) -> VirtAddr {
        VirtAddr(self.0 & ADDRESS_MASK)
    }

    /// The pool it belongs to.
    #[inline(always)]
    pub const fn pool(self) -> PoolId {
        PoolId((self.0 >> ID_SHIFT) as u16)
    }

    /// The tag.
    #[inline(always)]
    pub const fn tag(self) -> u8 {
        (self.0 & TAG_MASK) as u8
    }

    /// This reference with another tag. Only the tag's low four bits count.
    #[inline(always)]
    pub const fn with_tag(self, tag: u8) -> Self {
        Self(self.0 & !TAG_MASK | tag as u64 & TAG_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_read_back() {
        let r = RefWord::new(PoolId(0xabcd), VirtAddr(0x1234_5678_9ab0)).with_tag(7);
        assert_eq!(
            (r.pool(), r.address(), r.tag()),
            (PoolId(0xabcd), VirtAddr(0x1234_5678_9ab0), 7)
        );
        assert!(RefWord::NULL.with_tag(3).is_null());
    }
}
