//! Does the lazy exploration find exactly what trying each image finds?

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use firn_crash::{
    Crash, CrashOptions, CrashState, Exploration, ExploreOptions, Explorer, Failure, Job, Schedule,
};
use firn_media::{Domain, Memory, Space};
use firn_units::VirtAddr;

const WORDS: [VirtAddr; 7] = [
    VirtAddr(0),
    VirtAddr(8),
    VirtAddr(16),
    VirtAddr(64),
    VirtAddr(72),
    VirtAddr(128),
    VirtAddr(192),
];

/// What a check saw: the loads that decided its course, its result, and what was acknowledged.
type Outcome = (Vec<u64>, u64);

fn random_operations(crash: &Crash, random: &mut fastrand::Rng, steps: u64) {
    for step in 0..steps {
        let at = WORDS[random.usize(..WORDS.len())];
        match random.u8(..24) {
            0..12 => crash.store_u64(at, random.u64(..3)),
            12 => drop(crash.compare_exchange_u64(at, 1, 2)),
            13..17 => crash.write_back(at, 8),
            17..20 => crash.fence(),
            20 => drop(crash.sync()),
            21 => {
                crash.discard(VirtAddr(at.bytes() & !63), 64).unwrap();
            }
            _ => crash.note(step + 1),
        }
    }
}

/// A recovery whose course depends on its loads: each load draws the next steps.
fn random_recovery(crash: &Crash, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut seen = Vec::new();
    let steps = 8;
    for step in 0..steps {
        let at = WORDS[random.usize(..WORDS.len())];
        match random.u8(..12) {
            10 => crash.discard(VirtAddr(at.bytes() & !63), 64).unwrap(),
            11 => crash.sync().unwrap(),
            0..3 => {
                let value = crash.load_u64(at);
                seen.push(value);
                random = fastrand::Rng::with_seed(seed * 1000 + step * 10 + value);
            }
            3..7 => crash.store_u64(at, 3 + random.u64(..2)),
            7 => {
                let swapped = crash.compare_exchange_u64(at, 0, 5);
                seen.push(swapped.unwrap_or_else(|old| old + 10));
            }
            8 => crash.write_back(at, 8),
            _ => crash.fence(),
        }
    }
    crash.end_of_recovery();
    seen.extend(look(crash, random.usize(..5), seed));
    seen
}

/// Loads somewhat more than recovery saw: directly, in a simulated thread, from an image.
fn look(crash: &Crash, words: usize, seed: u64) -> Vec<u64> {
    let words = WORDS.into_iter().take(words);
    match seed % 8 {
        0 => {
            let image = crash.cache_image();
            words.map(|at| image.load_u64(at)).collect()
        }
        1..4 => {
            let (inner, seen) = (crash.clone(), Arc::new(Mutex::new(Vec::new())));
            let into = Arc::clone(&seen);
            let job: Job = Box::new(move || {
                let values: Vec<u64> = words.map(|at| inner.load_u64(at)).collect();
                *into.lock().unwrap() = values;
            });
            let run = crash.run(vec![job], Schedule::Sequential);
            run.finished().unwrap();
            seen.lock().unwrap().to_vec()
        }
        _ => words.map(|at| crash.load_u64(at)).collect(),
    }
}

fn explorer<'a>(
    options: ExploreOptions,
    seed: u64,
    found: &'a RefCell<BTreeSet<Outcome>>,
    wrong: impl Fn(&[u64], &CrashState) -> bool + 'a,
) -> Explorer<'a> {
    Explorer::new(
        options,
        4096,
        |_| {},
        move |crash| random_operations(crash, &mut fastrand::Rng::with_seed(seed), 22),
        move |crash, state| {
            let seen = random_recovery(&crash, seed);
            let is_wrong = wrong(&seen, state);
            let text = format!("{seen:?}");
            found.borrow_mut().insert((seen, state.note(0)));
            if is_wrong { Err(text) } else { Ok(()) }
        },
    )
}

/// An exploration in two stages: the second knows what the first kept, and looks at the memory it left.
fn staged<'a>(
    options: ExploreOptions,
    seed: u64,
    found: &'a RefCell<BTreeSet<Outcome>>,
    wrong: impl Fn(&[u64], &CrashState) -> bool + 'a,
) -> Explorer<'a> {
    Explorer::new(
        options,
        4096,
        |_| {},
        move |crash| random_operations(crash, &mut fastrand::Rng::with_seed(seed), 22),
        move |crash, state| {
            let kept = random_recovery(&crash, seed).first().copied().unwrap_or(9);
            if !crash.goes_on(kept << 32 | state.note(0)) {
                // A run that stops here may still load; the loads must have no effect.
                look(&crash, 3, 7);
                return Ok(());
            }
            let mut random = fastrand::Rng::with_seed(seed ^ kept);
            random_operations(&crash, &mut random, 3);
            let mut seen = look(&crash, random.usize(..7), seed >> 3);
            let last = seen.last().copied().unwrap_or(0);
            random_operations(&crash, &mut fastrand::Rng::with_seed(last), 5);
            seen.extend(look(&crash, 4, last));
            seen.push(kept);
            let is_wrong = wrong(&seen, state);
            let text = format!("{seen:?}");
            found.borrow_mut().insert((seen, state.note(0)));
            if is_wrong { Err(text) } else { Ok(()) }
        },
    )
}

fn options(
    domain: Domain,
    failure: Failure,
    exploration: Exploration,
    depth: u32,
) -> ExploreOptions {
    ExploreOptions {
        medium: CrashOptions {
            capacity: 1 << 12,
            ..CrashOptions::with_domain(domain)
        },
        failure,
        exploration,
        recovery_depth: depth,
        max_states: u64::MAX,
        states_per_recovery: u64::MAX,
        ..ExploreOptions::default()
    }
}

const FAILURES: [(Domain, Failure); 5] = [
    (Domain::Adr, Failure::Kill),
    (Domain::Eadr, Failure::Kill),
    (Domain::Process, Failure::Kill),
    (Domain::Process, Failure::Power),
    (Domain::Logged, Failure::Kill),
];

#[test]
fn the_outcomes_are_those_of_each_image() {
    for (domain, failure) in FAILURES {
        let (mut lazy_runs, mut eager_runs) = (0, 0);
        for seed in 0..150 {
            for depth in 0..3 {
                let explore = |exploration| {
                    let found = RefCell::default();
                    let options = options(domain, failure, exploration, depth);
                    let report = explorer(options, seed, &found, |_, _| false).explore();
                    assert!(report.expect_clean().exhaustive(), "{report}");
                    (found.into_inner(), report.states)
                };
                let (lazy, runs) = explore(Exploration::Lazy);
                let (eager, states) = explore(Exploration::Eager);
                assert_eq!(lazy, eager, "seed {seed}, {domain}, depth {depth}");
                lazy_runs += runs;
                eager_runs += states;
            }
        }
        println!("{domain}, {failure:?}: {lazy_runs} runs for {eager_runs} states");
        assert!(lazy_runs <= eager_runs);
    }
}

#[test]
fn each_outcome_is_found_where_it_is_wrong_and_its_line_replays_it() {
    for (domain, failure) in FAILURES {
        for seed in 0..12 {
            let all = RefCell::default();
            let options = || options(domain, failure, Exploration::Lazy, 2);
            explorer(options(), seed, &all, |_, _| false).explore();
            for (wrong, note) in all.into_inner() {
                let found = RefCell::default();
                let explorer = explorer(options(), seed, &found, |seen, state| {
                    seen == wrong && state.note(0) == note
                });
                let report = explorer.explore();
                let finding = report.findings.first();
                let finding = finding.unwrap_or_else(|| panic!("{wrong:?} after {note}"));
                assert_eq!(finding.message, format!("{wrong:?}"));
                assert_eq!(
                    explorer.replay(&finding.replay).as_ref(),
                    Err(&finding.message),
                    "{}",
                    finding.replay
                );
            }
        }
    }
}

#[test]
fn what_is_verified_is_what_all_images_leave() {
    let (mut verified, mut eager_runs) = (0, 0);
    for (domain, failure) in FAILURES {
        for seed in 0..150 {
            for depth in 0..3 {
                let explore = |exploration| {
                    let found = RefCell::default();
                    let options = options(domain, failure, exploration, depth);
                    let report = staged(options, seed, &found, |_, _| false).explore();
                    assert!(report.expect_clean().exhaustive(), "{report}");
                    (found.into_inner(), report)
                };
                let (lazy, report) = explore(Exploration::Lazy);
                let (eager, each) = explore(Exploration::Eager);
                assert_eq!(lazy, eager, "seed {seed}, {domain}, depth {depth}");
                verified += report.verifications;
                eager_runs += each.states;
            }
        }
    }
    println!("{verified} verifications for {eager_runs} states");
    assert!(verified * 4 < eager_runs);
}

#[test]
fn what_verification_rejects_is_found_and_its_line_replays_it() {
    for (domain, failure) in FAILURES {
        for seed in 0..12 {
            let all = RefCell::default();
            let options = || options(domain, failure, Exploration::Lazy, 2);
            staged(options(), seed, &all, |_, _| false).explore();
            for (wrong, note) in all.into_inner() {
                let found = RefCell::default();
                let is_wrong =
                    |seen: &[u64], state: &CrashState| seen == wrong && state.note(0) == note;
                let explorer = staged(options(), seed, &found, is_wrong);
                let report = explorer.explore();
                let finding = report.findings.first();
                let finding = finding.unwrap_or_else(|| panic!("{wrong:?} after {note}"));
                assert_eq!(finding.message, format!("{wrong:?}"));
                let again = explorer.replay(&finding.replay);
                assert_eq!(again.as_ref(), Err(&finding.message), "{}", finding.replay);
            }
        }
    }
}

#[test]
fn lines_that_the_check_never_loads_cost_nothing() {
    let explore = options(Domain::Adr, Failure::Kill, Exploration::Lazy, 1);
    let wide = |crash: &Crash| {
        for round in 1..=3 {
            (0..60).for_each(|line| crash.store_u64(VirtAddr(line * 64), round));
        }
    };
    let check = |crash: Crash, _: &CrashState| match crash.load_u64(VirtAddr(64)) {
        0..=3 => Ok(()),
        other => Err(format!("{other} was never stored")),
    };
    let report = Explorer::new(explore, 4096, |_| {}, wide, check).explore();
    assert!(report.expect_clean().exhaustive());
    assert_eq!(report.states, 4, "{report}");
    assert!(report.images > 4u128.pow(59), "{report}");
}

#[test]
fn too_many_runs_are_cut_and_the_report_says_so() {
    let explore = ExploreOptions {
        max_states: 50,
        ..options(Domain::Adr, Failure::Kill, Exploration::Lazy, 1)
    };
    let wide = |crash: &Crash| (0..12).for_each(|line| crash.store_u64(VirtAddr(line * 64), 1));
    let check = |crash: Crash, _: &CrashState| {
        (0..12).for_each(|line| _ = crash.load_u64(VirtAddr(line * 64)));
        Ok(())
    };
    let report = Explorer::new(explore, 4096, |_| {}, wide, check).explore();
    assert!(report.cut && !report.exhaustive(), "{report}");
    assert!(report.states > 50, "{report}");
}

#[test]
fn a_check_that_is_not_deterministic_is_a_finding() {
    let runs = RefCell::new(0);
    let check = |crash: Crash, _: &CrashState| {
        let first = *runs.borrow() % 2 * 64;
        *runs.borrow_mut() += 1;
        _ = crash.load_u64(VirtAddr(first));
        _ = crash.load_u64(VirtAddr(64 - first));
        Ok(())
    };
    let explore = options(Domain::Adr, Failure::Kill, Exploration::Lazy, 0);
    let workload = |crash: &Crash| {
        crash.store_u64(VirtAddr(0), 1);
        crash.store_u64(VirtAddr(64), 1);
    };
    let report = Explorer::new(explore, 4096, |_| {}, workload, check).explore();
    assert!(
        report.findings[0].message.contains("not deterministic"),
        "{:?}",
        report.findings
    );
}
