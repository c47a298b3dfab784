//! Is everything there after any use of a pool in which a cycle is open?

use crate::collect_support::{KINDS, MIXED, Objects, Spine, collect, leave_open, options};
use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::{PageSize, Stops};
use firn_heap::{
    Bytes, Error, LogKind, Obj, OpenError, Pool, PoolKind, PoolOptions, Ref, Refs, Session,
    Statistics, Stored, View,
};

/// Objects that move before the collection is dropped.
const MOVED: [u64; 3] = [0, 1, 100];

fn crash() -> Crash {
    Crash::new(32 << 20, CrashOptions::default())
}

fn each_open_cycle(run: impl Fn(Pool<Crash>, PoolKind, &str)) {
    for kind in KINDS {
        for moved in MOVED {
            let pool = MIXED.pool(crash(), kind);
            leave_open(&pool, &collect(PageSize::Small), moved);
            run(pool, kind, &format!("{kind:?}, {moved} moved"));
        }
    }
}

fn reopened(medium: Crash, kind: PoolKind) -> Pool<Crash> {
    Pool::open(medium, &options(kind)).unwrap()
}

#[test]
fn a_check_finds_nothing_and_moves_nothing() {
    each_open_cycle(|pool, _, name| {
        assert_eq!(pool.check().unwrap(), [], "{name}");
        assert!(pool.has_open_cycle(), "{name}");
        MIXED.assert_in(&pool, name);
        assert_eq!(pool.check().unwrap(), [], "{name}");
    });
}

#[test]
fn closing_ends_it() {
    each_open_cycle(|pool, kind, name| {
        let medium = pool.medium().clone();
        pool.close().unwrap();
        let pool = reopened(medium, kind);
        assert!(!pool.has_open_cycle() && !pool.needs_trace(), "{name}");
        MIXED.assert_in(&pool, name);
        assert_eq!(
            Statistics::read(pool.medium()).unwrap().objects,
            MIXED.staying(),
            "{name}"
        );
    });
}

#[test]
fn dropping_the_pool_ends_it() {
    each_open_cycle(|pool, kind, name| {
        let medium = pool.medium().clone();
        drop(pool);
        let read_only = Pool::open_read_only(medium.clone(), "collect").unwrap();
        MIXED.assert_in(&read_only, name);
        drop(read_only);
        MIXED.assert_in(&reopened(medium, kind), name);
    });
}

#[test]
fn an_abandoned_pool_goes_on_with_it() {
    each_open_cycle(|pool, kind, name| {
        let medium = pool.medium().clone();
        pool.abandon();
        let refused = Pool::open_read_only(medium.clone(), "collect").map(drop);
        assert!(matches!(refused, Err(OpenError::NeedsRecovery { .. })));
        let pool = reopened(medium, kind);
        assert!(pool.has_open_cycle(), "{name}");
        MIXED.assert_in(&pool, name);
        pool.collect(&collect(PageSize::Small)).unwrap();
        assert!(!pool.has_open_cycle() && !pool.needs_trace(), "{name}");
        MIXED.assert_in(&pool, name);
        assert_eq!(
            Statistics::read(pool.medium()).unwrap().objects,
            MIXED.staying(),
            "{name}"
        );
    });
}

/// In an explicit pool the cycle resumes under the other log, where addresses stay.
#[test]
fn an_undo_log_is_refused_in_a_traced_pool_until_it_has_ended() {
    each_open_cycle(|pool, kind, name| {
        let medium = pool.medium().clone();
        pool.abandon();
        let undo = PoolOptions {
            log: LogKind::Undo,
            ..options(kind)
        };
        match (kind, Pool::open(medium.clone(), &undo)) {
            (PoolKind::Explicit, Ok(pool)) => {
                assert!(pool.has_open_cycle(), "{name}");
                MIXED.assert_in(&pool, name);
                pool.close().unwrap();
            }
            (PoolKind::Traced, Err(OpenError::Option { .. })) => {
                reopened(medium.clone(), kind).close().unwrap();
            }
            (_, other) => panic!("{name}: {:?}", other.map(drop)),
        }
        MIXED.assert_in(&Pool::open(medium, &undo).unwrap(), name);
    });
}

#[test]
fn a_trace_ends_it_and_reclaims_nothing_that_lives() {
    each_open_cycle(|pool, _, name| {
        let traced = pool.trace().unwrap();
        assert!(!pool.has_open_cycle(), "{name}");
        assert_eq!((traced.objects, traced.reclaimed), (MIXED.staying(), 0));
        MIXED.assert_in(&pool, name);
    });
}

#[test]
fn a_trace_after_a_crash_ends_it() {
    each_open_cycle(|pool, kind, name| {
        let medium = pool.medium().clone();
        pool.abandon();
        let pool = reopened(medium, kind);
        let traced = pool.trace().unwrap();
        assert_eq!(traced.objects, MIXED.staying(), "{name}");
        assert!(!pool.has_open_cycle() && !pool.needs_trace(), "{name}");
        MIXED.assert_in(&pool, name);
    });
}

/// Copies the object at a place and changes the copy.
fn change(session: &mut Session<Crash>, place: usize) {
    session
        .transaction(|tx| {
            let object: Obj<'_, Bytes, _> = tx.root::<Spine>("spine")?.get(place).unwrap();
            object.overwrite(0, &[99; 8])
        })
        .unwrap();
}

fn first_byte<M: firn_media::Medium>(pool: &Pool<M>, place: usize) -> u8 {
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        spine.get(place).unwrap().to_vec().unwrap()[0]
    })
}

#[test]
fn a_copy_has_every_object_once_and_as_it_is() {
    each_open_cycle(|pool, _, name| {
        let copy = pool
            .copy_into(crash(), firn_heap::CopyIdentity::New, &mut |_| {})
            .unwrap();
        assert!(pool.has_open_cycle(), "{name}: the pool is only read");
        MIXED.assert_in(&copy, name);
        let copied = Statistics::read(copy.medium()).unwrap();
        assert_eq!(copied.objects, MIXED.staying(), "{name}");
        // Objects that moved because they were changed are copied with the change, whichever reference leads to them.
        let mut session = pool.session().unwrap();
        for place in [5, 500, 995] {
            change(&mut session, place);
        }
        drop(session);
        let copy = pool
            .copy_into(crash(), firn_heap::CopyIdentity::New, &mut |_| {})
            .unwrap();
        for place in [5, 500, 995] {
            assert_eq!(first_byte(&copy, place), 99, "{name}");
        }
        assert_eq!(
            Statistics::read(copy.medium()).unwrap().objects,
            MIXED.staying(),
            "{name}"
        );
        assert_eq!(copy.check().unwrap(), [], "{name}");
    });
}

/// Two references to one object, one of them healed.
#[test]
fn a_copy_keeps_what_is_shared_shared() {
    for kind in KINDS {
        let pool = MIXED.pool(crash(), kind);
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| {
                let pair = tx.alloc_refs::<Bytes>(2)?;
                let shared = tx.root::<Spine>("spine")?.get(5);
                pair.set(0, shared)?;
                pair.set(1, shared)?;
                tx.set_root("pair", pair)
            })
            .unwrap();
        leave_open(&pool, &collect(PageSize::Small), 0);
        session.read(|view| {
            view.root::<Refs<Bytes>>("pair")
                .unwrap()
                .get(1)
                .unwrap()
                .len()
        });
        let copy = pool
            .copy_into(crash(), firn_heap::CopyIdentity::New, &mut |_| {})
            .unwrap();
        let mut session = copy.session().unwrap();
        session.read(|view| {
            let pair = view.root::<Refs<Bytes>>("pair").unwrap();
            let address = |i| pair.get(i).unwrap().address();
            assert_eq!(address(0), address(1), "{kind:?}");
        });
        drop(session);
        assert_eq!(
            Statistics::read(copy.medium()).unwrap().objects,
            MIXED.staying() + 1,
            "{kind:?}"
        );
    }
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 1)]
struct Thing {
    next: Ref<Thing>,
    number: u64,
}

/// Does not fit into the old one's slot.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 2)]
struct LongThing {
    next: Ref<LongThing>,
    number: u64,
    times: [u64; 6],
}

const THINGS: usize = 400;

fn thin_things(kind: PoolKind) -> Pool<Crash> {
    let pool = Pool::create(crash(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Thing>(THINGS)?;
            tx.set_root("things", all)?;
            for i in 0..THINGS {
                let number = i as u64;
                let next = Ref::NULL;
                all.set(i, Some(tx.alloc(Thing { next, number })?))?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    session
        .transaction(|tx| {
            let all = tx.root::<Refs<Thing>>("things")?;
            for i in (0..THINGS).filter(|i| i % 5 != 0) {
                // SAFETY: the only reference is removed.
                unsafe { tx.free(all.get(i).unwrap())? };
                all.set(i, None)?;
            }
            for i in (0..THINGS - 5).filter(|i| i % 5 == 0) {
                all.get(i).unwrap().link(Thing::NEXT, all.get(i + 5));
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    drop(session);
    pool
}

#[test]
fn a_migration_turns_every_object() {
    let turn = |old: Thing| LongThing {
        next: old.next.retyped(),
        number: old.number,
        times: [old.number; 6],
    };
    for kind in KINDS {
        for moved in [0, 1, 20] {
            let pool = thin_things(kind);
            leave_open(&pool, &collect(PageSize::Small), moved);
            let turned = pool.migrate(turn).unwrap();
            assert_eq!(turned, THINGS as u64 / 5, "{kind:?}, {moved} moved");
            assert_eq!(pool.check().unwrap(), []);
            let mut session = pool.session().unwrap();
            session.read(|view| {
                let all = view.root::<Refs<LongThing>>("things").unwrap();
                let mut thing = all.get(0);
                for number in (0..THINGS as u64).step_by(5) {
                    let now = thing.unwrap();
                    assert_eq!(now.load(LongThing::NUMBER), number);
                    assert_eq!(now.load(LongThing::TIMES), [number; 6]);
                    thing = now.follow(LongThing::NEXT);
                }
                assert!(thing.is_none());
            });
        }
    }
}

#[test]
fn a_second_collection_is_refused_and_a_later_one_ends_the_cycle() {
    each_open_cycle(|pool, _, name| {
        let collection = pool.collection(&collect(PageSize::Small)).unwrap();
        let second = pool.collect(&collect(PageSize::Small));
        assert!(matches!(second, Err(Error::Collecting)), "{name}");
        let traced = pool.trace();
        assert!(matches!(traced, Err(Error::Collecting)), "{name}");
        drop(collection);
        let collected = pool.collect(&collect(PageSize::Small)).unwrap();
        assert!(collected.cycles >= 1, "{name}");
        assert!(!pool.has_open_cycle(), "{name}");
        assert_ne!(pool.collector_stops(), Stops::default(), "{name}");
        MIXED.assert_in(&pool, name);
    });
}

/// A trace frees according to its own findings; between the steps of a collection it must not.
#[test]
fn a_trace_is_refused_while_a_collection_is_under_way() {
    let objects = Objects {
        count: 300,
        ..MIXED
    };
    let pool = objects.pool(crash(), PoolKind::Traced);
    let collection = pool.collection(&collect(PageSize::Small)).unwrap();
    assert!(matches!(pool.trace(), Err(Error::Collecting)));
    drop(collection);
    pool.trace().unwrap();
    objects.assert_in(&pool, "traced");
}

#[test]
fn nothing_is_collected_in_a_closed_pool() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    let clone = pool.clone();
    pool.close().unwrap();
    let refused = clone.collect(&collect(PageSize::Small));
    assert!(matches!(refused, Err(Error::Closed)));
    let medium = clone.medium().clone();
    drop(clone);
    MIXED.assert_in(&reopened(medium, PoolKind::Traced), "reopened");
}
