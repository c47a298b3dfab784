//! What a writer does next: a function of the seed, of the operation's stamp and of what is there.

use fastrand::Rng;

use super::WRITERS;
use crate::Entry;

/// Bits of a stamp below the number of the child's life.
const LIFE_SHIFT: u32 = 32;
/// One of so many operations on a key that is there replaces its value; the others remove it.
const UPDATE_SHARE: u64 = 4;

/// What an operation does to its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// The key was absent.
    Insert,
    /// The key was there.
    Update,
    /// The key was there.
    Remove,
}

/// One operation: one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Who does it.
    pub writer: usize,
    /// What is done.
    pub deed: Deed,
    /// Which entry of all.
    pub index: usize,
    /// Number of the life, then of the writer's operation in it, from 1.
    pub stamp: u64,
}

/// One writer's entries: every so many of all. At first it inserts those that are absent, in order;
/// when all are there it inserts, updates and removes at random.
#[derive(Clone, Debug)]
pub struct Script {
    writer: usize,
    seed: u64,
    /// Stamp of each entry's last insert or update, zero where it is absent.
    stamps: Vec<u64>,
    /// Stamp of the last operation.
    last: u64,
    /// The first entry that is not there yet, while the writer fills its map.
    filling: Option<usize>,
}

impl Script {
    /// The script of a writer on an empty map, for its share of `entries` in all.
    pub fn new(writer: usize, seed: u64, entries: usize) -> Self {
        let own = entries.saturating_sub(writer).div_ceil(WRITERS);
        Self {
            writer,
            seed,
            stamps: vec![0; own],
            last: 0,
            filling: (own > 0).then_some(0),
        }
    }

    /// The child's life number `life` begins, from 1.
    pub fn begin(&mut self, life: u64) {
        self.last = life << LIFE_SHIFT;
    }

    /// Whether the map is still being filled for the first time.
    pub fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    /// Ends the first filling, where another life has seen its end.
    pub fn end_filling(&mut self) {
        self.filling = None;
    }

    /// The entry of all that is number `own` of this writer's.
    pub fn index(&self, own: usize) -> usize {
        own * WRITERS + self.writer
    }

    /// Indices of all own entries, with the stamps of those that are there.
    pub fn content(&self) -> impl Iterator<Item = (usize, Option<u64>)> {
        let stamps = self.stamps.iter().enumerate();
        stamps.map(|(own, &stamp)| (self.index(own), (stamp != 0).then_some(stamp)))
    }

    /// Takes over that an own entry is there.
    pub fn set_present(&mut self, own: usize) {
        self.stamps[own] = self.last;
        self.skip_present();
    }

    /// Number of own entries.
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// The next operation; none if there are no entries.
    pub fn next(&self) -> Option<Operation> {
        let stamp = self.last + 1;
        let mut rng = Rng::with_seed(self.seed ^ stamp.wrapping_mul(WRITERS as u64 + 1));
        let own = match self.filling {
            Some(own) => own,
            None if self.is_empty() => return None,
            None => rng.usize(0..self.len()),
        };
        let deed = match self.stamps[own] {
            0 => Deed::Insert,
            _ if rng.u64(0..UPDATE_SHARE) == 0 => Deed::Update,
            _ => Deed::Remove,
        };
        Some(Operation {
            writer: self.writer,
            deed,
            index: self.index(own),
            stamp,
        })
    }

    /// The next operation is done.
    pub fn done(&mut self, operation: Operation) {
        self.last = operation.stamp;
        self.stamps[operation.index / WRITERS] = match operation.deed {
            Deed::Insert | Deed::Update => operation.stamp,
            Deed::Remove => 0,
        };
        self.skip_present();
    }

    fn skip_present(&mut self) {
        while let Some(own) = self.filling
            && self.stamps.get(own).is_none_or(|&stamp| stamp != 0)
        {
            self.filling = (own + 1 < self.len()).then_some(own + 1);
        }
    }
}

/// The value that an insert or update with this stamp stores: the entry's own, the stamp, and up to
/// `payload_bytes` more.
pub(crate) fn value(entry: &Entry, stamp: u64, payload_bytes: usize, into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(&entry.value);
    into.push(b' ');
    into.extend_from_slice(stamp.to_string().as_bytes());
    let payload = Rng::with_seed(stamp).usize(0..=payload_bytes);
    into.resize(into.len() + payload, b'a' + (stamp % 26) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_fills_in_order_then_mixes() {
        let mut script = Script::new(1, 7, 9);
        assert_eq!(script.len(), 4);
        script.begin(1);
        let mut order = Vec::new();
        while script.is_filling() {
            let operation = script.next().unwrap();
            assert_eq!(operation.deed, Deed::Insert);
            order.push(operation.index);
            script.done(operation);
        }
        assert_eq!(order, [1, 3, 5, 7]);
        for _ in 0..100 {
            let operation = script.next().unwrap();
            let there = script.content().find(|(i, _)| *i == operation.index);
            let there = there.unwrap().1.is_some();
            assert_eq!(there, operation.deed != Deed::Insert);
            script.done(operation);
        }
        assert!(!script.is_filling());
    }

    #[test]
    fn no_entries_no_operations() {
        assert_eq!(Script::new(1, 7, 1).next(), None);
        assert_eq!(Script::new(0, 7, 1).len(), 1);
    }
}
