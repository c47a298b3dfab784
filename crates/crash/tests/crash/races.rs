//! Does the scheduler find the races that exist, and no others?

use std::sync::Arc;

use firn_crash::{
    Crash, CrashOptions, CrashWords, ExploreOptions, Explorer, Job, RunOutcome, Schedule, Turn,
    interleavings,
};
use firn_media::{Memory, Runtime, Words};
use firn_units::VirtAddr;

const COUNTER: VirtAddr = VirtAddr(0);

fn medium() -> Crash {
    Crash::new(
        1 << 12,
        CrashOptions {
            capacity: 1 << 12,
            ..CrashOptions::default()
        },
    )
}

/// Two threads that each do `add` twice; fails if an addition is lost.
fn count(schedule: Schedule, add: fn(&Crash)) -> Result<RunOutcome, String> {
    let crash = medium();
    let job = |_| -> Job {
        let crash = crash.clone();
        Box::new(move || (0..2).for_each(|_| add(&crash)))
    };
    let outcome = crash.run((0..2).map(job).collect(), schedule);
    outcome.finished()?;
    match crash.load_u64(COUNTER) {
        4 => Ok(outcome),
        other => Err(format!("4 additions made {other}")),
    }
}

fn add_plainly(crash: &Crash) {
    crash.store_u64(COUNTER, crash.load_u64(COUNTER) + 1);
}

fn add_by_exchange(crash: &Crash) {
    let mut old = crash.load_u64(COUNTER);
    while let Err(now) = crash.compare_exchange_u64(COUNTER, old, old + 1) {
        old = now;
    }
}

#[test]
fn an_unlocked_counter_loses_an_update() {
    let report = interleavings(1, 100_000, |schedule| count(schedule, add_plainly));
    let (_, schedule) = report.failure.expect("one preemption suffices");
    assert!(
        count(schedule, add_plainly).is_err(),
        "the schedule shows it again"
    );
    assert!((0..50).any(|seed| count(Schedule::Random { seed }, add_plainly).is_err()));
    assert!(
        (0..200).any(|seed| count(Schedule::Priorities { seed, changes: 2 }, add_plainly).is_err())
    );
}

/// A schedule in which the second thread interrupts the first after this many points.
fn interrupted(after: u64) -> Schedule {
    Schedule::Turns(vec![Turn { after, thread: 2 }])
}

#[test]
fn an_interruption_at_some_point_loses_an_update() {
    let steps = count(interrupted(u64::MAX), add_plainly).unwrap().steps;
    let found = |add: fn(&Crash)| {
        let is_lost = |after: &u64| count(interrupted(*after), add).is_err();
        (1..steps).filter(is_lost).count()
    };
    assert_eq!((found(add_plainly), found(add_by_exchange)), (2, 0));
}

#[test]
fn executions_that_are_asked_for_are_explored() {
    let explorer = Explorer::new(
        ExploreOptions::default(),
        1 << 12,
        |_| {},
        |crash| {
            let job = |_| -> Job {
                let crash = crash.clone();
                Box::new(move || add_by_exchange(&crash))
            };
            let run = crash.run((0..2).map(job).collect(), Schedule::Inherited);
            run.finished().unwrap();
        },
        |crash, _| match crash.load_u64(COUNTER) {
            0..=2 => Ok(()),
            other => Err(format!("two additions made {other}")),
        },
    );
    let mut after = 0;
    let report = explorer.explore_each(|last| {
        after += 1;
        let more = last.is_none_or(|run| after <= run.steps);
        more.then(|| interrupted(after))
    });
    assert!(report.expect_clean().exhaustive());
    // Whichever thread goes first, the counter becomes 0, 1 or 2.
    assert!(report.executions > 2, "{report}");
    assert_eq!((report.states, report.events), (3, 4), "{report}");
}

#[test]
fn a_counter_by_exchange_loses_none() {
    let report = interleavings(4, 1_000_000, |schedule| count(schedule, add_by_exchange));
    assert!(report.exhaustive && report.failure.is_none(), "{report:?}");
    assert!(report.executions > 50, "{report:?}");
}

/// Rule T1: a mutator enters by setting its flag and checking the stop flag; a stopper sets the stop flag and checks
/// the mutator's. Fails if both are in.
fn enter_and_stop(schedule: Schedule, enter: fn(&CrashWords)) -> Result<RunOutcome, String> {
    let crash = medium();
    let words = Arc::new(crash.words(2));
    let inside = Arc::new(crash.words(2));
    let job = |me: usize| -> Job {
        let (words, inside) = (words.clone(), inside.clone());
        Box::new(move || {
            if me == 0 {
                enter(&words);
            } else {
                words.swap(1, 1);
            }
            if words.load(1 - me) == 0 {
                inside.fetch_add(me, 1);
            }
        })
    };
    let outcome = crash.run(vec![job(0), job(1)], schedule);
    outcome.finished()?;
    match (inside.load(0), inside.load(1)) {
        (1, 1) => Err("a mutator is inside while the world is stopped".into()),
        _ => Ok(outcome),
    }
}

#[test]
fn entering_by_a_plain_store_is_broken() {
    let report = interleavings(2, 100_000, |schedule| {
        enter_and_stop(schedule, |words| words.store(0, 1))
    });
    assert!(report.failure.is_some());
    assert!((0..200).any(|seed| {
        enter_and_stop(Schedule::Random { seed }, |words| words.store(0, 1)).is_err()
    }));
}

#[test]
fn entering_by_an_exchange_is_right() {
    let report = interleavings(u32::MAX, 1_000_000, |schedule| {
        enter_and_stop(schedule, |words| {
            words.swap(0, 1);
        })
    });
    assert!(report.exhaustive && report.failure.is_none(), "{report:?}");
}
