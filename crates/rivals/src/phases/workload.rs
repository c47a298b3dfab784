//! The entries that the phases insert and delete: equal for every rival and for Firn.

/// Bytes of a value.
pub const VALUE_BYTES: usize = 128;
/// A value.
pub type Value = [u8; VALUE_BYTES];

/// The key of a number.
#[inline]
pub fn key(number: u32) -> u64 {
    u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The value that belongs to a key.
#[inline]
pub fn value(key: u64) -> Value {
    let mut value = [0; VALUE_BYTES];
    for word in value.chunks_exact_mut(8) {
        word.copy_from_slice(&key.to_le_bytes());
    }
    value
}

/// Four fifths of the numbers below `n`, at random, in a random order.
pub fn deleted(n: u32, seed: u64) -> Vec<u32> {
    let mut all: Vec<u32> = (0..n).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut all);
    all.truncate(n as usize / 5 * 4);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_go_and_another_seed_takes_others() {
        let (first, second) = (deleted(1004, 1), deleted(1004, 2));
        assert_eq!((first.len(), second.len()), (800, 800));
        assert_ne!(first, second);
        assert_eq!(first, deleted(1004, 1));
    }
}
