//! The entries of the durable measurements. The rivals' program repeats this file, and links nothing of ours; a digest of
//! what was written tells when the two differ.

/// Bytes of a value: with a key of 8 bytes, an entry has 128.
pub(super) const VALUE_BYTES: usize = 120;
/// A value.
pub(super) type Value = [u8; VALUE_BYTES];

/// The constant of YCSB's skewed choices.
const THETA: f64 = 0.99;
/// A prime number: multiples of it visit all numbers below a smaller count.
const STRIDE: u64 = 1_000_003;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The key of a number, far from those of its neighbours.
pub(super) fn key(number: u64) -> u64 {
    number.wrapping_mul(GOLDEN)
}

/// The value of entry `number` after `updates` updates. No compression makes it shorter.
pub(super) fn value(number: u64, updates: u64) -> Value {
    let mut value = [0; VALUE_BYTES];
    let mut state = mixed(number ^ updates.rotate_left(32));
    for word in value.chunks_exact_mut(8) {
        state = state.wrapping_add(GOLDEN);
        word.copy_from_slice(&mixed(state).to_le_bytes());
    }
    value
}

/// The finalizer of splitmix64.
fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// What was written, in a number: two systems that wrote the same have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest(pub(super) u64);

impl Digest {
    /// Adds an entry.
    pub(super) fn add(&mut self, key: u64, value: &Value) {
        let words = value.chunks_exact(8);
        let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        self.0 = words.fold(mixed(self.0 ^ key), |sum, word| mixed(sum ^ word));
    }
}

/// Skewed choices among `n` numbers: the most frequent ones are scattered among them.
///
/// Source: J. Gray et al., Quickly generating billion-record synthetic databases, SIGMOD 1994; the constant is YCSB's.
pub(super) struct Zipf {
    n: u64,
    zeta: f64,
    eta: f64,
    rng: fastrand::Rng,
}

impl Zipf {
    /// Choices that this seed determines.
    pub(super) fn new(n: u64, seed: u64) -> Self {
        let zeta = (1..=n).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let of_two = 1.0 + 2f64.powf(-THETA);
        Self {
            n,
            zeta,
            eta: (1.0 - (2.0 / n as f64).powf(1.0 - THETA)) / (1.0 - of_two / zeta),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        let chance = self.rng.f64();
        let scaled = chance * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 2f64.powf(-THETA) {
            1
        } else {
            let part = (self.eta * chance - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
            (self.n as f64 * part) as u64
        };
        rank.min(self.n - 1) * STRIDE % self.n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_are_chosen_often() {
        let n = 10_000;
        let mut zipf = Zipf::new(n, 1);
        let mut chosen = vec![0u64; n as usize];
        (0..100_000).for_each(|_| chosen[zipf.next() as usize] += 1);
        chosen.sort_unstable_by_key(|&times| core::cmp::Reverse(times));
        let hundred: u64 = chosen[..100].iter().sum();
        assert!((40_000..70_000).contains(&hundred), "{hundred}");
    }

    #[test]
    fn a_digest_tells_order_and_content() {
        let of = |entries: &[(u64, u64)]| {
            let mut digest = Digest::default();
            for &(number, updates) in entries {
                digest.add(key(number), &value(number, updates));
            }
            digest
        };
        assert_eq!(of(&[(1, 0), (2, 0)]), of(&[(1, 0), (2, 0)]));
        assert_ne!(of(&[(1, 0), (2, 0)]), of(&[(2, 0), (1, 0)]));
        assert_ne!(of(&[(1, 0)]), of(&[(1, 1)]));
    }
}
