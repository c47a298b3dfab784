//! Does a medium with a log lose a suffix of its records, as a whole, and nothing else?

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Job, RECORD_READS_IN_PLACE,
    RECORD_STORES_IN_PLACE, Report, Schedule, SwarmOptions,
};
use firn_media::{Domain, Level, MediumExt, Memory, Space, Step, Ticket};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr};

const A: VirtAddr = VirtAddr(0);
const A2: VirtAddr = VirtAddr(8);
const B: VirtAddr = VirtAddr(64);

fn options(level: Level) -> CrashOptions {
    CrashOptions {
        capacity: 1 << 16,
        level,
        ..CrashOptions::with_domain(Domain::Logged)
    }
}

fn medium() -> Crash {
    Crash::new(1 << 14, options(Level::Sync))
}

/// What the addresses may hold after a crash now, from the shortest prefix on.
fn outcomes<const N: usize>(crash: &Crash, at: [VirtAddr; N]) -> Vec<[u64; N]> {
    let images: Vec<_> = crash.images().collect();
    assert_eq!(images.len() as u128, crash.image_count());
    images
        .iter()
        .map(|image| at.map(|at| image.load_u64(at)))
        .collect()
}

#[test]
fn a_crash_leaves_a_prefix_of_the_fences() {
    let crash = medium();
    crash.store_u64(A, 1);
    crash.write_back(A, 8);
    crash.store_u64(B, 1);
    assert_eq!(
        outcomes(&crash, [A, B]),
        [[0, 0]],
        "no record has captured it"
    );
    crash.fence();
    crash.persist(B, 8);
    assert_eq!(outcomes(&crash, [A, B]), [[0, 0], [1, 0], [1, 1]]);
}

#[test]
fn a_record_holds_the_content_of_its_fence_and_all_its_lines() {
    let crash = medium();
    crash.store_u64(A, 1);
    crash.write_back(A, 16);
    crash.store_u64(A, 2);
    crash.store_u64(A2, 2);
    crash.store_u64(B, 2);
    crash.write_back(B, 8);
    crash.fence();
    crash.store_u64(A, 3);
    assert_eq!(outcomes(&crash, [A, A2, B]), [[0, 0, 0], [2, 2, 2]]);
    crash.fence();
    assert_eq!(crash.image_count(), 2, "nothing was written back");
}

#[test]
fn a_record_holds_the_words_that_were_written_back_and_no_others_of_their_line() {
    let crash = medium();
    crash.store_u64(A, 1);
    crash.store_u64(A2, 1);
    crash.persist(A2, 8);
    assert_eq!(outcomes(&crash, [A, A2]), [[0, 0], [0, 1]]);
    crash.store_u64(A2, 2);
    crash.persist(A, 8);
    assert_eq!(outcomes(&crash, [A, A2]), [[0, 0], [0, 1], [1, 1]]);
    crash.wait_durable(crash.commit()).unwrap();
    assert_eq!(outcomes(&crash, [A, A2]), [[1, 1]]);
}

#[test]
fn what_was_waited_for_survives_and_so_does_all_before_it() {
    let crash = medium();
    let mut tickets = Vec::new();
    for value in 1..=3 {
        crash.store_u64(A, value);
        crash.persist(A, 8);
        tickets.push(crash.commit());
    }
    assert_eq!(tickets, [Ticket(1), Ticket(2), Ticket(3)]);
    assert_eq!(crash.durable(), Ticket(0));
    crash.wait_durable(Ticket(2)).unwrap();
    assert_eq!(crash.durable(), Ticket(2));
    assert_eq!(outcomes(&crash, [A]), [[2], [3]]);
    assert!(crash.is_dirty(A));
    crash.wait_at(Ticket(3), Level::Written).unwrap();
    assert_eq!(
        outcomes(&crash, [A]),
        [[2], [3]],
        "the disk was not waited for"
    );
    crash.wait_at(Ticket(3), Level::Sync).unwrap();
    assert_eq!(outcomes(&crash, [A]), [[3]]);
    assert!(!crash.is_dirty(A));
}

#[test]
fn a_sync_fences_and_waits() {
    let crash = medium();
    crash.store_u64(A, 1);
    crash.write_back(A, 8);
    crash.store_u64(B, 1);
    crash.sync().unwrap();
    assert_eq!(outcomes(&crash, [A, B]), [[1, 0]]);
}

#[test]
fn space_changes_in_the_order_of_the_records() {
    let crash = medium();
    let last = VirtAddr(3 * FRAME_BYTES);
    let end = VirtAddr(1 << 14);
    let store = |at, value| {
        crash.store_u64(at, value);
        crash.persist(at, 8);
    };
    store(last, 1);
    store(A, 1);
    crash.discard(last, FRAME_BYTES).unwrap();
    crash.reserve(last, FRAME_BYTES).unwrap();
    store(last, 2);
    crash.reserve(end, FRAME_BYTES).unwrap();
    store(end, 3);
    crash.truncate(1 << 14).unwrap();
    let content = |image: firn_crash::Image| {
        let crash = Crash::from_image(&image, options(Level::Sync));
        let at = [A, last, end].map(|at| crash.load_u64(at));
        (at, image.len(), crash.backed_bytes().unwrap() / FRAME_BYTES)
    };
    let (old, new) = (1 << 14, (1 << 14) + FRAME_BYTES);
    let found: Vec<_> = crash.images().map(content).collect();
    let expected = [
        ([0, 0, 0], old, 4),
        ([0, 1, 0], old, 4),
        ([1, 1, 0], old, 4),
        ([1, 0, 0], old, 3),
        // Without its blocks, and with them again.
        ([1, 0, 0], old, 4),
        ([1, 2, 0], old, 4),
        ([1, 2, 0], new, 5),
        ([1, 2, 3], new, 5),
        ([1, 2, 0], old, 4),
    ];
    // The last one is an image of before: each comes once.
    assert_eq!(found, expected[..8]);
    crash.sync().unwrap();
    assert_eq!(
        crash.images().map(content).collect::<Vec<_>>(),
        expected[8..]
    );
}

#[test]
fn a_drawn_image_is_a_prefix_and_each_is_drawn() {
    let crash = medium();
    for value in 1..=3 {
        crash.store_u64(A, value);
        crash.persist(A, 8);
    }
    let drawn = (0..50).map(|seed| crash.random_image(seed).load_u64(A));
    assert_eq!(drawn.collect::<BTreeSet<_>>(), (0..=3).collect());
}

/// Two words of a line, then of another, each by one of two threads; and what a crash may leave of them.
fn two_threads(leave_out: Option<&'static Step>) -> (BTreeSet<[u64; 2]>, Report) {
    let seen = RefCell::new(BTreeSet::new());
    let explore = ExploreOptions {
        medium: CrashOptions {
            leave_out,
            ..options(Level::Sync)
        },
        recovery_depth: 0,
        ..ExploreOptions::default()
    };
    let workload = |crash: &Crash| {
        let (one, other) = (crash.clone(), crash.clone());
        let first: Job = Box::new(move || {
            one.store_u64(VirtAddr(16), 1);
            one.persist(VirtAddr(0), LINE_BYTES);
        });
        let second: Job = Box::new(move || {
            other.store_u64(A, 1);
            other.store_u64(A2, 1);
            other.persist(A, 16);
            other.wait_durable(other.commit()).unwrap();
            other.note(1);
        });
        let run = crash.run(vec![first, second], Schedule::Inherited);
        run.finished().unwrap();
    };
    let check = |crash: Crash, state: &CrashState| {
        let words = [A, A2].map(|at| crash.load_u64(at));
        seen.borrow_mut().insert(words);
        match state.note(2) == 1 && words != [1, 1] {
            true => Err(format!("{words:?} after both were waited for")),
            false => Ok(()),
        }
    };
    let explorer = Explorer::new(explore, 4096, |_| {}, workload, check);
    let report = explorer.explore_interleavings(2, 100_000);
    if let Some(finding) = report.findings.first() {
        assert_eq!(
            explorer.replay(&finding.replay).as_ref(),
            Err(&finding.message)
        );
    }
    drop(explorer);
    (seen.into_inner(), report)
}

/// A record may miss the first of two stores to a line of another thread and hold the second: a line is read word by
/// word. The other thread's own record repairs it.
#[test]
fn a_line_is_read_word_by_word_while_others_store_to_it() {
    let (seen, report) = two_threads(None);
    report.expect_clean();
    assert!(report.exhaustive() && report.executions > 100, "{report}");
    assert_eq!(seen, [[0, 0], [0, 1], [1, 0], [1, 1]].into());
}

/// L1 of the log: content that is read before its record has its place may be older than what an earlier record holds.
#[test]
fn a_stale_line_is_caught() {
    let (_, report) = two_threads(Some(&RECORD_READS_IN_PLACE));
    let finding = report.findings.first().expect("a line goes back");
    assert!(finding.message.contains("after both were waited for"));
}

/// One thread's record makes stores to two lines, one of which another thread fences at any moment.
fn a_record_beside_a_fence(leave_out: Option<&'static Step>) -> Report {
    let explore = ExploreOptions {
        medium: CrashOptions {
            leave_out,
            ..options(Level::Sync)
        },
        recovery_depth: 0,
        ..ExploreOptions::default()
    };
    let workload = |crash: &Crash| {
        let (one, other) = (crash.clone(), crash.clone());
        let first: Job = Box::new(move || {
            one.store_u64(VirtAddr(16), 1);
            one.persist(VirtAddr(0), LINE_BYTES);
        });
        let second: Job = Box::new(move || {
            other.record(|| {
                for at in [A, B] {
                    other.store_u64(at, 1);
                    other.write_back(at, 8);
                }
            });
        });
        let run = crash.run(vec![first, second], Schedule::Inherited);
        run.finished().unwrap();
    };
    let check = |crash: Crash, _: &CrashState| {
        let words = [A, B].map(|at| crash.load_u64(at));
        match words[0] == words[1] {
            true => Ok(()),
            false => Err(format!("{words:?} of one record")),
        }
    };
    let explorer = Explorer::new(explore, 4096, |_| {}, workload, check);
    explorer.explore_interleavings(2, 100_000)
}

#[test]
fn a_record_with_its_stores_is_there_or_not() {
    let report = a_record_beside_a_fence(None);
    report.expect_clean();
    assert!(report.exhaustive() && report.executions > 50, "{report}");
}

#[test]
fn a_record_whose_stores_are_seen_before_it_has_its_place_is_caught() {
    let report = a_record_beside_a_fence(Some(&RECORD_STORES_IN_PLACE));
    let finding = report.findings.first().expect("half of a record");
    assert!(finding.message.contains("of one record"));
}

/// Three commits, each of two lines, which are acknowledged when the level says so.
fn commits(level: Level, waits: bool, depth: u32) -> Report {
    let explore = ExploreOptions {
        medium: options(level),
        recovery_depth: depth,
        ..ExploreOptions::default()
    };
    let workload = move |crash: &Crash| {
        for value in 1..=3 {
            for at in [A, B] {
                crash.store_u64(at, value);
                crash.write_back(at, 8);
            }
            crash.fence();
            let ticket = crash.commit();
            if waits {
                crash.wait_at(ticket, crash.level()).unwrap();
            }
            crash.note(value);
        }
    };
    let check = move |crash: Crash, state: &CrashState| {
        let (a, b) = (crash.load_u64(A), crash.load_u64(B));
        // A recovery that may be crashed: it leaves both as they are.
        crash.store_u64(VirtAddr(128), a);
        crash.persist(VirtAddr(128), 8);
        crash.end_of_recovery();
        let least = match level {
            Level::Sync => state.note(0),
            _ => state.durable.0,
        };
        match a == b && (least..=3).contains(&a) {
            true => Ok(()),
            false => Err(format!("{a} and {b} of at least {least}")),
        }
    };
    let explorer = Explorer::new(explore, 4096, |_| {}, workload, check);
    let report = explorer.explore();
    if let Some(finding) = report.findings.first() {
        assert_eq!(
            explorer.replay(&finding.replay).as_ref(),
            Err(&finding.message)
        );
        assert!(finding.replay.contains("log@"), "{}", finding.replay);
        return report;
    }
    explorer.swarm(&SwarmOptions::default()).expect_clean();
    report
}

#[test]
fn commits_that_wait_survive_and_others_are_lost_from_the_newest_on() {
    for level in [Level::Sync, Level::Written] {
        for depth in 0..=2 {
            let report = commits(level, true, depth);
            report.expect_clean();
            assert!(report.exhaustive());
            // Four contents, some known as acknowledged or not; recovery's record doubles them.
            assert!(report.states >= 4 << depth.min(1), "{report}");
        }
    }
    let report = commits(Level::Sync, false, 0);
    assert_eq!(report.findings.len(), 1, "acknowledged without waiting");
}

/// Every prefix of every moment is tried, and nothing else.
#[test]
fn the_states_are_the_prefixes_of_every_moment() {
    let run = |crash: &Crash, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        for step in 0..24 {
            let at = [0, 8, 64, 4096, 4104].map(VirtAddr)[random.usize(..5)];
            match random.u8(..12) {
                0..5 => crash.store_u64(at, random.u64(..3)),
                5..7 => crash.write_back(at, 8),
                7..9 => crash.fence(),
                9 => crash.wait_durable(Ticket(crash.commit().0 / 2)).unwrap(),
                10 => {
                    crash.discard(VirtAddr(4096), 4096).unwrap();
                    crash.reserve(VirtAddr(4096), 4096).unwrap();
                }
                _ => crash.note(step),
            }
        }
    };
    type State = ([u64; 5], u64);
    let content = |crash: &Crash| [0, 8, 64, 4096, 4104].map(|at| crash.load_u64(VirtAddr(at)));
    for seed in 0..60 {
        let found = RefCell::new(BTreeSet::<State>::new());
        let explore = ExploreOptions {
            medium: options(Level::Sync),
            recovery_depth: 0,
            ..ExploreOptions::default()
        };
        let check = |crash: Crash, state: &CrashState| {
            let state = (content(&crash), state.note(0));
            found.borrow_mut().insert(state);
            Ok(())
        };
        let explorer = Explorer::new(explore, 1 << 13, |_| {}, |crash| run(crash, seed), check);
        explorer.explore().expect_clean();
        drop(explorer);
        let mut expected = BTreeSet::<State>::new();
        let whole = Crash::new(1 << 13, options(Level::Sync));
        run(&whole, seed);
        for event in 0..=whole.events() {
            let crash = Crash::new(1 << 13, options(Level::Sync));
            let inner = crash.clone();
            let job: Job = Box::new(move || run(&inner, seed));
            crash.run_until(vec![job], Schedule::Sequential, event);
            for image in crash.images() {
                let reopened = Crash::from_image(&image, options(Level::Sync));
                let note = *crash.notes().last().unwrap();
                expected.insert((content(&reopened), note));
            }
        }
        assert_eq!(found.into_inner(), expected, "seed {seed}");
    }
}
