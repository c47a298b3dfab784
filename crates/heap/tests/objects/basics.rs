//! Does each part work?

mod limits;
mod roots;

use std::collections::BTreeMap;

use firn_crash::{Crash, CrashOptions};
use firn_heap::{
    Bytes, Error, Obj, Pool, PoolKind, PoolOptions, Ref, Refs, RootHandle, Session, Statistics,
    Stored, View,
};
use firn_mapped::{Mapped, MappedOptions};

type Spine = Refs<Bytes>;

fn mapped() -> Mapped {
    Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap()
}

fn pool(kind: PoolKind) -> Pool<Mapped> {
    let options = PoolOptions {
        kind,
        ..PoolOptions::new("basics")
    };
    let pool = Pool::create(mapped(), &options).unwrap();
    let make = |tx: firn_heap::Tx<'_, Mapped>| {
        let spine = tx.alloc_refs::<Bytes>(1000)?;
        tx.set_root("spine", spine)
    };
    pool.session().unwrap().transaction(make).unwrap();
    pool
}

fn content(pool: &Pool<Mapped>, index: usize) -> Option<Vec<u8>> {
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let spine: firn_heap::Obj<'_, Spine, _> = guard.root("spine").unwrap();
    spine.get(index).map(|b| b.to_vec().unwrap())
}

#[test]
fn objects_of_all_sizes_read_back() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = pool(kind);
        let mut session = pool.session().unwrap();
        let sizes = [
            0,
            1,
            7,
            8,
            100,
            500,
            2000,
            2040,
            2041,
            5000,
            32_000,
            70_000,
            3 << 20,
        ];
        for (i, &size) in sizes.iter().enumerate() {
            let bytes: Vec<u8> = (0..size).map(|b| (b * 7 + i) as u8).collect();
            session
                .transaction(|tx| {
                    let new = tx.alloc_bytes(&bytes)?;
                    assert_eq!(new.to_vec()?, bytes);
                    tx.root::<Spine>("spine")?.set(i, Some(new))
                })
                .unwrap();
            assert_eq!(content(&pool, i).unwrap(), bytes);
        }
        assert_eq!(pool.check().unwrap(), []);
    }
}

#[test]
fn an_abort_leaves_nothing() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let result: Result<(), Error> = session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        spine.set(0, Some(tx.alloc_bytes(b"gone")?))?;
        assert_eq!(spine.get(0).unwrap().to_vec()?, b"gone");
        Err(Error::ReadOnly)
    });
    assert!(result.is_err());
    assert_eq!(content(&pool, 0), None);
}

#[test]
fn a_panic_rolls_back_and_leaves_the_session_usable() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Result<(), Error> = session.transaction(|tx| {
            tx.lock_exclusive(77)?;
            tx.root::<Spine>("spine")?
                .set(0, Some(tx.alloc_bytes(b"gone")?))?;
            panic!("on purpose");
        });
    }));
    assert!(result.is_err());
    session
        .transaction(|tx| {
            tx.lock_exclusive(77)?;
            tx.root::<Spine>("spine")?
                .set(1, Some(tx.alloc_bytes(b"here")?))
        })
        .unwrap();
    assert_eq!(
        (content(&pool, 0), content(&pool, 1)),
        (None, Some(b"here".to_vec()))
    );
}

#[test]
fn a_nested_part_rolls_back_alone() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.root::<Spine>("spine")?;
            spine.set(0, Some(tx.alloc_bytes(b"outer")?))?;
            let failed: Result<(), Error> = tx.nested(|tx| {
                spine.set(0, Some(tx.alloc_bytes(b"inner")?))?;
                spine.set(1, Some(tx.alloc_bytes(b"inner")?))?;
                Err(Error::ReadOnly)
            });
            assert!(failed.is_err());
            tx.nested(|tx| spine.set(2, Some(tx.alloc_bytes(b"kept")?)))
        })
        .unwrap();
    let found: Vec<_> = (0..3).map(|i| content(&pool, i)).collect();
    assert_eq!(
        found,
        [Some(b"outer".to_vec()), None, Some(b"kept".to_vec())]
    );
}

#[test]
fn freed_slots_are_used_again() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = pool(kind);
        let mut session = pool.session().unwrap();
        for round in 0..50 {
            session
                .transaction(|tx| {
                    let spine = tx.root::<Spine>("spine")?;
                    for i in 0..200 {
                        if let Some(old) = spine.get(i) {
                            // SAFETY: the only reference is replaced below.
                            unsafe { tx.free(old)? };
                        }
                        spine.set(i, Some(tx.alloc_bytes(&[round; 3000])?))?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
        let statistics = Statistics::read(pool.medium()).unwrap();
        assert_eq!(statistics.objects, 201, "{kind:?}");
        assert!(statistics.footprint_4k_bytes < 6 << 20, "{statistics:?}");
        assert_eq!(pool.check().unwrap(), []);
    }
}

#[test]
fn slots_that_one_session_freed_serve_another() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = pool(kind);
        let mut sessions = [pool.session().unwrap(), pool.session().unwrap()];
        let footprint = || {
            let statistics = Statistics::read(pool.medium()).unwrap();
            statistics.footprint_4k_bytes
        };
        let replace = |session: &mut firn_heap::Session<Mapped>, new: bool, step: usize| {
            session
                .transaction(|tx| {
                    let spine = tx.root::<Spine>("spine")?;
                    for i in (0..1000).step_by(step) {
                        if let Some(old) = spine.get(i) {
                            // SAFETY: the only reference is replaced below.
                            unsafe { tx.free(old)? };
                        }
                        let object = new.then(|| tx.alloc_bytes(&[7; 1000])).transpose()?;
                        spine.set(i, object)?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
        };
        replace(&mut sessions[0], true, 1);
        let before = footprint();
        // The other session in turn: each finds nothing of its own and must use the slots left there.
        for round in 0..6 {
            replace(&mut sessions[round % 2], false, 2);
            replace(&mut sessions[1 - round % 2], true, 2);
            // In addition each session has an active run.
            let after = footprint();
            assert!(after < before + before / 20, "{kind:?}: {before}, {after}");
        }
        assert_eq!(pool.check().unwrap(), []);
    }
}

#[test]
fn freeing_twice_is_an_error() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let result: Result<(), Error> = session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        let bytes = tx.alloc_bytes(b"x")?;
        spine.set(0, None)?;
        // SAFETY: nothing refers to it.
        unsafe {
            tx.free(bytes)?;
            tx.free(bytes)
        }
    });
    assert!(matches!(result, Err(Error::NotAllocated { .. })));
}

#[test]
fn a_pool_reads_the_same_after_closing_and_after_a_crash() {
    for close in [true, false] {
        for kind in [PoolKind::Traced, PoolKind::Explicit] {
            let crash = Crash::new(16 << 20, CrashOptions::default());
            let options = PoolOptions {
                kind,
                ..PoolOptions::new("reopen")
            };
            let pool = Pool::create(crash.clone(), &options).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let spine = tx.alloc_refs::<Bytes>(300)?;
                    for i in 0..300 {
                        spine.set(i, Some(tx.alloc_bytes(&[i as u8; 100])?))?;
                    }
                    tx.set_root("spine", spine)
                })
                .unwrap();
            drop(session);
            if close {
                pool.close().unwrap()
            } else {
                pool.abandon()
            }
            let image = crash.random_image(7);
            let again = Crash::from_image(&image, CrashOptions::default());
            let pool = Pool::open(again, &options).unwrap();
            assert_eq!(pool.needs_trace(), !close);
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let spine = tx.root::<Spine>("spine")?;
                    for i in 0..300 {
                        let old = spine.get(i).unwrap();
                        assert_eq!(old.to_vec()?, [i as u8; 100]);
                        if i % 2 == 0 {
                            // SAFETY: the only reference is replaced.
                            unsafe { tx.free(old)? };
                            spine.set(i, Some(tx.alloc_bytes(&[1; 40])?))?;
                        }
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            drop(session);
            assert_eq!(pool.check().unwrap(), [], "close {close} {kind:?}");
            let traced = pool.trace().unwrap();
            assert_eq!(traced.objects, 301);
            assert_eq!(pool.check().unwrap(), [], "close {close} {kind:?}");
            assert!(!pool.needs_trace());
        }
    }
}

#[test]
fn leaks_of_a_crash_are_reclaimed_by_the_trace() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.root::<Spine>("spine")?;
            (0..500).try_for_each(|i| spine.set(i, Some(tx.alloc_bytes(&[0; 200])?)))
        })
        .unwrap();
    session
        .transaction(|tx| {
            let spine = tx.root::<Spine>("spine")?;
            (0..400).try_for_each(|i| spine.set(i, None))
        })
        .unwrap();
    drop(session);
    let traced = pool.trace().unwrap();
    assert_eq!((traced.objects, traced.reclaimed), (101, 400));
    assert_eq!(Statistics::read(pool.medium()).unwrap().objects, 101);
}

#[test]
fn a_large_transaction_overflows_its_lane() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    for round in 0..30u8 {
        session
            .transaction(|tx| {
                let spine = tx.root::<Spine>("spine")?;
                (0..1000).try_for_each(|i| {
                    let new = tx.alloc_bytes(&[round; 100])?;
                    if let Some(old) = spine.get(i) {
                        // SAFETY: the only reference is replaced.
                        unsafe { tx.free(old)? };
                    }
                    spine.set(i, Some(new))
                })
            })
            .unwrap();
    }
    assert_eq!(content(&pool, 999).unwrap(), [29; 100]);
    drop(session);
    assert_eq!(pool.check().unwrap(), []);
}

#[test]
fn handles_stay_across_operations_and_weak_ones_let_go() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let (strong, weak) = session
        .transaction(|tx| {
            let kept = tx.alloc_bytes(b"kept")?;
            let lost = tx.alloc_bytes(b"lost")?;
            Ok::<_, Error>((pool.handle(kept), pool.weak_handle(lost)))
        })
        .unwrap();
    pool.trace().unwrap();
    let guard = session.guard();
    assert_eq!(
        guard.view().deref(&strong).unwrap().to_vec().unwrap(),
        b"kept"
    );
    assert!(guard.view().deref(&weak).is_none());
}

#[test]
fn an_explicit_pool_lists_what_nothing_refers_to() {
    let pool = pool(PoolKind::Explicit);
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| (0..10).try_for_each(|i| tx.alloc_bytes(&[i; 10]).map(|_| ())))
        .unwrap();
    let found: Vec<Vec<u8>> = session
        .read(|view| {
            view.objects::<Bytes>()?
                .into_iter()
                .map(|b| b.to_vec())
                .collect::<Result<Vec<_>, Error>>()
        })
        .unwrap();
    assert_eq!(found.len(), 10);
    session
        .transaction(|tx| {
            let all = tx.objects::<Bytes>()?;
            // SAFETY: nothing refers to any of them.
            all.into_iter()
                .skip(3)
                .try_for_each(|object| unsafe { tx.free(object) })
        })
        .unwrap();
    assert_eq!(
        session.read(|view| view.objects::<Bytes>().unwrap().len()),
        3
    );
    let traced = self::pool(PoolKind::Traced);
    let refused = traced
        .session()
        .unwrap()
        .read(|view| view.objects::<Bytes>().map(|_| ()));
    assert!(matches!(refused, Err(Error::WrongKind { .. })));
}

/// An object with more room than its front, and a child of one of two types.
#[derive(Stored)]
#[repr(C)]
struct Roomy {
    number: u64,
    child: Ref<Roomy>,
    room: [u64; 16],
}

#[derive(Stored)]
#[repr(C)]
struct Small {
    number: u64,
}

fn roomy(number: u64) -> Roomy {
    Roomy {
        number,
        child: Ref::NULL,
        room: [number; 16],
    }
}

#[test]
fn a_front_is_stored_and_its_room_filled_later() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let front = (size_of::<u64>() * 3) as u64;
    session
        .transaction(|tx| {
            let object = tx.alloc_front(roomy(7), front)?;
            assert_eq!(object.load(Roomy::ROOM.at(0)), 7);
            object.store(Roomy::ROOM.at(15), 8);
            tx.set_root("roomy", object)
        })
        .unwrap();
    let guard = session.guard();
    let object: firn_heap::Obj<'_, Roomy, _> = guard.root("roomy").unwrap();
    assert_eq!(object.load(Roomy::NUMBER), 7);
    assert_eq!(object.load(Roomy::ROOM.at(0)), 7);
    assert_eq!(object.load(Roomy::ROOM.at(1)), 0, "fresh memory");
    assert_eq!(object.load(Roomy::ROOM.at(15)), 8);
    drop(guard);
    assert!(pool.check().unwrap().is_empty());
}

#[test]
#[should_panic(expected = "a reference that is not stored")]
fn a_front_has_every_reference() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let _ = session.transaction(|tx| tx.alloc_front(roomy(7), 8).map(drop));
}

#[test]
fn a_retyped_field_leads_to_an_object_whose_type_is_checked_and_that_lives() {
    let pool = pool(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let small = Roomy::CHILD.retyped::<Small>();
    session
        .transaction(|tx| {
            let object = tx.alloc(roomy(7))?;
            object.link(small, Some(tx.alloc(Small { number: 3 })?));
            tx.set_root("roomy", object)
        })
        .unwrap();
    pool.trace().unwrap();
    let guard = session.guard();
    let object: firn_heap::Obj<'_, Roomy, _> = guard.root("roomy").unwrap();
    let child = object.follow(small).unwrap().check_type().unwrap();
    assert_eq!(child.load(Small::NUMBER), 3);
    let wrong = object.follow(Roomy::CHILD).unwrap().check_type();
    assert!(matches!(wrong, Err(Error::WrongType { .. })));
}
