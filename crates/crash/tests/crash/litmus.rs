//! Is the memory model x86-TSO, neither stronger nor weaker?

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::BTreeSet;
use std::sync::Arc;

use firn_crash::{Crash, CrashOptions, CrashWords, Job, Schedule, interleavings};
use firn_media::{MediumExt, Memory, Runtime, Words};
use firn_units::VirtAddr;

/// Instructions of a litmus test on locations 0 and 1. Each is tried in persistent memory and in
/// volatile words.
#[derive(Clone, Copy)]
enum Op {
    Store(usize),
    Load(usize),
    /// A locked instruction on another location.
    Locked,
    Fence,
}
use Op::{Fence, Load, Locked, Store};

struct Place {
    crash: Crash,
    words: CrashWords,
    volatile: bool,
}

impl Place {
    fn run(&self, ops: &[Op]) -> Vec<u64> {
        let at = |index: usize| VirtAddr(index as u64 * 64);
        let mut loaded = Vec::new();
        for &op in ops {
            match op {
                Store(index) if self.volatile => self.words.store(index, 1),
                Store(index) => self.crash.store_u64(at(index), 1),
                Load(index) if self.volatile => loaded.push(self.words.load(index)),
                Load(index) => loaded.push(self.crash.load_u64(at(index))),
                Locked => drop(self.crash.compare_exchange_u64(at(2), 5, 6)),
                Fence => self.crash.fence(),
            }
        }
        loaded
    }
}

/// Runs the threads once. Returns what they loaded, thread by thread.
fn once(
    threads: &[&[Op]],
    volatile: bool,
    schedule: Schedule,
) -> (Vec<u64>, firn_crash::RunOutcome) {
    let crash = Crash::new(
        1 << 12,
        CrashOptions {
            capacity: 1 << 12,
            ..CrashOptions::default()
        },
    );
    let place = Arc::new(Place {
        words: crash.words(2),
        crash: crash.clone(),
        volatile,
    });
    let loaded = Arc::new(std::sync::Mutex::new(vec![Vec::new(); threads.len()]));
    let job = |(index, ops): (usize, &&[Op])| -> Job {
        let (place, loaded, ops) = (place.clone(), loaded.clone(), ops.to_vec());
        Box::new(move || {
            let result = place.run(&ops);
            loaded.lock().unwrap()[index] = result;
        })
    };
    let outcome = crash.run(threads.iter().enumerate().map(job).collect(), schedule);
    outcome.finished().unwrap();
    let loaded = loaded.lock().unwrap().concat();
    (loaded, outcome)
}

/// Every result that the threads can load.
fn behaviours(threads: &[&[Op]]) -> BTreeSet<Vec<u64>> {
    behaviours_within(u32::MAX, threads)
}

/// Every result that the threads can load with at most `bound` preemptions, delayed stores and partial drains.
fn behaviours_within(bound: u32, threads: &[&[Op]]) -> BTreeSet<Vec<u64>> {
    let [persistent, volatile] = [false, true].map(|volatile| {
        let mut found = BTreeSet::new();
        let report = interleavings(bound, 1_000_000, |schedule| {
            let (loaded, outcome) = once(threads, volatile, schedule);
            found.insert(loaded);
            Ok(outcome)
        });
        assert!(report.exhaustive);
        for seed in 0..300 {
            let random = [
                Schedule::Random { seed },
                Schedule::Priorities { seed, changes: 3 },
            ];
            for schedule in random {
                let (loaded, _) = once(threads, volatile, schedule);
                assert!(
                    found.contains(&loaded),
                    "a random schedule does what no schedule can"
                );
            }
        }
        found
    });
    assert_eq!(persistent, volatile);
    persistent
}

fn sets(of: &[&[u64]]) -> BTreeSet<Vec<u64>> {
    of.iter().map(|one| one.to_vec()).collect()
}

#[test]
fn store_buffering_is_allowed() {
    let found = behaviours(&[&[Store(0), Load(1)], &[Store(1), Load(0)]]);
    assert_eq!(found, sets(&[&[0, 0], &[0, 1], &[1, 0], &[1, 1]]));
}

#[test]
fn locked_operations_and_fences_forbid_store_buffering() {
    for barrier in [Locked, Fence] {
        let found = behaviours(&[&[Store(0), barrier, Load(1)], &[Store(1), barrier, Load(0)]]);
        assert_eq!(found, sets(&[&[0, 1], &[1, 0], &[1, 1]]));
    }
}

#[test]
fn one_barrier_is_not_enough_against_store_buffering() {
    let found = behaviours(&[&[Store(0), Locked, Load(1)], &[Store(1), Load(0)]]);
    assert!(found.contains(&vec![0, 0]));
}

#[test]
fn message_passing_works() {
    let found = behaviours(&[&[Store(0), Store(1)], &[Load(1), Load(0)]]);
    assert_eq!(found, sets(&[&[0, 0], &[0, 1], &[1, 1]]));
}

#[test]
fn load_buffering_is_forbidden() {
    let found = behaviours(&[&[Load(0), Store(1)], &[Load(1), Store(0)]]);
    assert_eq!(found, sets(&[&[0, 0], &[0, 1], &[1, 0]]));
}

#[test]
fn a_thread_sees_its_own_stores_first() {
    let found = behaviours(&[&[Store(0), Load(0), Load(1)], &[Store(1), Load(1), Load(0)]]);
    assert!(
        found.contains(&vec![1, 0, 1, 0]),
        "forwarded before they are visible"
    );
    assert!(found.iter().all(|loaded| loaded[0] == 1 && loaded[2] == 1));
}

#[test]
fn independent_readers_agree_on_the_order_of_writes() {
    let found = behaviours_within(
        4,
        &[
            &[Store(0)],
            &[Store(1)],
            &[Load(0), Load(1)],
            &[Load(1), Load(0)],
        ],
    );
    assert!(!found.contains(&vec![1, 0, 1, 0]));
    assert!(found.contains(&vec![1, 0, 0, 0]));
}

/// A store to some bytes of a word is one step: it reverts none of the other bytes, whatever the order, and its own
/// thread sees it at once beside other threads' stores.
#[test]
fn stores_to_parts_of_a_word_keep_each_other() {
    let mut seen = BTreeSet::new();
    let found = interleavings(u32::MAX, 100_000, |schedule| {
        let crash = Crash::new(1 << 12, CrashOptions::default());
        crash.store_u64(VirtAddr(0), 0x1111_1111_1111_1111);
        let loaded = Arc::new([0, 1].map(|_| AtomicU64::new(0)));
        let jobs = [0u8, 1].map(|thread| -> Job {
            let (crash, loaded) = (crash.clone(), loaded.clone());
            Box::new(move || {
                crash.store_exact(VirtAddr(u64::from(thread) * 2), &[2 + thread; 2]);
                let word = crash.load_u64(VirtAddr(0));
                loaded[usize::from(thread)].store(word, Relaxed);
            })
        });
        let outcome = crash.run(jobs.into(), schedule);
        let word = crash.load_u64(VirtAddr(0));
        if word != 0x1111_1111_0303_0202 {
            return Err(format!("a store was taken back: {word:x}"));
        }
        seen.insert(loaded.each_ref().map(|it| it.load(Relaxed)));
        Ok(outcome)
    });
    assert_eq!(found.failure.map(|(message, _)| message), None);
    assert!(found.exhaustive);
    let (both, first, second) = (
        0x1111_1111_0303_0202,
        0x1111_1111_1111_0202,
        0x1111_1111_0303_1111,
    );
    let expected = [[first, second], [first, both], [both, second], [both, both]];
    assert_eq!(seen, BTreeSet::from(expected), "{seen:x?}");
}

#[test]
fn a_part_of_a_word_in_a_store_buffer_dies_with_the_power_and_not_with_the_process() {
    let crash = Crash::new(1 << 12, CrashOptions::default());
    crash.store_u64(VirtAddr(0), 5);
    crash.store_exact(VirtAddr(4), &[9]);
    assert_eq!(crash.kill_image().load_u64(VirtAddr(0)), 9 << 32 | 5);
}
