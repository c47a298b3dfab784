//! Keys of numbered entries.

/// Spreads neighbouring numbers over all keys.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of an entry.
#[inline]
pub fn key(number: u32) -> [u8; 8] {
    key_number(number).to_be_bytes()
}

/// The key of an entry as a number.
#[inline]
pub(crate) fn key_number(number: u32) -> u64 {
    u64::from(number).wrapping_mul(ODD)
}
