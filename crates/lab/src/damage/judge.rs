//! Using a damaged pool, and judging the result.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use firn_crash::{Crash, CrashOptions, Schedule};
use firn_heap::{
    Bytes, Error, Occupancy, Pool, PoolKind, Reading, Refs, Session, Statistics, View,
};
use firn_workloads::under_test::{Content, Key};

use super::mutation::{self, Mutation};
use super::sample::{Condition, KEYS, Sample};
use super::undoing;
use crate::crash::fixture::{Fixture, ROOT, value};

/// Steps of the simulated medium for the use of one pool: many times the steps for an undamaged one.
const MAX_STEPS: u64 = 10_000_000;
/// Time for the use of one pool, for loops that do not touch the medium.
const LIMIT: Duration = Duration::from_secs(10);
/// Findings of one check that are reported separately.
const TOLD: usize = 4;
/// References followed in an array, whose length may be anything.
const MOST: usize = 1000;
/// Keys that are inserted and removed.
const NEW: Key = KEYS - 1;
const OLD: Key = 7;
/// The number of the new key's value.
const NUMBER: u8 = 201;

/// The result of using a pool.
pub(super) struct Verdict {
    /// The answers of heap and structure, each once, without numbers.
    pub(super) answers: BTreeSet<String>,
    /// Whether everything was as in an undamaged pool.
    pub(super) unnoticed: bool,
    /// The failure, if there was one.
    pub(super) failure: Option<String>,
}

/// The report of a thread that uses a pool.
#[derive(Default)]
struct Told {
    answers: BTreeSet<String>,
    unnoticed: bool,
    lost: Option<String>,
}

impl Told {
    fn answer(&mut self, step: &str, what: &str) {
        self.answers
            .insert(format!("{step}: {}", without_numbers(what)));
    }

    fn error<T, E: ToString>(&mut self, step: &str, done: Result<T, E>) -> Option<T> {
        match done {
            Ok(done) => Some(done),
            Err(error) => {
                self.answer(step, &error.to_string());
                None
            }
        }
    }
}

/// A text without its numbers: a fault gives equal texts at different places.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut in_number = false;
    for c in text.chars() {
        let is_digit = c.is_ascii_digit() || in_number && (c.is_ascii_hexdigit() || c == 'x');
        match (is_digit, in_number) {
            (true, false) => out.push('#'),
            (true, true) => {}
            (false, _) => out.push(c),
        }
        in_number = is_digit;
    }
    out
}

/// Uses the pool with this damage.
pub(super) fn judge(sample: &Sample, mutations: &[Mutation]) -> Verdict {
    let medium = CrashOptions {
        max_steps: MAX_STEPS,
        ..sample.fixture.medium(None, 0)
    };
    let crash = Crash::from_image(&sample.image, medium);
    mutation::apply(&crash, mutations.iter());
    let told = Arc::new(Mutex::new(Told::default()));
    let (of_thread, fixture, content) = (
        Arc::clone(&told),
        sample.fixture.clone(),
        sample.content.clone(),
    );
    let using = crash.clone();
    let condition = sample.condition;
    let job = move || use_pool(&fixture, condition, using, content, &of_thread);
    let begun = Instant::now();
    let run = crash.run(vec![Box::new(job)], Schedule::Sequential);
    let took_long = (begun.elapsed() > LIMIT).then(|| "it took too long".to_owned());
    let told = core::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    Verdict {
        failure: run.finished().err().or(told.lost).or(took_long),
        answers: told.answers,
        unnoticed: told.unnoticed,
    }
}

/// On a panic, leaves the pool as a crash would: the question is whether the heap panics, not what closing would make
/// of it then.
struct Leaving(Pool<Crash>);

impl Drop for Leaving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.clone().abandon();
        }
    }
}

fn use_pool(
    fixture: &Fixture,
    condition: Condition,
    crash: Crash,
    content: Content,
    shared: &Mutex<Told>,
) {
    let mut told = Told::default();
    told.error("statistics", Statistics::read(&crash));
    told.error("occupancy", Occupancy::read(&crash));
    let opened = Pool::open(crash.clone(), &fixture.pool_options());
    if let Some(pool) = told.error("open", opened) {
        let leaving = Leaving(pool.clone());
        use_open(fixture, &pool, content, &mut told);
        drop(leaving);
        told.error("close", pool.close());
    }
    if condition.is_undoing() {
        told.error("undo", undoing::use_again(fixture, &crash));
    }
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = told;
}

/// The findings of the checks of pool and structure: empty if both are sound.
fn checks(
    fixture: &Fixture,
    pool: &Pool<Crash>,
    session: &mut Session<Crash>,
    told: &mut Told,
) -> Option<Content> {
    let findings = told.error("check", pool.check());
    for finding in findings.iter().flatten().take(TOLD) {
        told.answer("check", &finding.to_string());
    }
    let sound = findings.is_some_and(|findings| findings.is_empty());
    let read = session.read(|view| fixture.read(view));
    let content = told.error("read", read)?;
    sound.then_some(content)
}

/// Reads every object of the built-in types.
fn iterate(view: Reading<'_, Crash>) -> Result<(), Error> {
    for bytes in view.objects::<Bytes>()? {
        bytes.to_vec()?;
    }
    for references in view.objects::<Refs<Bytes>>()? {
        let there =
            (0..references.len().min(MOST)).filter(|&place| references.get(place).is_some());
        there.for_each(drop);
    }
    Ok(())
}

fn use_open(fixture: &Fixture, pool: &Pool<Crash>, mut expected: Content, told: &mut Told) {
    let Some(mut session) = told.error("session", pool.session()) else {
        return;
    };
    let first = checks(fixture, pool, &mut session, told);
    // If the damage cannot be noticed, the pool must be as good as new.
    let as_it_was = first.as_ref() == Some(&expected);
    let (under_test, order) = (fixture.under_test, fixture.under_test.order());
    for key in [OLD, NEW] {
        told.error("get", session.read(|view| under_test.get(view, ROOT, key)));
    }
    if pool.kind() == PoolKind::Explicit {
        told.error("iterate", session.read(iterate));
    }
    let mut whole = true;
    let mut change =
        |told: &mut Told, session: &mut Session<Crash>, step: &str, key: Key, insert: bool| {
            let done: Result<(), Error> = session.transaction(|tx| match insert {
                true => under_test.insert(tx, ROOT, key, &value(NUMBER)),
                false => under_test.remove(tx, ROOT, key),
            });
            match (told.error(step, done), insert) {
                (Some(()), true) => order.insert(&mut expected, key, value(NUMBER)),
                (Some(()), false) => order.remove(&mut expected, key),
                (None, _) => whole = false,
            }
        };
    for key in 0..4 {
        change(told, &mut session, "remove", OLD + key, false);
        change(told, &mut session, "insert", NEW - key, true);
    }
    let collected = told.error("collect", pool.collect(&fixture.collect()));
    told.error("trace", pool.trace());
    let last = checks(fixture, pool, &mut session, told);
    told.error("space", pool.release_free_space());
    told.unnoticed = as_it_was && whole && collected.is_some() && told.answers.is_empty();
    if as_it_was && whole && last.as_ref().is_some_and(|last| *last != expected) {
        told.lost = Some(format!(
            "a pool that was sound and held what it should holds {last:?} later, not {expected:?}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::Structure;

    #[test]
    fn nothing_is_told_of_pools_that_nobody_damaged() {
        for structure in Structure::ALL {
            for condition in Condition::ALL {
                let verdict = judge(&Sample::new(structure, condition).unwrap(), &[]);
                let of = (structure.name(), condition.name(), verdict.answers);
                assert!(verdict.failure.is_none(), "{of:?}");
                assert!(verdict.unnoticed, "{of:?}");
            }
        }
    }
}
