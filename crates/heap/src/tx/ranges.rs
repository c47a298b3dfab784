//! Disjoint ranges of addresses, none of which touches another.

use std::collections::BTreeMap;

/// A set of bytes: those to which a transaction may store.
///
/// A few ranges lie in a sorted list, whose memory the next transaction reuses; many lie in a tree.
#[derive(Default)]
pub(crate) struct Ranges {
    few: Vec<(u64, u64)>,
    /// The beginning and end of each; empty while there are few.
    many: BTreeMap<u64, u64>,
}

/// The most ranges in the list.
const FEW: usize = 24;

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.few.clear();
        // Clearing even an empty tree takes time.
        if !self.many.is_empty() {
            self.many.clear();
        }
    }

    /// By their beginnings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let many = self.many.iter().map(|(&start, &end)| (start, end));
        self.few.iter().copied().chain(many)
    }

    /// The last range that begins at or in front of a byte.
    #[inline]
    fn last_from(&self, start: u64) -> Option<(u64, u64)> {
        if self.many.is_empty() {
            let mut before = self.few.iter().rev();
            return before.find(|(from, _)| *from <= start).copied();
        }
        let (&from, &to) = self.many.range(..=start).next_back()?;
        Some((from, to))
    }

    /// The first range that begins behind a byte, and in front of another.
    #[inline]
    fn first_between(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        if self.many.is_empty() {
            let mut behind = self.few.iter();
            let next = behind.find(|(from, _)| *from > start).copied();
            return next.filter(|(from, _)| *from < end);
        }
        let (&from, &to) = self.many.range(start + 1..end.max(start + 1)).next()?;
        Some((from, to))
    }

    fn remove(&mut self, start: u64) {
        match self.many.is_empty() {
            true => self.few.retain(|(from, _)| *from != start),
            false => drop(self.many.remove(&start)),
        }
    }

    fn add(&mut self, start: u64, end: u64) {
        if self.many.is_empty() && self.few.len() < FEW {
            let behind = self.few.iter().rev().take_while(|(from, _)| *from > start);
            let at = self.few.len() - behind.count();
            self.few.insert(at, (start, end));
            return;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(start, end);
    }

    /// Whether the set contains all bytes from `start` to `end`.
    pub(crate) fn contains(&self, start: u64, end: u64) -> bool {
        start >= end || self.last_from(start).is_some_and(|(_, to)| to >= end)
    }

    /// Adds the bytes from `start` to `end`.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        if self.contains(start, end) {
            return;
        }
        let (mut from, mut to) = (start, end);
        while let Some((other, until)) = self.last_from(to)
            && until >= start
        {
            self.remove(other);
            from = from.min(other);
            to = to.max(until);
        }
        self.add(from, to);
    }

    /// Calls `missing` with each part of the bytes from `start` to `end` that the set lacks.
    pub(crate) fn each_missing(&self, start: u64, end: u64, mut missing: impl FnMut(u64, u64)) {
        let before = self.last_from(start);
        let mut at = before.map_or(start, |(_, to)| to.max(start));
        while at < end {
            let (from, to) = self.first_between(at, end).unwrap_or((end, end));
            missing(at, from);
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
            inserted in prop::collection::vec((0u64..400, 0u64..9), 0..80),
            asked in (0u64..400, 0u64..60),
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
