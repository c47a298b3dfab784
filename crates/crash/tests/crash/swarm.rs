//! Do long random runs of several threads find faults that only a race and a crash together show?

use std::sync::Arc;

use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Failure, Job, Report, Schedule,
    SwarmOptions,
};
use firn_media::{Domain, Lock, MediumExt, Memory};
use firn_units::VirtAddr;

const THREADS: u64 = 3;
const ROUNDS: u64 = 4;
const TOTAL: VirtAddr = VirtAddr(0);

fn own(thread: u64) -> VirtAddr {
    VirtAddr(64 + 64 * thread)
}

/// Every thread adds to its own word and to the total, in one undo-free step: the own word is
/// durable before the total is stored, so the total never exceeds the sum of the own words.
fn add(crash: &Crash, fenced: bool) {
    let lock = Arc::new(Lock::new(()));
    let job = |thread: u64| -> Job {
        let (crash, lock) = (crash.clone(), lock.clone());
        Box::new(move || {
            for round in 1..=ROUNDS {
                let _held = lock.lock(&crash);
                crash.store_u64(own(thread), round);
                crash.write_back(own(thread), 8);
                if fenced || round < ROUNDS {
                    crash.fence();
                }
                crash.store_u64(TOTAL, crash.load_u64(TOTAL) + 1);
                crash.persist(TOTAL, 8);
                crash.note(round);
            }
        })
    };
    let outcome = crash.run((0..THREADS).map(job).collect(), Schedule::Inherited);
    outcome.finished().unwrap();
}

fn verify(crash: Crash, state: &CrashState) -> Result<(), String> {
    let parts = (0..THREADS).map(|thread| crash.load_u64(own(thread)));
    let acknowledged: u64 = (0..THREADS)
        .map(|thread| state.note(thread as usize + 1))
        .sum();
    let (total, sum) = (crash.load_u64(TOTAL), parts.sum::<u64>());
    match total {
        total if total > sum => Err(format!("a total of {total} of parts that make {sum}")),
        total if total < acknowledged => Err(format!(
            "{acknowledged} were acknowledged, {total} came back"
        )),
        _ => Ok(()),
    }
}

fn explorer<'a>(fenced: bool) -> Explorer<'a> {
    let medium = CrashOptions {
        capacity: 1 << 12,
        ..CrashOptions::default()
    };
    let options = ExploreOptions {
        medium,
        ..ExploreOptions::default()
    };
    Explorer::new(
        options,
        4096,
        |_| {},
        move |crash| add(crash, fenced),
        verify,
    )
}

fn swarm(fenced: bool) -> Report {
    explorer(fenced).swarm(&SwarmOptions {
        seeds: 0..300,
        ..SwarmOptions::default()
    })
}

#[test]
fn threads_that_fence_pass() {
    let report = swarm(true);
    report.expect_clean();
    assert_eq!(report.executions, 300);
    assert!(report.states > 400, "{report}");
}

#[test]
fn a_missing_fence_is_found_and_replayed() {
    let report = swarm(false);
    let finding = &report.findings[0];
    assert_eq!(
        explorer(false).replay(&finding.replay).as_ref(),
        Err(&finding.message)
    );
}

#[test]
fn the_same_seeds_do_the_same() {
    let (first, second) = (swarm(true), swarm(true));
    assert_eq!(
        (first.hash, first.states, first.images),
        (second.hash, second.states, second.images)
    );
}

#[test]
fn a_page_cache_survives_kills_but_not_power_failures() {
    for (failure, survives) in [(Failure::Kill, true), (Failure::Power, false)] {
        let medium = CrashOptions {
            capacity: 1 << 12,
            ..CrashOptions::with_domain(Domain::Process)
        };
        let options = ExploreOptions {
            medium,
            failure,
            ..ExploreOptions::default()
        };
        let explorer = Explorer::new(options, 4096, |_| {}, |crash| add(crash, true), verify);
        assert_eq!(
            explorer.explore().findings.is_empty(),
            survives,
            "{failure:?}"
        );
    }
}
