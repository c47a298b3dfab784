//! Which entries are in the map, and what they look like.

use std::io::Write;

use fastrand::Rng;
use firn_structures::map::MAX_VALUE_BYTES;
use firn_tools::Entry;

/// Bytes of a value at most.
pub const MOST_VALUE_BYTES: usize = MAX_VALUE_BYTES as usize;
/// The prefix of all keys.
pub(super) const PREFIX: &[u8] = b"churn-";
/// Of the entries in the map, this many of [`PARTS`] are deleted.
const DELETED_PARTS: usize = 4;
const PARTS: usize = 5;

/// A step of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Absent entries are inserted.
    Insert,
    /// Four of five are deleted.
    Delete,
    /// They are inserted again.
    InsertAgain,
    /// Four of five are deleted again, others than before.
    DeleteAgain,
}

impl Step {
    /// A round.
    pub const ROUND: [Self; 4] = [
        Self::Insert,
        Self::Delete,
        Self::InsertAgain,
        Self::DeleteAgain,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::InsertAgain => "insert again",
            Self::DeleteAgain => "delete again",
        }
    }

    pub(super) fn inserts(self) -> bool {
        matches!(self, Self::Insert | Self::InsertAgain)
    }
}

/// The numbers of the entries, by whether they are in the map.
pub(super) struct Entries {
    rng: Rng,
    inside: Vec<u32>,
    outside: Vec<u32>,
    /// The content of every value.
    value: Vec<u8>,
}

impl Entries {
    pub(super) fn new(entries: u32, value_bytes: usize, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        // Text, which is readable in a scan of the map.
        let value = (0..value_bytes).map(|_| rng.alphanumeric() as u8).collect();
        Self {
            rng,
            inside: Vec::new(),
            outside: (0..entries).collect(),
            value,
        }
    }

    /// The entries that the step changes, in its order. Call [`Entries::settle`] after the step.
    pub(super) fn draw(&mut self, step: Step) -> Vec<u32> {
        let (from, left) = match step.inserts() {
            true => (&mut self.outside, 0),
            false => {
                let left = self.inside.len() - self.inside.len() * DELETED_PARTS / PARTS;
                (&mut self.inside, left)
            }
        };
        self.rng.shuffle(from);
        from.split_off(left)
    }

    pub(super) fn settle(&mut self, step: Step, numbers: Vec<u32>) {
        match step.inserts() {
            true => self.inside.extend(numbers),
            false => self.outside.extend(numbers),
        }
    }

    /// Makes `into` the entry of this number, without its value if the step does not need it.
    pub(super) fn write(&self, number: u32, step: Step, into: &mut Entry) {
        into.key.clear();
        into.key.extend_from_slice(PREFIX);
        write!(into.key, "{number:010}").expect("vectors take everything");
        if step.inserts() {
            into.value.clone_from(&self.value);
            let digits = &into.key[PREFIX.len()..];
            let len = digits.len().min(into.value.len());
            into.value[..len].copy_from_slice(&digits[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_five_go_and_come_again() {
        let mut entries = Entries::new(100, 3, 7);
        let counts = Step::ROUND.iter().chain(&Step::ROUND).map(|&step| {
            let mut numbers = entries.draw(step);
            let count = numbers.len();
            entries.settle(step, numbers.clone());
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "each at most once");
            count
        });
        let counts: Vec<usize> = counts.collect();
        assert_eq!(counts, [100, 80, 80, 80, 80, 80, 80, 80]);
    }

    #[test]
    fn one_seed_is_one_order() {
        let draw = |seed| Entries::new(50, 0, seed).draw(Step::Insert);
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
