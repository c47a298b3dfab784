//! `relocate`: copying an object so that the hardware records which lines of the copy reached persistence (FFCCD,
//! sections 4.1 and 4.2).
//!
//! One instruction covers at most a page of source and a page of destination; [`instructions`] splits a copy up like
//! the paper's `pmmemcpy`. The stores of one instruction depend on how it is built ([`Unit`]): the paper allows two
//! ways, and does not say what may be evicted between two stores to one line. With [`Unit::Loop`], half a line may
//! reach persistence and count as reached.

use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

/// How the instruction is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Unit {
    /// A functional unit that stores all bytes of one destination line at once.
    Functional,
    /// A loop of loads and stores of words, each of which marks its line.
    Loop,
}

/// One instruction. All three numbers are in bytes and multiples of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relocate {
    /// First byte of the source.
    pub from: VirtAddr,
    /// First byte of the destination.
    pub to: VirtAddr,
    /// Bytes, of one page on either side.
    pub len: u64,
}

/// A store that an instruction makes. It lies in one line of the destination and sets that line's pending bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store {
    /// First byte of the source.
    pub from: VirtAddr,
    /// First byte of the destination.
    pub to: VirtAddr,
    /// Bytes.
    pub len: u64,
}

/// Bytes from `at` to the end of its block of `block` bytes.
fn left_in(at: VirtAddr, block: u64) -> u64 {
    block - at.0 % block
}

/// The instructions that copy `len` bytes, in ascending order.
pub fn instructions(from: VirtAddr, to: VirtAddr, len: u64) -> impl Iterator<Item = Relocate> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let (from, to, left) = (from + done, to + done, len - done);
        let len = left
            .min(left_in(from, FRAME_BYTES))
            .min(left_in(to, FRAME_BYTES));
        done += len;
        (len > 0).then_some(Relocate { from, to, len })
    })
}

impl Relocate {
    /// The instruction's stores, in ascending order.
    pub fn stores(self, unit: Unit) -> impl Iterator<Item = Store> {
        let block = match unit {
            Unit::Functional => LINE_BYTES,
            Unit::Loop => WORD_BYTES,
        };
        let Self { from, to, len } = self;
        let mut done = 0;
        core::iter::from_fn(move || {
            let (from, to, left) = (from + done, to + done, len - done);
            let len = left.min(left_in(to, block));
            done += len;
            (len > 0).then_some(Store { from, to, len })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_is_copied_once_and_nothing_leaves_its_page_or_line(
            from in 0u64..3000,
            to in 0u64..3000,
            words in 0u64..2000,
            is_loop in any::<bool>(),
        ) {
            let (from, to, len) = (VirtAddr(from * 8), VirtAddr((1 << 20) + to * 8), words * 8);
            let unit = if is_loop { Unit::Loop } else { Unit::Functional };
            let mut done = 0;
            for one in instructions(from, to, len) {
                prop_assert_eq!((one.from, one.to), (from + done, to + done));
                for at in [one.from, one.to] {
                    prop_assert_eq!(at.0 / FRAME_BYTES, (at.0 + one.len - 1) / FRAME_BYTES);
                }
                for store in one.stores(unit) {
                    prop_assert_eq!((store.from, store.to), (from + done, to + done));
                    let last = store.to.0 + store.len - 1;
                    prop_assert_eq!(store.to.0 / LINE_BYTES, last / LINE_BYTES);
                    prop_assert!(!is_loop || store.len == WORD_BYTES);
                    done += store.len;
                }
            }
            prop_assert_eq!(done, len);
        }
    }

    #[test]
    fn a_functional_unit_stores_to_each_line_once() {
        let one = Relocate {
            from: VirtAddr(8),
            to: VirtAddr(4096 + 48),
            len: 160,
        };
        let lens = one.stores(Unit::Functional).map(|store| store.len);
        assert_eq!(lens.collect::<Vec<_>>(), [16, 64, 64, 16]);
    }
}
