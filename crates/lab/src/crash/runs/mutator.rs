//! A thread of the program: it draws operations, runs them, and records them.

use core::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use firn_crash::Crash;
use firn_heap::{Error, Pool, Session, Tx};
use firn_media::{Memory, Runtime, Space};
use firn_workloads::under_test::{Content, Key, Order};

use super::super::fixture::{Fixture, ROOT};
use super::coverage::Coverage;
use super::ledger::{Change, Entry, Ledger};
use super::{Meeting, lock};

/// Lengths of values. Of twelve, this many are long, for a class of their own: few at first, most while the structure
/// grows, so that it needs further pages.
const SHORT: Range<usize> = 8..64;
const LONG: usize = 120;
const LONG_AT_FIRST: u8 = 2;
const LONG_GROWING: u8 = 9;

/// Operations at most of a thread that continues, and the number between two checks.
const MOST_OPERATIONS: u64 = 2500;
const MORE: u64 = 300;

/// Polls of the collector in which a cycle begins, is found at rest, and ends.
const LOOKS_OF_A_CYCLE: u32 = 3;

/// Removals among sixteen deeds. At first they outnumber inserts, so that pages become thin; later they are fewer, so
/// that released pages are used again (FFCCD, section 7, has such phases, too).
const THINNING: u8 = 7;
const EMPTYING: u8 = 12;
const GROWING: u8 = 1;

/// Whether the run has had a whole cycle and the program has used a page that the cycle released.
fn is_whole(medium: &Crash) -> bool {
    let seen = medium.see_trace(|events| Coverage::of(events, medium.len()));
    seen.whole_runs > 0
}

/// A thread of the program.
pub(super) struct Mutator {
    pub(super) fixture: Fixture,
    pub(super) pool: Pool<Crash>,
    pub(super) thread: usize,
    pub(super) keys: Range<Key>,
    /// The content of its own keys, if an element keeps its key.
    pub(super) own: Content,
    pub(super) draw: fastrand::Rng,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    pub(super) meeting: Arc<Meeting>,
}

/// A thread's next action.
enum Deed {
    Change(Change),
    Abort(Change),
    Get(Key),
}

impl Mutator {
    /// Runs `operations` operations. If asked to, it continues until cycles have released pages and the program has
    /// used one of them again.
    pub(super) fn run(mut self, operations: u64, until_whole: bool) {
        let medium = self.pool.medium().clone();
        let mut session = self.pool.session().expect("as many lanes as threads");
        let half = operations / 2;
        self.phase(&mut session, 1..half + 1, THINNING);
        self.await_collection(&medium, 0);
        self.phase(&mut session, half + 1..operations + 1, GROWING);
        let mut next = operations + 1;
        while until_whole && next <= MOST_OPERATIONS && !is_whole(&medium) {
            self.phase(&mut session, next..next + MORE / 2, EMPTYING);
            self.await_collection(&medium, self.meeting.collections.load(Relaxed));
            self.phase(&mut session, next + MORE / 2..next + MORE, GROWING);
            next += MORE;
        }
        let last = self.meeting.busy.fetch_sub(1, Relaxed) == 1;
        if let Some(workflow) = self.meeting.workflow.as_ref().filter(|_| last) {
            workflow
                .terminate()
                .unwrap_or_else(|e| panic!("the end: {e}"));
        }
    }

    /// Waits until more than `before` collections have ended. If the program itself has to end them, it polls as often
    /// as a cycle at rest needs from before its beginning to its end.
    fn await_collection(&self, medium: &Crash, before: u64) {
        if let Some(workflow) = &self.meeting.workflow {
            for _ in 0..LOOKS_OF_A_CYCLE {
                workflow.look().unwrap_or_else(|e| panic!("looking: {e}"));
            }
            return;
        }
        while self.meeting.collections.load(Relaxed) <= before {
            medium.pause(0);
        }
    }

    /// Runs the operations of these numbers.
    fn phase(&mut self, session: &mut Session<Crash>, numbers: Range<u64>, removals: u8) {
        for number in numbers {
            let deed = self.draw(number, removals);
            if let Err(what) = self.act(session, number, deed) {
                panic!("operation {number}: {what}");
            }
            if !self.fixture.waits() {
                let place = self.pool.medium().commit();
                lock(&self.ledger).returned(self.thread, number, place);
            }
            self.pool.medium().note(number);
        }
    }

    /// The next deed, which is a removal `removals` times out of sixteen.
    fn draw(&mut self, number: u64, removals: u8) -> Deed {
        let key = self.draw.u16(self.keys.clone());
        let change = match self.draw.u8(..16) {
            deed if deed < removals => Change::Remove(key),
            deed if deed < removals + 3 => Change::Insert(
                key,
                self.value(number, self.held(key).map(Vec::len), removals),
            ),
            ..13 => Change::Insert(key, self.value(number, None, removals)),
            _ => return Deed::Get(key),
        };
        match self.draw.u8(..16) {
            0 => Deed::Abort(change),
            _ => Deed::Change(change),
        }
    }

    /// The value that operation `number` writes: of the given length, or of any.
    fn value(&mut self, number: u64, len: Option<usize>, removals: u8) -> Vec<u8> {
        let long = match removals {
            GROWING => LONG_GROWING,
            _ => LONG_AT_FIRST,
        };
        let len = len.unwrap_or_else(|| match self.draw.u8(..12) < long {
            true => LONG,
            false => self.draw.usize(SHORT),
        });
        let mut value = vec![self.thread as u8; len];
        let stamp = number.to_le_bytes();
        let stamped = stamp.len().min(len);
        value[..stamped].copy_from_slice(&stamp[..stamped]);
        value
    }

    fn held(&self, key: Key) -> Option<&Vec<u8>> {
        let of_key = self.own.iter().find(|(own, _)| *own == key);
        of_key.map(|(_, value)| value)
    }

    fn act(&mut self, session: &mut Session<Crash>, number: u64, deed: Deed) -> Result<(), String> {
        let under_test = self.fixture.under_test;
        match deed {
            Deed::Change(change) => {
                self.change(session, number, &change)
                    .map_err(|e| e.to_string())?;
                // Other threads may change an element of a queue too.
                if under_test.order() != Order::FirstIn {
                    change.apply(under_test.order(), &mut self.own);
                }
                match &self.meeting.workflow {
                    Some(workflow) => workflow.count(1).map_err(|e| format!("collecting: {e}")),
                    None => Ok(()),
                }
            }
            Deed::Abort(change) => {
                let aborted = session.transaction(|tx| {
                    apply(&self.fixture, tx, &change)?;
                    Err::<(), _>(Error::ReadOnly)
                });
                match aborted {
                    Err(Error::ReadOnly) => Ok(()),
                    other => Err(format!("a transaction that gives up: {other:?}")),
                }
            }
            Deed::Get(key) => {
                let got = session.read(|view| under_test.get(view, ROOT, key));
                let got = got.map_err(|e| e.to_string())?;
                let expected = self.held(key);
                match under_test.order() == Order::FirstIn || got.as_ref() == expected {
                    true => Ok(()),
                    false => Err(format!("{key} is {got:?} instead of {expected:?}")),
                }
            }
        }
    }

    /// Makes a change, and records it while the structure's lock is held.
    fn change(
        &self,
        session: &mut Session<Crash>,
        number: u64,
        change: &Change,
    ) -> Result<(), Error> {
        // A change without effect may have had the lock as a reader, or not at all.
        let counts = match change {
            Change::Insert(..) => true,
            Change::Remove(key) => {
                self.fixture.under_test.order() == Order::FirstIn || self.held(*key).is_some()
            }
        };
        let mut attempt = None;
        session.transaction(|tx| {
            apply(&self.fixture, tx, change)?;
            if counts {
                let entry = Entry {
                    thread: self.thread,
                    number,
                    change: change.clone(),
                };
                attempt = Some(lock(&self.ledger).put(attempt, entry));
            }
            Ok(())
        })
    }
}

/// Makes a change in a transaction.
pub(super) fn apply(fixture: &Fixture, tx: Tx<'_, Crash>, change: &Change) -> Result<(), Error> {
    match change {
        Change::Insert(key, value) => fixture.under_test.insert(tx, ROOT, *key, value),
        Change::Remove(key) => fixture.under_test.remove(tx, ROOT, *key),
    }
}
