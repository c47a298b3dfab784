//! The operations of short sequences, and how a note encodes the operations done.

use firn_crash::Crash;
use firn_heap::collector::scheme::Scheme;
use firn_heap::{Error, Session};
use firn_workloads::under_test::{Content, Keys, UnderTest};

use super::error::CrashError;
use super::fixture::{Fixture, ROOT, value};

/// An operation of a short sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Op {
    /// Insert one of three new keys, or change it if it is there already.
    Insert(u8),
    /// Change the key that is there from the start.
    Update,
    /// Remove that key.
    Remove,
    /// Insert the first new key, then abort.
    AbortInsert,
    /// Remove the key that is there from the start, then abort.
    AbortRemove,
    /// Begin a cycle of the collector: mark, reclaim, plan, activate the plan.
    Begin,
    /// Let the collector move one object.
    Step,
    /// End the cycle: move the rest, heal every reference, free the emptied pages.
    Finish,
}

use Op::{AbortInsert, AbortRemove, Begin, Finish, Insert, Remove, Step, Update};

/// Every operation; a note names it by its index here.
const ALL: [Op; 10] = [
    Insert(0),
    Insert(1),
    Insert(2),
    Update,
    Remove,
    AbortInsert,
    AbortRemove,
    Begin,
    Step,
    Finish,
];
const NAMES: [&str; ALL.len()] = [
    "insert-1",
    "insert-2",
    "insert-3",
    "update",
    "remove",
    "abort-insert",
    "abort-remove",
    "begin",
    "step",
    "finish",
];

/// Operations that precede the enumerated ones of some sequences: a cycle has moved one object.
const UNDER_WAY: [Op; 2] = [Begin, Step];
/// Operations of a note at most.
pub(super) const MOST_IN_A_NOTE: usize = (u64::BITS / OP_BITS) as usize - 1;
const OP_BITS: u32 = 4;

impl Op {
    pub(super) fn name(self) -> &'static str {
        NAMES[self.place()]
    }

    fn place(self) -> usize {
        // Every operation is in the table.
        ALL.iter().position(|op| *op == self).unwrap_or(0)
    }

    /// The operation of this name.
    ///
    /// Errors: there is none.
    pub(super) fn named(name: &str) -> Result<Self, CrashError> {
        let place = NAMES.iter().position(|known| *known == name);
        let unknown = || CrashError::Unknown {
            what: "operation",
            name: name.to_owned(),
            known: NAMES.join(", "),
        };
        place.map(|place| ALL[place]).ok_or_else(unknown)
    }

    /// Whether the collector does it.
    pub(super) fn is_collectors(self) -> bool {
        matches!(self, Begin | Step | Finish)
    }

    /// Applies its effect to the content, as operation number `number`.
    fn apply(self, under_test: &dyn UnderTest<Crash>, content: &mut Content, number: u8) {
        let (order, keys) = (under_test.order(), under_test.keys());
        match self {
            Insert(nth) => order.insert(content, keys.new[usize::from(nth)], value(number)),
            Update => order.insert(content, keys.changed, value(number)),
            Remove => order.remove(content, keys.changed),
            AbortInsert | AbortRemove | Begin | Step | Finish => {}
        }
    }

    /// Runs it, if it is the program's.
    ///
    /// Errors: it fails.
    pub(super) fn run(
        self,
        fixture: &Fixture,
        session: &mut Session<Crash>,
        number: u8,
    ) -> Result<(), Error> {
        let (under_test, keys) = (fixture.under_test, fixture.under_test.keys());
        let Keys { new, changed, .. } = keys;
        let done = session.transaction(|tx| match self {
            Insert(nth) => under_test.insert(tx, ROOT, new[usize::from(nth)], &value(number)),
            Update => under_test.insert(tx, ROOT, changed, &value(number)),
            Remove => under_test.remove(tx, ROOT, changed),
            AbortInsert => {
                under_test.insert(tx, ROOT, new[0], &value(number))?;
                Err(Error::ReadOnly)
            }
            AbortRemove => {
                under_test.remove(tx, ROOT, changed)?;
                Err(Error::ReadOnly)
            }
            Begin | Step | Finish => Ok(()),
        });
        match (self, done) {
            (AbortInsert | AbortRemove, Err(Error::ReadOnly)) => Ok(()),
            (_, done) => done,
        }
    }
}

/// Every sequence of this many operations in which each has an effect: steps and ends of the collector come within a
/// cycle, beginnings outside one. With a scheme that moves, each sequence also comes within a cycle that is under way.
pub(super) fn sequences(ops: usize, scheme: &Scheme) -> Vec<Vec<Op>> {
    let openings: &[&[Op]] = match scheme.moves {
        true => &[&[], &UNDER_WAY],
        false => &[&[]],
    };
    let mut all: Vec<Vec<Op>> = openings.iter().map(|opening| opening.to_vec()).collect();
    for _ in 0..ops {
        let further = all.iter().flat_map(|sequence| {
            let next = ALL.into_iter().filter(|op| has_use(*op, sequence, scheme));
            next.map(|op| [&sequence[..], &[op]].concat())
        });
        all = further.collect();
    }
    all
}

fn has_use(op: Op, after: &[Op], scheme: &Scheme) -> bool {
    let last = after.iter().rev().find(|l| matches!(l, Begin | Finish));
    match op {
        Begin => scheme.moves && last != Some(&Begin),
        Step | Finish => last == Some(&Begin),
        _ => true,
    }
}

/// The operations up to a moment: all that were begun, and whether the last one has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    pub(super) begun: Vec<Op>,
    pub(super) returned: bool,
}

impl History {
    /// Encoded as a note, from which an oracle learns everything.
    pub(super) fn note(&self) -> u64 {
        let ops = self
            .begun
            .iter()
            .fold(0, |note, op| note << OP_BITS | (op.place() as u64 + 1));
        ops << 1 | u64::from(self.returned)
    }

    pub(super) fn of_note(note: u64) -> Self {
        let mut begun = Vec::new();
        let mut rest = note >> 1;
        while rest != 0 {
            let place = (rest & ((1 << OP_BITS) - 1)) as usize;
            begun.extend(place.checked_sub(1).and_then(|place| ALL.get(place)));
            rest >>= OP_BITS;
        }
        begun.reverse();
        Self {
            begun,
            returned: note & 1 != 0,
        }
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        let Some((last, before)) = self.begun.split_last() else {
            return "nothing".to_owned();
        };
        let mut words: Vec<&str> = before.iter().map(|op| op.name()).collect();
        let in_flight = format!("the beginning of {}", last.name());
        words.push(if self.returned {
            last.name()
        } else {
            &in_flight
        });
        words.join(", ")
    }

    /// Operations that have returned.
    pub(super) fn returned(&self) -> usize {
        self.begun.len() - usize::from(!self.returned && !self.begun.is_empty())
    }

    /// The possible outcomes: all operations that were begun, and any fewer that are not fewer than `least`.
    pub(super) fn outcomes(&self, least: usize) -> impl Iterator<Item = &[Op]> {
        (least..=self.begun.len()).map(|ops| &self.begun[..ops])
    }
}

/// The structure's content after `ops`.
pub(super) fn content_after(fixture: &Fixture, ops: &[Op]) -> Content {
    let mut content = fixture.content();
    for (number, op) in (1..).zip(ops) {
        op.apply(fixture.under_test, &mut content, number);
    }
    content
}

#[cfg(test)]
mod tests {
    use firn_heap::collector::scheme::{NONE, PIGGYBACK};

    use super::*;

    #[test]
    fn a_note_says_what_was_done() {
        for returned in [false, true] {
            let begun = vec![Begin, Insert(0), Finish, AbortRemove, Step];
            let history = History { begun, returned };
            assert_eq!(History::of_note(history.note()), history);
        }
        assert_eq!(History::of_note(0), History::default());
    }

    #[test]
    fn letters_have_names_of_their_own() {
        for op in ALL {
            assert_eq!(Op::named(op.name()).unwrap(), op);
        }
    }

    #[test]
    fn sequences_have_something_to_do() {
        // At rest: the program's seven and a beginning; under way: the seven, a step and an end.
        assert_eq!(sequences(1, &PIGGYBACK).len(), 8 + 9);
        assert_eq!(sequences(1, &NONE).len(), 7);
        assert_eq!(sequences(2, &NONE).len(), 7 * 7);
        let two = sequences(2, &PIGGYBACK);
        assert!(two.contains(&vec![Begin, Finish]) && !two.contains(&vec![Update, Finish]));
        assert!(two.contains(&vec![Begin, Step, Finish, Begin]));
        assert!(two.iter().all(|sequence| sequence.len() <= MOST_IN_A_NOTE));
    }
}
