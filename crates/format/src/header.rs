//! The eight bytes in front of every object.

/// Bytes of a header.
pub const HEADER_BYTES: u64 = 8;

/// A type's number in its pool's registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct TypeId(pub u32);

const TYPE_BITS: u32 = 20;
const FLAG_BITS: u32 = 4;
const SCRATCH_BITS: u32 = 16;
const SLACK_BITS: u32 = 24;
const FLAG_SHIFT: u32 = TYPE_BITS;
const SCRATCH_SHIFT: u32 = FLAG_SHIFT + FLAG_BITS;
const SLACK_SHIFT: u32 = SCRATCH_SHIFT + SCRATCH_BITS;
const _: () = assert!(TYPE_BITS + FLAG_BITS + SCRATCH_BITS + SLACK_BITS == 64);

impl TypeId {
    /// No type: the header of a free slot.
    pub const NONE: Self = Self(0);
    /// Array of bytes: a word with the length, then the bytes.
    pub const BYTES: Self = Self(1);
    /// Array of references: a word with the length, then the references.
    pub const REFS: Self = Self(2);
    /// Bytes without a type, for programs that store through raw pointers.
    pub const RAW: Self = Self(3);
    /// First number of a type that a program registers.
    pub const FIRST_REGISTERED: Self = Self(16);
    /// Types that a pool can have.
    pub const LIMIT: u32 = 1 << TYPE_BITS;
}

/// The object was replaced by a newer version of its type. Its first word leads to the replacement.
pub const FLAG_FORWARDED: u64 = 1;

/// A header: type, flags, scratch bits that belong to other runtimes, and slack.
///
/// Slack is the number of bytes of the slot that the program did not ask for. With it, the requested size of any object
/// is known without its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectHeader(pub u64);

impl ObjectHeader {
    /// The header of a new object.
    #[inline(always)]
    pub const fn new(type_id: TypeId, slack_bytes: u64) -> Self {
        assert!(type_id.0 < TypeId::LIMIT && slack_bytes < 1 << SLACK_BITS);
        Self(type_id.0 as u64 | (slack_bytes << SLACK_SHIFT))
    }

    /// The object's type; [`TypeId::NONE`] in a free slot.
    #[inline(always)]
    pub const fn type_id(self) -> TypeId {
        TypeId((self.0 & ((1 << TYPE_BITS) - 1)) as u32)
    }

    /// The flags.
    #[inline(always)]
    pub const fn flags(self) -> u64 {
        self.0 >> FLAG_SHIFT & ((1 << FLAG_BITS) - 1)
    }

    /// This header with these flags set.
    #[inline(always)]
    pub const fn with_flags(self, flags: u64) -> Self {
        Self(self.0 | ((flags & ((1 << FLAG_BITS) - 1)) << FLAG_SHIFT))
    }

    /// Bits that belong to other runtimes; nothing here looks at them.
    #[inline(always)]
    pub const fn scratch(self) -> u16 {
        (self.0 >> SCRATCH_SHIFT) as u16
    }

    /// This header with other scratch bits.
    #[inline(always)]
    pub const fn with_scratch(self, scratch: u16) -> Self {
        Self(self.0 & !(0xffff << SCRATCH_SHIFT) | (scratch as u64) << SCRATCH_SHIFT)
    }

    /// Bytes of the slot that the program did not ask for.
    #[inline(always)]
    pub const fn slack_bytes(self) -> u64 {
        self.0 >> SLACK_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_apart() {
        let h = ObjectHeader::new(TypeId(77), 12345)
            .with_scratch(0xbeef)
            .with_flags(FLAG_FORWARDED);
        assert_eq!(h.type_id(), TypeId(77));
        assert_eq!(h.slack_bytes(), 12345);
        assert_eq!(h.scratch(), 0xbeef);
        assert_eq!(h.flags(), FLAG_FORWARDED);
    }
}
