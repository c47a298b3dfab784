//! Ranges of addresses, none of which touches another.

use std::collections::BTreeMap;

/// A set of bytes: what a transaction may store to.
#[derive(Default)]
pub(crate) struct Ranges {
    /// Where each begins and ends.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.ends.clear();
    }

    /// By their beginnings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ends.iter().map(|(&start, &end)| (start, end))
    }

    /// The range that a byte lies in or that ends there, and begins no later.
    fn before(&self, start: u64) -> Option<(u64, u64)> {
        let (&from, &to) = self.ends.range(..=start).next_back()?;
        (to >= start).then_some((from, to))
    }

    /// Whether all bytes from `start` to `end` are in it.
    pub(crate) fn contains(&self, start: u64, end: u64) -> bool {
        start >= end || self.before(start).is_some_and(|(_, to)| to >= end)
    }

    /// Adds the bytes from `start` to `end`.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut from, mut to) = (start, end);
        if let Some((before, until)) = self.before(start) {
            if until >= end {
                return;
            }
            from = before;
        }
        while let Some((&next, &until)) = self.ends.range(from..=to).next_back() {
            self.ends.remove(&next);
            to = to.max(until);
        }
        self.ends.insert(from, to);
    }

    /// Calls `missing` with each part of the bytes from `start` to `end` that is not in it.
    pub(crate) fn each_missing(&self, start: u64, end: u64, mut missing: impl FnMut(u64, u64)) {
        let mut at = self.before(start).map_or(start, |(_, to)| to);
        while at < end {
            let next = self.ends.range(at..end).next();
            let (from, to) = next.map_or((end, end), |(&from, &to)| (from, to));
            if at < from {
                missing(at, from);
            }
            at = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_set_of_its_bytes(
            inserted in prop::collection::vec((0u64..60, 0u64..20), 0..12),
            asked in (0u64..60, 0u64..30),
        ) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (start, len) in inserted {
                ranges.insert(start, start + len);
                bytes.extend(start..start + len);
            }
            let held: Vec<u64> = ranges.iter().flat_map(|(start, end)| start..end).collect();
            prop_assert!(held.iter().eq(&bytes));
            let apart = ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0);
            prop_assert!(apart && ranges.iter().all(|(start, end)| start < end));
            let (start, end) = (asked.0, asked.0 + asked.1);
            let mut missing = Vec::new();
            ranges.each_missing(start, end, |from, to| missing.extend(from..to));
            let expected: Vec<u64> = (start..end).filter(|at| !bytes.contains(at)).collect();
            prop_assert_eq!(ranges.contains(start, end), expected.is_empty());
            prop_assert_eq!(missing, expected);
        }
    }
}
