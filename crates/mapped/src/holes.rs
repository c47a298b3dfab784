//! The discarded ranges of a file on tmpfs.
//!
//! Loading from a hole of a mapped file costs nothing on a disk's file system. On tmpfs it allocates a page, and raises
//! SIGBUS if none is left. So on tmpfs the window's own zeros are mapped over discarded ranges, and the file is mapped
//! again over ranges that are reserved.

use core::ops::Range;
use std::collections::BTreeMap;

/// Disjoint ranges over which zeros are mapped, by their starts.
#[derive(Debug, Default)]
pub(crate) struct Holes(BTreeMap<u64, u64>);

impl Holes {
    /// Each hole splits a mapping, and a process may have 65530 mappings. Beyond this many, holes are left to the file
    /// system.
    const MOST: usize = 8192;

    /// Whether one more hole is worth a mapping.
    pub(crate) fn has_room(&self) -> bool {
        self.0.len() < Self::MOST
    }

    /// Adds a range and joins it with its neighbours, which share a mapping with it.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        let mut joined = range;
        // Neighbours share a mapping with it.
        while let Some((&start, &end)) = self.0.range(..=joined.end).next_back() {
            if end < joined.start {
                break;
            }
            self.0.remove(&start);
            joined = joined.start.min(start)..joined.end.max(end);
        }
        self.0.insert(joined.start, joined.end);
    }

    /// Removes `range` and returns the parts that were in the set, in descending order.
    pub(crate) fn remove(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        while let Some((&start, &end)) = self.0.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.0.remove(&start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
            parts.push(start.max(range.start)..end.min(range.end));
            if start < range.start {
                self.0.insert(start, range.start);
                break;
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_a_set_of_numbers() {
        let mut holes = Holes::default();
        let mut model = [false; 64];
        let mut word = 1u64;
        for _ in 0..20_000 {
            word = crate::system::scramble(word.wrapping_add(crate::system::SCRAMBLE_STEP));
            let start = word % 64;
            let end = start + 1 + (word >> 8) % (64 - start);
            let cells = &mut model[start as usize..end as usize];
            if word >> 32 & 1 == 0 {
                holes.insert(start..end);
                cells.fill(true);
            } else {
                let removed = holes.remove(start..end);
                let count: u64 = removed.iter().map(|part| part.end - part.start).sum();
                assert_eq!(count, cells.iter().filter(|&&cell| cell).count() as u64);
                cells.fill(false);
            }
            let runs = model.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
            assert_eq!(holes.0.len(), runs, "ranges are joined");
            for (number, &cell) in model.iter().enumerate() {
                let number = number as u64;
                let held = holes.0.range(..=number).next_back();
                assert_eq!(held.is_some_and(|(_, &end)| end > number), cell);
            }
        }
    }
}
