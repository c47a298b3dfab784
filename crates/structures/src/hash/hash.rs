//! Hashes, and the bucket of a hash.
//!
//! With `n` buckets, `2^l <= n < 2^(l+1)`, the low `l + 1` bits of an entry's hash name its bucket, or the low `l` if
//! that bucket does not exist yet. The next bucket is made by dividing the one that holds its entries until then, see
//! [`partner`].

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum number of buckets: each bit of a hash divides all of them once.
pub(crate) const MAX_BUCKETS: u64 = 1 << 31;

/// The hash of a key. Never zero, which marks a free place.
#[inline]
pub(crate) fn hash_of(key: &[u8], seed: u64) -> u32 {
    match xxh3_64_with_seed(key, seed) as u32 {
        0 => 1,
        hash => hash,
    }
}

/// The bucket of a hash, of `buckets` buckets; there is at least one.
#[inline]
pub(crate) fn bucket_of(hash: u32, buckets: u64) -> u64 {
    let low = 1 << buckets.ilog2();
    let named = u64::from(hash) & (2 * low - 1);
    if named < buckets { named } else { named - low }
}

/// The bucket from which bucket `last` was divided, and the bit of the hashes that divides them.
#[inline]
pub(crate) fn partner(last: u64) -> (u64, u32) {
    let bit = 1 << last.ilog2();
    (last - bit, bit as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_bucket_takes_entries_of_its_partner_alone() {
        for buckets in 1..200 {
            let (from, bit) = partner(buckets);
            for hash in 0..1024 {
                let (before, after) = (bucket_of(hash, buckets), bucket_of(hash, buckets + 1));
                let moves = before == from && hash & bit != 0;
                assert_eq!(after, if moves { buckets } else { before });
            }
        }
    }
}
