//! Are a cycle's emptied pages, and those of its plan, reused only when nothing of the cycle can reach them, crashed
//! anywhere?

use crate::collect_support::{KINDS, Objects, UNEVEN, collect, leave_open, options};
use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer};
use firn_format::geometry::PHASE;
use firn_format::plan::{Phase, PlanHeader};
use firn_format::sealed::Seal;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, Refs, Session, Statistics, Tx, View};
use firn_media::{Medium, Memory};
use firn_units::FRAME_BYTES;

type Spine = crate::collect_support::Spine;

/// Crash images that are drawn.
const IMAGES: u64 = 8;
/// Objects that fill a page each.
const FULL: usize = 16;
const FULL_LEN: usize = 4000;

fn crash() -> Crash {
    Crash::new(16 << 20, CrashOptions::default())
}

fn small() -> CollectOptions {
    collect(PageSize::Small)
}

/// Takes pages, in one transaction, and fills them with ones.
fn fill_pages<M: Medium>(session: &mut Session<M>) {
    let fill = |tx: Tx<'_, M>| {
        let pages = tx.alloc_refs::<Bytes>(FULL)?;
        for i in 0..FULL {
            pages.set(i, Some(tx.alloc_bytes(&[0xff; FULL_LEN])?))?;
        }
        tx.set_root("pages", pages)
    };
    session.transaction(fill).unwrap();
}

fn pages_are_full<M: Medium>(session: &mut Session<M>) -> bool {
    session.read(|view| {
        let pages = view.root::<Spine>("pages").unwrap();
        let is_full = |i| pages.get(i).unwrap().to_vec().unwrap() == [0xff; FULL_LEN];
        (0..FULL).all(is_full)
    })
}

/// Opens drawn images of what a power failure leaves.
fn each_image(crash: &Crash, kind: PoolKind, judge: impl Fn(&Pool<Crash>, &str)) {
    for seed in 0..IMAGES {
        let image = crash.random_image(seed);
        let medium = Crash::from_image(&image, CrashOptions::default());
        let pool = Pool::open(medium, &options(kind)).unwrap();
        judge(&pool, &format!("{kind:?}, image {seed}"));
        pool.abandon();
    }
}

#[test]
fn a_plan_on_a_page_that_held_data_settles_nothing() {
    for kind in KINDS {
        let crash = crash();
        let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        fill_pages(&mut session);
        UNEVEN.make(&pool).unwrap();
        let empty = |tx: Tx<'_, Crash>| {
            let pages = tx.root::<Refs<Bytes>>("pages")?;
            tx.remove_root("pages")?;
            // SAFETY: the root was the only way to them.
            (0..FULL).try_for_each(|i| unsafe { tx.free(pages.get(i).unwrap()) })?;
            // SAFETY: its root was removed, and it was the only one.
            unsafe { tx.free(pages) }
        };
        session.transaction(empty).unwrap();
        UNEVEN.thin(&pool).unwrap();
        drop(session);
        let before = crash.cache_image();
        leave_open(&pool, &small(), 1);
        assert_ne!(before.load_u64(first_settled_word(&crash)), 0, "{kind:?}");
        each_image(&crash, kind, |pool, name| UNEVEN.assert_in(pool, name));
        pool.abandon();
    }
}

/// Where the settled words of the open cycle begin.
fn first_settled_word(crash: &Crash) -> firn_units::VirtAddr {
    let value = Seal::Phase.open(crash.load_u64(PHASE)).unwrap();
    let Ok(Phase::Active(plan)) = Phase::from_value(value, PHASE) else {
        panic!("no cycle is open");
    };
    let words = core::array::from_fn(|i| crash.load_u64(plan.start() + i as u64 * 8));
    let header = PlanHeader::from_words(&words, plan.start()).unwrap();
    header.settled_at(plan)
}

/// Rule A2: an entry that names a settled word, or a copy that is gone, is still valid when the pages are free.
#[test]
fn what_a_cycle_logged_is_not_replayed_into_new_objects() {
    for kind in KINDS {
        let crash = crash();
        let pool = UNEVEN.pool(crash.clone(), kind);
        let mut collection = pool.collection(&small()).unwrap();
        assert!(collection.begin().unwrap());
        let mut session = pool.session().unwrap();
        let change = |tx: Tx<'_, Crash>| {
            let spine = tx.root::<Spine>("spine")?;
            let stay = (0..UNEVEN.count).filter_map(|i| spine.get(i));
            stay.map(|object| object.overwrite(0, &[7; 8]))
                .collect::<Result<Vec<_>, _>>()
                .map(drop)
        };
        session.transaction(change).unwrap();
        let free = |tx: Tx<'_, Crash>| {
            let spine = tx.root::<Spine>("spine")?;
            (0..UNEVEN.count).try_for_each(|i| {
                if let Some(object) = spine.get(i) {
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(object)? };
                }
                spine.set(i, None)
            })
        };
        session.transaction(free).unwrap();
        collection.finish().unwrap();
        fill_pages(&mut session);
        each_image(&crash, kind, |pool, name| {
            let mut session = pool.session().unwrap();
            assert!(pages_are_full(&mut session), "{name}");
        });
        drop((session, collection));
        pool.abandon();
    }
}

#[test]
fn sources_are_used_again_only_when_the_cycle_has_ended() {
    for kind in KINDS {
        let explorer = Explorer::new(
            ExploreOptions::default(),
            16 << 20,
            |crash| {
                let pool = UNEVEN.pool(crash.clone(), kind);
                leave_open(&pool, &small(), 0);
                pool.abandon();
            },
            |crash| {
                let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
                let mut collection = pool.collection(&small()).unwrap();
                collection.finish().unwrap();
                drop(collection);
                pool.abandon();
            },
            |crash, _| {
                let text = |e: Error| e.to_string();
                let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
                pool.medium().end_of_recovery();
                // Before any object is touched, and so moves.
                fill_pages(&mut pool.session().map_err(text)?);
                UNEVEN.verify(&pool)?;
                pool.collect(&small()).map_err(text)?;
                UNEVEN.verify(&pool)?;
                let full = pages_are_full(&mut pool.session().map_err(text)?);
                pool.abandon();
                full.then_some(()).ok_or("pages are not full".into())
            },
        );
        let report = explorer.explore();
        report.expect_clean();
        assert!(report.exhaustive());
        println!("{kind:?}: {} states", report.states);
    }
}

/// Objects of two pages, whose class has more slots than an active run holds.
const NARROW: Objects = Objects {
    count: 100,
    len: |_| 30,
    stays: |i| i % 10 == 0,
};

#[test]
fn a_page_in_a_sessions_hand_is_emptied_too() {
    for kind in KINDS {
        let pool = NARROW.pool(crash(), kind);
        let mut session = pool.session().unwrap();
        let make = |tx: Tx<'_, Crash>| tx.set_root("last", tx.alloc_bytes(&[1; 30])?);
        session.transaction(make).unwrap();
        let pages = |pool: &Pool<Crash>| {
            let statistics = Statistics::read(pool.medium()).unwrap();
            statistics.footprint_4k_bytes / FRAME_BYTES
        };
        session.publish_statistics();
        let before = pages(&pool);
        pool.collect(&small()).unwrap();
        assert_eq!(pages(&pool), before - 1, "{kind:?}");
        NARROW.assert_in(&pool, "collected");
    }
}
