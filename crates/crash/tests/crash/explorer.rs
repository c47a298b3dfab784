//! Does the explorer visit exactly the legal crash states, each once, and report when it did not?

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_crash::{Crash, CrashOptions, Exploration, ExploreOptions, Explorer, Job, Schedule};
use firn_media::{Domain, MediumExt, Memory, Space};
use firn_units::VirtAddr;

fn options(domain: Domain) -> CrashOptions {
    CrashOptions {
        capacity: 1 << 12,
        ..CrashOptions::with_domain(domain)
    }
}

/// Random operations on five words in three lines.
fn random_operations(crash: &Crash, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for step in 0..18 {
        let at = [0, 8, 64, 128, 136].map(VirtAddr)[random.usize(..5)];
        match random.u8(..8) {
            0..4 => crash.store_u64(at, random.u64(..3)),
            4 => drop(crash.compare_exchange_u64(at, 1, 2)),
            5 => crash.write_back(at, 8),
            6 => crash.fence(),
            _ => crash.note(step),
        }
    }
}

fn content(crash: &Crash) -> [u64; 5] {
    [0, 8, 64, 128, 136].map(|at| crash.load_u64(VirtAddr(at)))
}

#[test]
fn the_states_are_those_of_crashing_at_every_event() {
    for domain in [Domain::Adr, Domain::Eadr] {
        for seed in 0..60 {
            let found = RefCell::new(Vec::new());
            let explore = ExploreOptions {
                medium: options(domain),
                recovery_depth: 0,
                ..Default::default()
            };
            let report = Explorer::new(
                explore,
                4096,
                |_| {},
                |crash| random_operations(crash, seed),
                |crash, state| {
                    found.borrow_mut().push((content(&crash), state.note(0)));
                    Ok(())
                },
            )
            .explore();
            assert!(report.exhaustive());

            let mut expected = BTreeSet::new();
            let whole = Crash::new(4096, options(domain));
            random_operations(&whole, seed);
            for event in 0..=whole.events() {
                let crash = Crash::new(4096, options(domain));
                let inner = crash.clone();
                let job: Job = Box::new(move || random_operations(&inner, seed));
                crash.run_until(vec![job], Schedule::Sequential, event);
                for image in crash.images() {
                    let reopened = Crash::from_image(&image, options(domain));
                    expected.insert((content(&reopened), *crash.notes().last().unwrap()));
                }
            }
            let found = found.into_inner();
            let distinct: BTreeSet<_> = found.iter().copied().collect();
            assert_eq!(found.len(), distinct.len(), "a state comes twice");
            assert_eq!(distinct, expected, "seed {seed}");
        }
    }
}

#[test]
fn too_many_images_are_drawn_and_the_report_says_so() {
    let wide = |crash: &Crash| {
        for round in 1..=3 {
            (0..20).for_each(|line| crash.store_u64(VirtAddr(line * 64), round));
        }
    };
    let explore = ExploreOptions {
        medium: options(Domain::Adr),
        exploration: Exploration::Eager,
        max_states: 5_000,
        ..Default::default()
    };
    let report = Explorer::new(explore, 4096, |_| {}, wide, |_, _| Ok(())).explore();
    assert!(
        !report.exhaustive() && report.sampled_events > 0,
        "{report}"
    );
    assert!(report.states > 1_000 && report.states < 20_000, "{report}");
    assert!(report.to_string().starts_with("sampled"));
}

#[test]
fn memory_is_as_before_after_each_check() {
    let vandal = |crash: Crash, _: &firn_crash::CrashState| {
        let before = content(&crash);
        if before[4] > 2 {
            return Err("an earlier check left its traces".into());
        }
        crash.store_u64(VirtAddr(136), 77);
        crash
            .discard(VirtAddr(0), 4096)
            .map_err(|error| error.to_string())?;
        crash.truncate(0).map_err(|error| error.to_string())?;
        crash
            .reserve(VirtAddr(0), 4096)
            .map_err(|error| error.to_string())
    };
    let explore = ExploreOptions {
        medium: options(Domain::Adr),
        recovery_depth: 0,
        ..Default::default()
    };
    let report = Explorer::new(
        explore,
        4096,
        |_| {},
        |crash| random_operations(crash, 3),
        vandal,
    )
    .explore();
    report.expect_clean();
}

/// One thread publishes x; the other computes y from the x it saw, and acknowledges y.
fn publish_and_use(crash: &Crash, flush_what_was_read: bool) {
    let (x, y) = (VirtAddr(0), VirtAddr(64));
    let (one, other) = (crash.clone(), crash.clone());
    let publish: Job = Box::new(move || {
        one.store_u64(x, 1);
        one.persist(x, 8);
    });
    let consume: Job = Box::new(move || {
        if other.load_u64(x) == 1 {
            other.store_u64(y, 1);
            if flush_what_was_read {
                other.write_back(x, 8);
                other.fence();
            }
            other.persist(y, 8);
            other.note(1);
        }
    });
    crash
        .run(vec![publish, consume], Schedule::Inherited)
        .finished()
        .unwrap();
}

#[test]
fn a_race_with_a_crash_is_found_and_replayed() {
    for flush in [false, true] {
        let explore = ExploreOptions {
            medium: options(Domain::Adr),
            ..Default::default()
        };
        let explorer = Explorer::new(
            explore,
            4096,
            |_| {},
            move |crash| publish_and_use(crash, flush),
            |crash, state| match (content(&crash)[0], state.note(2)) {
                (0, 1) => Err("what an acknowledged operation read is lost".into()),
                _ => Ok(()),
            },
        );
        let report = explorer.explore_interleavings(3, 100_000);
        if flush {
            assert!(report.expect_clean().exhaustive());
        } else {
            let finding = &report.findings[0];
            assert_eq!(
                explorer.replay(&finding.replay).as_ref(),
                Err(&finding.message),
                "{}",
                finding.replay
            );
        }
    }
}

#[test]
fn the_death_of_the_process_is_crashed_at_every_event() {
    let explore = ExploreOptions {
        medium: options(Domain::Process),
        ..Default::default()
    };
    let report = Explorer::new(
        explore,
        4096,
        |_| {},
        |crash| (0..3).for_each(|line| crash.store_u64(VirtAddr(line * 64), 1)),
        |crash, state| {
            let [first, _, second, third, _] = content(&crash);
            if state.kill && first >= second && second >= third {
                Ok(())
            } else {
                Err("reordered".into())
            }
        },
    )
    .explore();
    assert_eq!(report.expect_clean().states, 4);
}

#[test]
fn a_panic_of_the_check_is_a_finding() {
    let explore = ExploreOptions {
        medium: options(Domain::Adr),
        ..Default::default()
    };
    let report = Explorer::new(
        explore,
        4096,
        |_| {},
        |crash| crash.store_u64(VirtAddr(0), 1),
        |crash, _| {
            assert_eq!(crash.load_u64(VirtAddr(0)), 0, "planted");
            Ok(())
        },
    )
    .explore();
    assert!(report.findings[0].message.contains("planted"));
}

/// A flag says that the second frame may be stored to. It is cleared, and the frame loses its blocks; whether
/// the flag is durable by then is the question.
fn discard_after_a_flag(exploration: Exploration, persisted: bool) -> firn_crash::Report {
    const FLAG: VirtAddr = VirtAddr(0);
    const SECOND: VirtAddr = VirtAddr(4096);
    let explore = ExploreOptions {
        medium: CrashOptions {
            capacity: 1 << 13,
            ..CrashOptions::with_domain(Domain::Adr)
        },
        recovery_depth: 0,
        exploration,
        ..Default::default()
    };
    Explorer::new(
        explore,
        1 << 13,
        |crash| crash.store_u64(FLAG, 1),
        |crash| {
            crash.store_u64(FLAG, 0);
            if persisted {
                crash.persist(FLAG, 8);
            }
            crash.discard(SECOND, 4096).unwrap();
            // Makes the flag durable, too late.
            crash.sync().unwrap();
        },
        |crash, _| {
            if crash.load_u64(FLAG) == 1 {
                crash.store_u64(SECOND, 1);
            }
            Ok(())
        },
    )
    .explore()
}

#[test]
fn a_hole_is_there_before_the_sync_that_makes_older_stores_durable() {
    for exploration in [Exploration::Lazy, Exploration::EachWord, Exploration::Eager] {
        let report = discard_after_a_flag(exploration, true);
        report.expect_clean();
        let report = discard_after_a_flag(exploration, false);
        let message = &report.findings[0].message;
        assert!(message.contains("into discarded space"), "{message}");
    }
}
