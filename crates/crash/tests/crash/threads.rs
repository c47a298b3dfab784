//! Do simulated threads interleave, wait, end and die as the contract says?

use std::sync::Arc;

use firn_crash::{Crash, CrashOptions, Job, RunEnd, Schedule};
use firn_media::{Lock, Memory, Runtime, RwLockTable, Words};
use firn_units::VirtAddr;

fn medium() -> Crash {
    Crash::new(
        1 << 16,
        CrashOptions {
            capacity: 1 << 20,
            ..CrashOptions::default()
        },
    )
}

fn schedules() -> impl Iterator<Item = Schedule> {
    let random = (0..20).map(|seed| Schedule::Random { seed });
    let priorities = (0..20).map(|seed| Schedule::Priorities { seed, changes: 3 });
    [Schedule::Sequential]
        .into_iter()
        .chain(random)
        .chain(priorities)
}

/// Threads that add to one persistent word under a lock, and under a lock of the table.
fn adders(crash: &Crash, threads: u64) -> Vec<Job> {
    let lock = Arc::new(Lock::new(()));
    let table = Arc::new(RwLockTable::new(crash, 2));
    let adder = |_| -> Job {
        let (crash, lock, table) = (crash.clone(), lock.clone(), table.clone());
        Box::new(move || {
            for _ in 0..10 {
                {
                    let _held = lock.lock(&crash);
                    crash.store_u64(VirtAddr(0), crash.load_u64(VirtAddr(0)) + 1);
                }
                table.write(&crash, 1);
                crash.store_u64(VirtAddr(64), crash.load_u64(VirtAddr(64)) + 1);
                table.unlock_write(1);
            }
        })
    };
    (0..threads).map(adder).collect()
}

#[test]
fn locks_exclude_under_every_schedule() {
    for schedule in schedules() {
        let crash = medium();
        crash
            .run(adders(&crash, 3), schedule.clone())
            .finished()
            .unwrap();
        assert_eq!(crash.load_u64(VirtAddr(0)), 30, "{schedule:?}");
        assert_eq!(crash.load_u64(VirtAddr(64)), 30, "{schedule:?}");
    }
}

#[test]
fn one_seed_is_one_execution() {
    let mut hashes = std::collections::BTreeSet::new();
    for schedule in schedules() {
        let run = || {
            let crash = medium();
            crash.run(adders(&crash, 3), schedule.clone())
        };
        let first = run();
        assert_eq!(first, run());
        hashes.insert(first.hash);
    }
    assert!(hashes.len() > 20, "seeds make different executions");
}

#[test]
fn a_deadlock_is_reported() {
    for schedule in schedules() {
        let crash = medium();
        let words = Arc::new(crash.words(1));
        let waiter = |_| -> Job {
            let (crash, words) = (crash.clone(), words.clone());
            Box::new(move || {
                let mut attempt = 0;
                while words.load(0) == 0 {
                    crash.pause(attempt);
                    attempt += 1;
                }
            })
        };
        let outcome = crash.run((0..2).map(waiter).collect(), schedule);
        assert_eq!(outcome.end, RunEnd::Deadlock);
        assert!(crash.is_dead());
    }
}

#[test]
fn a_crash_unwinds_threads_that_hold_and_wait_for_locks() {
    /// Takes a lock while it unwinds.
    struct Late {
        crash: Crash,
        lock: Arc<Lock<u64>>,
    }
    impl Drop for Late {
        fn drop(&mut self) {
            *self.lock.lock(&self.crash) += 1;
            self.crash.store_u64(VirtAddr(0), 99);
            self.crash.fence();
        }
    }
    for seed in 0..50 {
        for event in [1, 5, 9, 12] {
            let crash = medium();
            let lock = Arc::new(Lock::new(0));
            let job = |_| -> Job {
                let (crash, lock) = (crash.clone(), lock.clone());
                Box::new(move || {
                    let late = Late {
                        crash: crash.clone(),
                        lock: lock.clone(),
                    };
                    for round in 0..10 {
                        let _held = lock.lock(&crash);
                        crash.store_u64(VirtAddr(0), round);
                        crash.store_u64(VirtAddr(64), round);
                    }
                    drop(late);
                })
            };
            let outcome =
                crash.run_until((0..3).map(job).collect(), Schedule::Random { seed }, event);
            assert_eq!((outcome.end, outcome.events), (RunEnd::Crashed, event));
            assert_ne!(crash.load_u64(VirtAddr(0)), 99, "a dead medium changed");
            assert_eq!(Arc::strong_count(&lock), 1, "a thread was not unwound");
        }
    }
}

#[test]
fn a_panic_ends_its_thread_only() {
    let crash = medium();
    let other = crash.clone();
    let outcome = crash.run(
        vec![
            Box::new(|| panic!("planted")),
            Box::new(move || other.store_u64(VirtAddr(0), 1)),
        ],
        Schedule::Sequential,
    );
    assert_eq!(outcome.panics[0].message, "planted");
    assert_eq!(crash.load_u64(VirtAddr(0)), 1);
}

#[test]
fn spawned_threads_run_in_and_outside_runs() {
    let crash = medium();
    let child = crash.clone();
    let thread = crash
        .spawn("outside", Box::new(move || child.store_u64(VirtAddr(0), 1)))
        .unwrap();
    assert!(crash.join(thread));
    assert_eq!(crash.load_u64(VirtAddr(0)), 1);

    let parent = crash.clone();
    let job = move || {
        let child = parent.clone();
        let thread = parent
            .spawn("inside", Box::new(move || child.store_u64(VirtAddr(8), 1)))
            .unwrap();
        assert!(parent.join(thread));
        assert_eq!(parent.load_u64(VirtAddr(8)), 1);
    };
    crash
        .run(vec![Box::new(job)], Schedule::Random { seed: 1 })
        .finished()
        .unwrap();
}

#[test]
fn a_background_thread_goes_on_between_runs() {
    let crash = medium();
    let words = Arc::new(crash.words(1));
    let (child, stop) = (crash.clone(), words.clone());
    let background = move || {
        let mut attempt = 0;
        while stop.load(0) == 0 {
            child.pause(attempt);
            attempt += 1;
        }
        child.store_u64(VirtAddr(0), 1);
    };
    let thread = crash.spawn("background", Box::new(background)).unwrap();
    let job = || -> Job {
        let crash = crash.clone();
        Box::new(move || crash.store_u64(VirtAddr(8), 1))
    };
    for seed in 0..3 {
        crash
            .run(vec![job(), job()], Schedule::Random { seed })
            .finished()
            .unwrap();
    }
    words.store(0, 1);
    assert!(crash.join(thread));
    assert_eq!(crash.load_u64(VirtAddr(0)), 1);
}
