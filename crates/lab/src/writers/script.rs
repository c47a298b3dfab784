//! A writer's next operation: a function of the seed, the operation's stamp and the map's content.

use fastrand::Rng;

use super::WRITERS;

/// Bits of a stamp below the number of the child's life.
const LIFE_SHIFT: u32 = 32;
/// One in this many operations on a present key replaces its value; the others remove it.
const UPDATE_SHARE: u64 = 4;

/// With tides, the share of entries that are present lies between one part in this many, and all but one part.
const TIDE_SHARE: usize = 4;
/// How often another key is chosen if one does not suit the tide.
const TIDE_TRIES: usize = 64;

/// Whether most entries go or come. Random removals leave pages with holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tide {
    /// Present entries are removed, some are updated.
    Ebb,
    /// Entries that are absent are inserted.
    Flood,
}

/// An operation's effect on its key.
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
    /// The writer.
    pub writer: usize,
    /// Its effect.
    pub deed: Deed,
    /// The entry's index among all.
    pub index: usize,
    /// Number of the life, then of the writer's operation in it, from 1.
    pub stamp: u64,
}

/// One writer's entries: every `WRITERS`th of all. At first it inserts those that are absent, in order; when all are
/// there it inserts, updates and removes at random.
#[derive(Clone, Debug)]
pub struct Script {
    writer: usize,
    seed: u64,
    /// Stamp of each entry's last insert or update; zero if it is absent.
    stamps: Vec<u64>,
    /// Stamp of the last operation.
    last: u64,
    /// The first entry that is not there yet, while the writer fills its map.
    filling: Option<usize>,
    /// Own entries that are present.
    present: usize,
    /// The tide, if there is one.
    tide: Option<Tide>,
    /// How often ebb has turned to flood.
    low_tides: u64,
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
            present: 0,
            tide: None,
            low_tides: 0,
        }
    }

    /// Begins the child's life number `life`, from 1.
    pub fn begin(&mut self, life: u64) {
        self.last = life << LIFE_SHIFT;
    }

    /// Whether the map is still being filled for the first time.
    pub fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    /// Ends the first filling, if another life has seen its end.
    pub fn end_filling(&mut self) {
        self.filling = None;
    }

    /// From the end of the first filling on, entries come and go in tides, beginning with this one.
    pub fn set_tide(&mut self, tide: Tide) {
        self.tide = Some(tide);
    }

    /// The tide, if there is one.
    pub fn tide(&self) -> Option<Tide> {
        self.tide
    }

    /// How often ebb has turned to flood.
    pub fn low_tides(&self) -> u64 {
        self.low_tides
    }

    /// The writer of this script.
    pub fn writer(&self) -> usize {
        self.writer
    }

    /// Own entries that are present.
    pub fn present(&self) -> usize {
        self.present
    }

    /// Removes own entries at random until only as many are left as at lowest tide, and ends the filling. Returns the
    /// removed ones.
    pub(super) fn thin(&mut self, rng: &mut Rng) -> Vec<usize> {
        self.end_filling();
        let mut there: Vec<usize> = (0..self.len())
            .filter(|&own| self.stamps[own] != 0)
            .collect();
        rng.shuffle(&mut there);
        let gone = there.split_off(there.len().min(self.len() / TIDE_SHARE));
        for &own in &gone {
            self.stamps[own] = 0;
        }
        self.present -= gone.len();
        gone
    }

    /// Number of the operations that were done in this life.
    pub fn operations(&self) -> u64 {
        self.last & ((1 << LIFE_SHIFT) - 1)
    }

    /// Stamp of an own entry's last insert or update in this life; zero if that was earlier, none if the entry is
    /// absent.
    pub fn stamp(&self, own: usize) -> Option<u64> {
        match self.stamps[own] {
            0 => None,
            stamp if stamp >> LIFE_SHIFT << LIFE_SHIFT == stamp => Some(0),
            stamp => Some(stamp),
        }
    }

    /// The index among all entries of this writer's entry `own`.
    pub fn index(&self, own: usize) -> usize {
        own * WRITERS + self.writer
    }

    /// Indices of all own entries, with the stamps of those that are present.
    pub fn content(&self) -> impl Iterator<Item = (usize, Option<u64>)> {
        let stamps = self.stamps.iter().enumerate();
        stamps.map(|(own, &stamp)| (self.index(own), (stamp != 0).then_some(stamp)))
    }

    /// Marks an own entry as present.
    pub fn set_present(&mut self, own: usize) {
        self.present += usize::from(self.stamps[own] == 0);
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
            None => self.choose(&mut rng),
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

    /// A random own entry, of those that suit the tide.
    fn choose(&self, rng: &mut Rng) -> usize {
        let mut own = rng.usize(0..self.len());
        if let Some(tide) = self.tide {
            for _ in 0..TIDE_TRIES {
                if (self.stamps[own] != 0) == (tide == Tide::Ebb) {
                    break;
                }
                own = rng.usize(0..self.len());
            }
        }
        own
    }

    /// Records the next operation as done.
    pub fn done(&mut self, operation: Operation) {
        self.last = operation.stamp;
        match operation.deed {
            Deed::Insert => self.present += 1,
            Deed::Update => {}
            Deed::Remove => self.present -= 1,
        }
        self.stamps[operation.index / WRITERS] = match operation.deed {
            Deed::Insert | Deed::Update => operation.stamp,
            Deed::Remove => 0,
        };
        self.skip_present();
        self.turn();
    }

    /// Turns the tide at its ends.
    fn turn(&mut self) {
        let (present, absent) = (self.present, self.len() - self.present);
        self.tide = match self.tide {
            Some(Tide::Ebb) if present * TIDE_SHARE <= self.len() => {
                self.low_tides += 1;
                Some(Tide::Flood)
            }
            Some(Tide::Flood) if absent * TIDE_SHARE <= self.len() => Some(Tide::Ebb),
            other => other,
        };
    }

    fn skip_present(&mut self) {
        while let Some(own) = self.filling
            && self.stamps.get(own).is_none_or(|&stamp| stamp != 0)
        {
            self.filling = (own + 1 < self.len()).then_some(own + 1);
        }
    }
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
    fn tides_come_and_go_and_another_life_sees_the_same() {
        let mut script = Script::new(0, 3, 2000);
        script.set_tide(Tide::Ebb);
        script.begin(1);
        let mut most = 0;
        let mut least = usize::MAX;
        for _ in 0..20_000 {
            let operation = script.next().unwrap();
            script.done(operation);
            if !script.is_filling() {
                (most, least) = (most.max(script.present), least.min(script.present));
            }
        }
        assert_eq!((most, least), (1000, 250));
        let mut other = Script::new(0, 3, 2000);
        script.begin(2);
        other.begin(2);
        other.end_filling();
        other.set_tide(script.tide().unwrap());
        let there = script.content().enumerate();
        let there: Vec<usize> = there
            .filter_map(|(own, (_, stamp))| stamp.map(|_| own))
            .collect();
        there.iter().for_each(|&own| other.set_present(own));
        for _ in 0..5000 {
            let operation = script.next().unwrap();
            assert_eq!(other.next(), Some(operation));
            script.done(operation);
            other.done(operation);
        }
    }

    #[test]
    fn a_thinned_script_goes_on_from_low_tide() {
        let mut script = Script::new(0, 3, 2000);
        script.begin(1);
        while script.is_filling() {
            script.done(script.next().unwrap());
        }
        let gone = script.thin(&mut Rng::with_seed(1));
        assert_eq!((gone.len(), script.present()), (750, 250));
        assert!(gone.iter().all(|&own| script.stamp(own).is_none()));
        assert!(script.thin(&mut Rng::with_seed(2)).is_empty());
        script.set_tide(Tide::Flood);
        while script.low_tides() == 0 {
            script.done(script.next().unwrap());
        }
        assert_eq!(script.present(), 250);
    }

    #[test]
    fn no_entries_no_operations() {
        assert_eq!(Script::new(1, 7, 1).next(), None);
        assert_eq!(Script::new(0, 7, 1).len(), 1);
    }
}
