//! Does a collection that must give up leave nothing behind?

use crate::collect_support::{KINDS, MIXED, Spine, collect, options};
use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::PageSize;
use firn_heap::{Error, Pool, PoolKind};

fn each_pool(run: impl Fn(Pool<Crash>, PoolKind)) {
    for kind in KINDS {
        let medium = Crash::new(32 << 20, CrashOptions::default());
        run(MIXED.pool(medium, kind), kind);
    }
}

/// An operation that stays open blocks every step that needs a stop.
#[test]
fn an_open_operation_only_puts_it_off() {
    each_pool(|pool, kind| {
        let mut session = pool.session().unwrap();
        let ratio = pool.ratio(PageSize::Small);
        for _ in 0..2 {
            let guard = session.guard();
            let refused = pool.collect(&collect(PageSize::Small));
            assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
            assert!(!pool.has_open_cycle());
            let spine = guard.root::<Spine>("spine").unwrap();
            assert!(spine.get(5).is_some());
        }
        MIXED.assert_in(&pool, "refused");
        let collected = pool.collect(&collect(PageSize::Small)).unwrap();
        assert!(collected.moved > 0, "{kind:?}");
        let after = pool.ratio(PageSize::Small);
        assert!(after < 1.25 && after < ratio, "{kind:?}: {after}");
        MIXED.assert_in(&pool, "collected");
        drop(session);
        let medium = pool.medium().clone();
        pool.close().unwrap();
        MIXED.assert_in(&Pool::open(medium, &options(kind)).unwrap(), "reopened");
    });
}

#[test]
fn an_operation_keeps_an_open_cycle_from_its_end_only() {
    each_pool(|pool, _| {
        let mut collection = pool.collection(&collect(PageSize::Small)).unwrap();
        assert!(collection.begin().unwrap());
        let mut session = pool.session().unwrap();
        let guard = session.guard();
        let refused = collection.finish();
        assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
        assert!(pool.has_open_cycle());
        drop(guard);
        MIXED.assert_in(&pool, "refused");
        collection.finish().unwrap();
        drop(collection);
        assert!(!pool.has_open_cycle());
        MIXED.assert_in(&pool, "finished");
    });
}
