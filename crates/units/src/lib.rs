//! The units in which all other crates count: addresses, lines, frames, chunks.
//!
//! A persistent-memory machine has three kinds of addresses, and so has this crate: the program uses [`VirtAddr`], the
//! memory controller sees [`PhysAddr`], and the bytes lie at [`DevAddr`]. All three count bytes from the start of the
//! pool.
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::{Add, Sub};

/// Bytes of a cache line: the unit of write-back, and of what a crash may keep or lose.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a word: the unit of an atomic store to persistent memory.
pub const WORD_BYTES: u64 = 8;
/// Words of a line.
pub const WORDS_PER_LINE: usize = (LINE_BYTES / WORD_BYTES) as usize;
/// Bytes of a small page, which is a frame of the heap.
pub const FRAME_BYTES: u64 = 4096;
/// Bytes of a huge page, which is a chunk of the heap.
pub const CHUNK_BYTES: u64 = 2 << 20;
/// Frames of a chunk.
pub const FRAMES_PER_CHUNK: u64 = CHUNK_BYTES / FRAME_BYTES;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The address in bytes from the start of the pool.
            #[inline(always)]
            pub const fn bytes(self) -> u64 {
                self.0
            }

            /// The first byte of the line that holds this address.
            #[inline(always)]
            pub const fn line_start(self) -> Self {
                Self(self.0 & !(LINE_BYTES - 1))
            }
        }

        impl Add<u64> for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, bytes: u64) -> Self {
                Self(self.0 + bytes)
            }
        }

        impl Sub for $name {
            type Output = u64;
            #[inline(always)]
            fn sub(self, other: Self) -> u64 {
                self.0 - other.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:#x})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An address as the program and the medium contract use it.
    VirtAddr
}
address! {
    /// An address as the memory controller sees it. A controller that remaps (HOOP, ThyNVM) turns it into a [`DevAddr`]
    /// of its choice; any other keeps the number.
    PhysAddr
}
address! {
    /// An address on the device: the index into a persisted image.
    DevAddr
}

impl VirtAddr {
    /// The physical address under an identity page table.
    #[inline(always)]
    pub const fn identity(self) -> PhysAddr {
        PhysAddr(self.0)
    }
}

impl PhysAddr {
    /// The device address under a controller that does not remap.
    #[inline(always)]
    pub const fn unmapped(self) -> DevAddr {
        DevAddr(self.0)
    }
}

/// `bytes` rounded up to a multiple of `unit`, a power of two.
#[inline(always)]
pub const fn round_up(bytes: u64, unit: u64) -> u64 {
    (bytes + unit - 1) & !(unit - 1)
}

/// Lines that the range of `len` bytes from `start` touches.
#[inline(always)]
pub const fn lines_touched(start: u64, len: u64) -> u64 {
    if len == 0 {
        0
    } else {
        (start + len - 1) / LINE_BYTES - start / LINE_BYTES + 1
    }
}

/// The lines that `len` bytes from `start` on touch, each by its number and with the words of it that they touch, a bit
/// each.
///
/// ```
/// # use firn_units::words_touched;
/// assert!(words_touched(60, 20).eq([(0, 0x80), (1, 0b11)]));
/// assert!(words_touched(64, 0).eq([]));
/// ```
#[inline]
pub fn words_touched(start: u64, len: u64) -> impl ExactSizeIterator<Item = (u64, u8)> {
    let words = start / WORD_BYTES..(start + len).div_ceil(WORD_BYTES);
    let first = start / LINE_BYTES;
    (0..lines_touched(start, len) as usize).map(move |index| {
        let line = first + index as u64;
        let at = |word: u64| word.saturating_sub(line * WORDS_PER_LINE as u64).min(8) as u32;
        let below = |word: u64| (1u16 << at(word)) - 1;
        (line, (below(words.end) & !below(words.start)) as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_touched_counts_partial_lines() {
        assert_eq!(lines_touched(0, 0), 0);
        assert_eq!(lines_touched(0, 64), 1);
        assert_eq!(lines_touched(60, 8), 2);
        assert_eq!(lines_touched(64, 129), 3);
    }

    #[test]
    fn round_up_keeps_multiples() {
        assert_eq!(round_up(4096, FRAME_BYTES), 4096);
        assert_eq!(round_up(4097, FRAME_BYTES), 8192);
    }
}
