//! How does a collection work in a pool that is full and cannot grow?

use crate::collect_support::{KINDS, Spine, collect};
use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::{CollectOptions, Collected, Ended, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Session, View};

const PLACES: usize = 60_000;
const LEN: usize = 250;
/// One object in this many stays.
const STEP: usize = 5;
/// Bytes of the device or the pool.
const BYTES: u64 = 20 << 20;

/// The limit that keeps the pool from growing.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Pool,
    Device,
}

fn options(kind: PoolKind, limit: Limit) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        max_bytes: matches!(limit, Limit::Pool).then_some(BYTES),
        ..PoolOptions::new("full")
    }
}

fn medium(limit: Limit) -> Crash {
    let space_limit = match limit {
        Limit::Pool => u64::MAX,
        Limit::Device => BYTES,
    };
    let options = CrashOptions {
        space_limit,
        ..CrashOptions::default()
    };
    Crash::new(16 << 20, options)
}

fn value(i: usize) -> Vec<u8> {
    (0..LEN).map(|k| (i * 7 + k) as u8).collect()
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::PoolFull { .. } | Error::Medium(_))
}

/// Makes objects until there is no room. Returns how many.
fn fill(session: &mut Session<Crash>) -> usize {
    session
        .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(PLACES)?))
        .unwrap();
    for i in 0..PLACES {
        let made = session.transaction(|tx| {
            let new = tx.alloc_bytes(&value(i))?;
            tx.root::<Spine>("spine")?.set(i, Some(new))
        });
        if let Err(error) = made {
            assert!(is_full(&error), "{error}");
            return i;
        }
    }
    panic!("the pool grew");
}

fn free(session: &mut Session<Crash>, places: impl Iterator<Item = usize>) {
    for i in places {
        session
            .transaction(|tx| {
                let spine = tx.root::<Spine>("spine")?;
                if let Some(old) = spine.get(i) {
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(old)? };
                }
                spine.set(i, None)
            })
            .unwrap();
    }
}

fn assert_content(pool: &Pool<Crash>, stays: impl Fn(usize) -> bool, when: &str) {
    assert_eq!(pool.check().unwrap(), [], "{when}");
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        for i in 0..PLACES {
            let found = spine.get(i).map(|b| b.to_vec().unwrap());
            assert_eq!(found, stays(i).then(|| value(i)), "{when}: {i}");
        }
    });
}

/// Collects; if there is no room it may report that instead, as long as nothing is begun.
fn try_collect(pool: &Pool<Crash>) -> Option<Collected> {
    let collected = pool.collect(&collect(PageSize::Small));
    assert!(!pool.has_open_cycle());
    match collected {
        Ok(collected) => Some(collected),
        Err(error) => {
            assert!(is_full(&error), "{error}");
            None
        }
    }
}

fn each_case(run: impl Fn(Pool<Crash>, PoolKind, Limit, &str)) {
    for kind in KINDS {
        for limit in [Limit::Pool, Limit::Device] {
            let pool = Pool::create(medium(limit), &options(kind, limit)).unwrap();
            run(pool, kind, limit, &format!("{kind:?} {limit:?}"));
        }
    }
}

#[test]
fn a_full_pool_stays_as_it_is() {
    each_case(|pool, kind, limit, name| {
        let made = fill(&mut pool.session().unwrap());
        let ratio = pool.ratio(PageSize::Small);
        let _ = try_collect(&pool);
        assert!(pool.ratio(PageSize::Small) <= ratio, "{name}");
        assert_content(&pool, |i| i < made, name);
        let medium = pool.medium().clone();
        pool.close().unwrap();
        let pool = Pool::open(medium, &options(kind, limit)).unwrap();
        assert_content(&pool, |i| i < made, name);
    });
}

#[test]
fn holes_without_a_free_page_can_be_used_again() {
    each_case(|pool, _, _, name| {
        let mut session = pool.session().unwrap();
        let made = fill(&mut session);
        free(&mut session, (0..made).filter(|i| i % STEP != 0));
        let stays = |i: usize| i < made && i.is_multiple_of(STEP);
        let _ = try_collect(&pool);
        assert_content(&pool, stays, name);
        // Whether or not anything was moved, the freed space can be used.
        for i in (0..made).filter(|i| i % STEP != 0) {
            session
                .transaction(|tx| {
                    let new = tx.alloc_bytes(&value(i))?;
                    tx.root::<Spine>("spine")?.set(i, Some(new))
                })
                .unwrap_or_else(|error| panic!("{name}: {i} of {made}: {error}"));
        }
        assert_content(&pool, |i| i < made, name);
    });
}

#[test]
fn a_few_free_pages_are_enough_to_win_the_rest() {
    each_case(|pool, _, _, name| {
        let mut session = pool.session().unwrap();
        let made = fill(&mut session);
        // A stretch of pages without objects, and holes everywhere else.
        let stays = |i: usize| i >= 1000 && i < made && i.is_multiple_of(STEP);
        free(&mut session, (0..made).filter(|&i| !stays(i)));
        let before = pool.ratio(PageSize::Small);
        let collected = try_collect(&pool).unwrap();
        let after = pool.ratio(PageSize::Small);
        assert!(collected.cycles > 0 && collected.moved > 0, "{name}");
        assert!(before > 3.0 && after < 1.2, "{name}: {before} to {after}");
        assert_content(&pool, stays, name);
    });
}

/// Every second object is freed, and no page is free except those that allocation leaves to collections.
#[test]
fn holes_in_a_full_pool_become_pages() {
    each_case(|pool, kind, limit, name| {
        let mut session = pool.session().unwrap();
        let made = fill(&mut session);
        let stays = |i: usize| i < made && i.is_multiple_of(2);
        free(&mut session, (0..made).filter(|&i| !stays(i)));
        drop(session);
        let medium = pool.medium().clone();
        pool.close().unwrap();
        // A new open does not know what the device refused.
        let pool = Pool::open(medium.clone(), &options(kind, limit)).unwrap();
        let before = [PageSize::Small, PageSize::Huge].map(|pages| pool.ratio(pages));
        let refusals = medium.refusals();
        let collected = pool.collect(&CollectOptions::default()).unwrap();
        let refusals = medium.refusals() - refusals;
        let after = [PageSize::Small, PageSize::Huge].map(|pages| pool.ratio(pages));
        println!("{name}: {before:?} to {after:?}, {refusals} refusals, {collected:?}");
        assert!(before[0] > 1.8, "{name}: {before:?}");
        assert!(
            after[0] < 1.25 && after[1] <= before[1],
            "{name}: {after:?}"
        );
        assert_ne!(collected.ended, Ended::NoRoom, "{name}");
        let most = match limit {
            Limit::Pool => 0,
            // It grows no further, and this many holes have no blocks.
            Limit::Device => 8,
        };
        assert!(
            refusals <= most,
            "{name}: the device refused {refusals} times"
        );
        assert_content(&pool, stays, name);
    });
}

/// One refusal answers an allocation; an allocation that finds frames with blocks gets none.
#[test]
fn a_full_device_is_asked_once_by_who_finds_nothing() {
    for kind in KINDS {
        let pool = Pool::create(medium(Limit::Device), &options(kind, Limit::Device)).unwrap();
        let mut session = pool.session().unwrap();
        let made = fill(&mut session);
        let before = pool.medium().refusals();
        let fails = |session: &mut Session<Crash>| {
            let made = session.transaction(|tx| tx.alloc_bytes(&[0; 100_000]).map(|_| ()));
            assert!(is_full(&made.unwrap_err()));
        };
        (0..10).for_each(|_| fails(&mut session));
        let asked = pool.medium().refusals() - before;
        assert!(
            asked <= 10,
            "{kind:?}: {asked} refusals for ten allocations"
        );
        free(&mut session, 0..made);
        let before = pool.medium().refusals();
        session
            .transaction(|tx| tx.alloc_bytes(&[0; 100_000]).map(|_| ()))
            .unwrap();
        assert_eq!(pool.medium().refusals(), before, "{kind:?}");
    }
}
