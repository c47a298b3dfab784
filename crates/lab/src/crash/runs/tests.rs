use std::collections::HashSet;

use firn_crash::Event;
use firn_format::geometry::{FIRST_DATA_CHUNK, Frame};
use firn_heap::collector::scheme::{FFCCD, PIGGYBACK, SFCCD};
use firn_heap::{FrameContent, Occupancy, PoolKind, Statistics};
use firn_media::{Domain, Hardware, Memory, Relocate};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};
use firn_workloads::under_test::Structure;

use super::*;

fn setting(structure: &str, threads: usize) -> Setting {
    Setting {
        structure: Structure::named(structure).unwrap(),
        scheme: &PIGGYBACK,
        survival: Domain::Adr.into(),
        pool: PoolKind::Traced,
        threads,
    }
}

fn runs<'a>(fixture: &'a Fixture, threads: usize, ticker: &'a Ticker) -> Runs<'a> {
    Runs {
        fixture,
        plant: None,
        depth: 1,
        threads,
        operations: OPERATIONS,
        ticker,
    }
}

/// Pages of objects that are in use.
fn used(crash: &Crash) -> HashSet<u64> {
    let frames = Occupancy::read(crash).unwrap().frames;
    let is_used = |content| {
        matches!(
            content,
            FrameContent::Slots { .. } | FrameContent::Large { .. }
        )
    };
    let numbered = (0..).zip(frames);
    let used = numbered.filter(|(_, frame)| is_used(frame.content));
    used.map(|(number, _)| number).collect()
}

/// Pages that cycles emptied and pages in use at the end are together more than were ever touched; and the coverage
/// read from the events agrees.
#[test]
fn pages_that_cycles_released_are_used_again() {
    for (threads, seed) in [(1, 1), (2, 2), (8, 3)] {
        let fixture = Runs::fixture(&setting("map", threads)).unwrap();
        let ticker = Ticker::default();
        let runs = runs(&fixture, threads, &ticker);
        let crash = Crash::from_image(&fixture.image, fixture.medium(None, seed));
        crash.set_schedule(Schedule::Random { seed });
        let mut touched = used(&crash);
        crash.start_trace();
        runs.run(&crash, &Known::default()).unwrap();
        let notes = crash.notes();
        assert!(notes[1..=threads].iter().sum::<u64>() >= OPERATIONS);
        let events = crash.take_trace();
        touched.extend(events.iter().filter_map(|event| {
            match event {
                Event::Store { word, .. } => Some(Frame::holding(VirtAddr(word * WORD_BYTES)))
                    .filter(|frame| frame.chunk().0 >= FIRST_DATA_CHUNK)
                    .map(|frame| frame.0),
                _ => None,
            }
        }));
        let did = Statistics::read(&crash).unwrap().collector;
        let emptied = did.emptied_bytes / FRAME_BYTES;
        let in_turn = emptied + used(&crash).len() as u64;
        assert!(did.cycles > 0, "{did:?}");
        assert!(
            in_turn > touched.len() as u64,
            "{threads} threads: {emptied} pages emptied, {in_turn} in turn of {}",
            touched.len()
        );
        let seen = Coverage::of(&events, fixture.image.len());
        assert_eq!((seen.cycles, seen.whole_runs), (did.cycles, 1), "{seen:?}");
        assert!((1..=emptied).contains(&seen.reused), "{seen:?}");
    }
}

/// Verdicts on the crashes of a run that left objects on the move, after `tamper` has changed each recovered pool.
/// `tamper` returns whether it found its target.
fn judged_after(
    setting: &Setting,
    tamper: impl Fn(&mut Survivor<'_>, &Crash) -> bool,
) -> Vec<Result<(), String>> {
    let fixture = Runs::fixture(setting).unwrap();
    let ticker = Ticker::default();
    let runs = runs(&fixture, setting.threads, &ticker);
    let (known, judged) = (Known::default(), RefCell::default());
    let explorer = runs.explorer_with(&known, |crash, state| {
        let mut survivor = Survivor::open(&fixture, crash.clone())?;
        if tamper(&mut survivor, &crash) {
            let mut judged: std::cell::RefMut<'_, Vec<_>> = judged.borrow_mut();
            judged.push(runs.judge(survivor, state, &known));
        }
        Ok(())
    });
    let three_runs = SwarmOptions {
        seeds: 1..4,
        ..one_run(1, 100)
    };
    explorer.swarm(&three_runs).expect_clean();
    drop(explorer);
    judged.into_inner()
}

/// Whether every verdict failed for this reason.
fn all_say(judged: &[Result<(), String>], what: &str) {
    assert!(judged.len() >= 3, "{judged:?}");
    let says = |result: &&Result<(), String>| !result.as_ref().is_err_and(|e| e.contains(what));
    let others: Vec<_> = judged.iter().filter(says).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn objects_that_are_elsewhere_than_media_says_are_found() {
    let sfccd = Setting {
        scheme: &SFCCD,
        ..setting("list", 1)
    };
    for (moved, what) in [
        (false, "at its destination on media"),
        (true, "at its source on media"),
    ] {
        let judged = judged_after(&sfccd, |survivor, crash| {
            let Some((_, settled)) = survivor.places().unwrap().one(crash, moved) else {
                return false;
            };
            crash.store_u64(settled, u64::from(!moved));
            true
        });
        all_say(&judged, what);
    }
    let ffccd = Setting {
        scheme: &FFCCD,
        ..setting("list", 1)
    };
    let judged = judged_after(&ffccd, |survivor, crash| {
        let Some((to, _)) = survivor.places().unwrap().one(crash, true) else {
            return false;
        };
        crash.offers().expect::<dyn Relocate>().clear_reached(to, 1);
        true
    });
    all_say(&judged, "on media");
}

#[test]
fn a_copy_that_differs_is_found_whatever_it_holds() {
    let judged = judged_after(&setting("list", 1), |survivor, crash| {
        let places = survivor.places().unwrap();
        let Some((to, _)) = places.one(crash, true) else {
            return false;
        };
        // The type's version in a header is never read, but it moves with the object.
        crash.store_u64(to, crash.load_u64(to) ^ 1);
        let kept = survivor.keeps(&places);
        assert!(kept.is_err_and(|e| e.contains("changed on its way")));
        crash.store_u64(to, crash.load_u64(to) ^ 1);
        survivor.keeps(&places).unwrap();
        true
    });
    assert!(
        judged.len() >= 3 && judged.iter().all(Result::is_ok),
        "{judged:?}"
    );
}

/// An object under an unknown root is sound, can be reached, and disturbs nothing.
#[test]
fn an_object_too_many_is_found() {
    for pool in [PoolKind::Traced, PoolKind::Explicit] {
        let setting = Setting {
            pool,
            ..setting("list", 1)
        };
        let judged = judged_after(&setting, |survivor, _| {
            let list = Structure::named("list").unwrap().under_test::<Crash>();
            let session = survivor.session().unwrap();
            session
                .transaction(|tx| list.create(tx, "leak", 0))
                .unwrap();
            true
        });
        all_say(&judged, "live where the content needs");
    }
}

/// In a pool with allocation bits, unreferenced objects are not reclaimed.
#[test]
fn an_object_that_nothing_refers_to_is_found_in_an_explicit_pool() {
    let explicit = Setting {
        pool: PoolKind::Explicit,
        ..setting("list", 1)
    };
    let judged = judged_after(&explicit, |survivor, _| {
        let session = survivor.session().unwrap();
        session
            .transaction(|tx| tx.alloc_bytes(b"leaked").map(drop))
            .unwrap();
        true
    });
    all_say(&judged, "live where the content needs");
}
