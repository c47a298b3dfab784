//! The bytes that the hardware takes on the chip and in memory, computed from its structures (FFCCD, Table 1).

use crate::lookup::{bloom, forwarding};
use crate::reached;

/// Bits of a page's number (section 4.2).
const PAGE_NUMBER_BITS: u64 = 36;
/// Bits of the distance between pages in a pool of at most 1 GiB (section 4.3.1).
const MAJOR_DISTANCE_BITS: u64 = 18;
/// Bytes of a place.
const PLACE_BYTES: u64 = 1;

/// A part of the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// Bits of an entry.
    pub entry_bits: u64,
    /// Number of entries.
    pub entries: u64,
}

impl Component {
    /// Bytes of all entries.
    pub const fn bytes(&self) -> u64 {
        (self.entry_bits * self.entries).div_ceil(8)
    }
}

/// The parts, if an entry of the look-aside buffer covers `reach_bytes` of addresses.
pub const fn components(reach_bytes: u64) -> [Component; 3] {
    [
        Component {
            name: "reached bitmap buffer",
            entry_bits: PAGE_NUMBER_BITS + reached::LINES_PER_PAGE,
            entries: reached::ENTRIES as u64,
        },
        Component {
            name: "look-aside buffer of the forwarding table",
            entry_bits: PAGE_NUMBER_BITS + MAJOR_DISTANCE_BITS + places_bytes(reach_bytes) * 8,
            entries: forwarding::ENTRIES as u64,
        },
        Component {
            name: "Bloom filter cache",
            entry_bits: bloom::BYTES as u64 * 8,
            entries: 1,
        },
    ]
}

const fn places_bytes(reach_bytes: u64) -> u64 {
    reach_bytes / forwarding::GRANULE_BYTES * PLACE_BYTES
}

/// Bytes of the forwarding table for each page that is emptied.
pub const FORWARDING_BYTES_PER_PAGE: u64 =
    places_bytes(forwarding::WHOLE_PAGE_BYTES) + MAJOR_DISTANCE_BITS.div_ceil(8);
/// Bytes of the reached bitmap for each page that is filled.
pub const REACHED_BYTES_PER_PAGE: u64 = reached::LINES_PER_PAGE / 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_that_of_table_1() {
        let parts = components(forwarding::QUARTER_PAGE_BYTES);
        assert_eq!(parts.map(|part| part.bytes()), [100, 1132, 1024]);
        assert_eq!(parts.map(|part| part.bytes()).iter().sum::<u64>(), 2256);
        assert_eq!(
            (FORWARDING_BYTES_PER_PAGE, REACHED_BYTES_PER_PAGE),
            (259, 8)
        );
        // The paper's table does not count section 4.3.2's entry of 256 bytes.
        let [_, look_aside, _] = components(forwarding::WHOLE_PAGE_BYTES);
        assert_eq!(look_aside.bytes(), 4204);
    }
}
