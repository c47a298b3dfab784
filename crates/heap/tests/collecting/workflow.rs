//! Does a cycle that the program's own allocations and frees drive reach its end?

use crate::collect_support::{KINDS, MIXED, Spine, collect};
use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::scheme::{ESPRESSO, PIGGYBACK, SFCCD};
use firn_heap::collector::{CollectOptions, PageSize, Workflow, WorkflowOptions};
use firn_heap::{Error, Pool, PoolKind, Session, View};

const EVERY: u64 = 10;
/// Objects that are touched between two looks, some of which move.
const TOUCHED_TOGETHER: usize = 20;

fn options() -> WorkflowOptions {
    WorkflowOptions {
        trigger: 1.25,
        every: EVERY,
        worse: 0.0,
        collect: collect(PageSize::Small),
    }
}

fn thin(kind: PoolKind) -> Pool<Crash> {
    MIXED.pool(Crash::new(32 << 20, CrashOptions::default()), kind)
}

/// Reads the object at this place, which moves it.
fn touch(session: &mut Session<Crash>, place: usize) {
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        spine.get(place).unwrap().to_vec().unwrap();
    });
}

#[test]
fn a_program_that_touches_nothing_gets_its_pages_back() {
    for kind in KINDS {
        for scheme in [&PIGGYBACK, &ESPRESSO, &SFCCD] {
            let pool = thin(kind);
            let collect = CollectOptions {
                scheme,
                ..collect(PageSize::Small)
            };
            let options = WorkflowOptions {
                collect,
                ..options()
            };
            let workflow = Workflow::new(&pool, &options).unwrap();
            let ratio = pool.ratio(PageSize::Small);
            // Begun at the first look, found at rest at the second, ended at the third.
            workflow.count(EVERY - 1).unwrap();
            assert!(!pool.has_open_cycle());
            workflow.count(1).unwrap();
            assert!(pool.has_open_cycle() && pool.moved_objects() == 0);
            workflow.count(EVERY).unwrap();
            assert!(pool.has_open_cycle());
            workflow.count(EVERY).unwrap();
            assert!(!pool.has_open_cycle());
            let done = workflow.collected();
            assert_eq!((done.cycles, done.moved), (1, done.planned));
            assert!(done.emptied_frames > done.filled_frames, "{done:?}");
            assert!(pool.ratio(PageSize::Small) < ratio);
            MIXED.assert_in(&pool, scheme.name);
        }
    }
}

#[test]
fn a_cycle_goes_on_as_long_as_the_program_moves_objects() {
    for kind in KINDS {
        let pool = thin(kind);
        let workflow = Workflow::new(&pool, &options()).unwrap();
        workflow.look().unwrap();
        let mut session = pool.session().unwrap();
        let staying: Vec<usize> = (0..MIXED.count).filter(|&i| (MIXED.stays)(i)).collect();
        let (touched, left) = staying.split_at(staying.len() / 2);
        let mut moved = 0;
        for together in touched.chunks(TOUCHED_TOGETHER) {
            together
                .iter()
                .for_each(|&place| touch(&mut session, place));
            workflow.look().unwrap();
            assert!(pool.moved_objects() > moved, "{kind:?}: {moved} only");
            moved = pool.moved_objects();
        }
        assert!(moved < touched.len() as u64 + left.len() as u64);
        workflow.look().unwrap();
        assert!(!pool.has_open_cycle());
        let done = workflow.collected();
        assert!((1..=done.planned - moved).contains(&done.moved), "{done:?}");
        MIXED.assert_in(&pool, "ended");
    }
}

#[test]
fn the_end_of_the_program_ends_the_cycle() {
    let pool = thin(PoolKind::Traced);
    let workflow = Workflow::new(&pool, &options()).unwrap();
    workflow.look().unwrap();
    assert!(pool.has_open_cycle());
    workflow.terminate().unwrap();
    assert!(!pool.has_open_cycle());
    MIXED.assert_in(&pool, "terminated");
    // Without an open cycle there is nothing to end, and a compact pool begins none.
    workflow.terminate().unwrap();
    workflow.look().unwrap();
    assert!(!pool.has_open_cycle());
}

#[test]
fn who_finds_another_at_it_goes_on() {
    let pool = thin(PoolKind::Traced);
    let workflow = Workflow::new(&pool, &options()).unwrap();
    let other = pool.collection(&collect(PageSize::Small)).unwrap();
    workflow.look().unwrap();
    assert!(!pool.has_open_cycle());
    assert!(matches!(workflow.terminate(), Err(Error::Collecting)));
    drop(other);
    workflow.look().unwrap();
    assert!(pool.has_open_cycle());
    let low = WorkflowOptions {
        trigger: 1.0,
        ..options()
    };
    let refused = Workflow::new(&pool, &low).map(drop);
    assert!(matches!(refused, Err(Error::Trigger { .. })));
}
