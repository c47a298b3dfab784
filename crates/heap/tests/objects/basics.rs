//! Does each part work?

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
        // The other one in turn: each finds nothing of its own and has to use what is left there.
        for round in 0..6 {
            replace(&mut sessions[round % 2], false, 2);
            replace(&mut sessions[1 - round % 2], true, 2);
            // Beside this each session has a run in its hands.
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

/// An object with room behind its front, and a child of one of two types.
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

/// Fills a pool with objects of a hundred thousand bytes. How many fitted.
fn fill(pool: &Pool<Mapped>, what: Fill) -> u64 {
    let mut session = pool.session().unwrap();
    for number in 0..10_000 {
        let outcome = match what {
            Fill::Typed => session.transaction(|tx| {
                let spine = tx.root::<Spine>("spine")?;
                let new = tx.alloc_bytes(&[7; 100_000])?;
                let free = (0..1000).find(|&i| spine.get(i).is_none()).unwrap();
                spine.set(free, Some(new))
            }),
            Fill::Raw => session.raw_transaction(|tx| tx.alloc(100_000).map(|_| ())),
        };
        match outcome {
            Ok(()) => {}
            Err(Error::PoolFull { .. }) => return number,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it has no limit");
}

#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Typed,
    Raw,
}

/// A limited pool with a spine, in a file.
fn limited(path: &std::path::Path, kind: PoolKind, max_bytes: Option<u64>) -> Pool<Mapped> {
    let options = PoolOptions {
        kind,
        max_bytes,
        ..PoolOptions::new("limited")
    };
    let medium = Mapped::create(path, 0, &MappedOptions::default()).unwrap();
    let pool = Pool::create(medium, &options).unwrap();
    let make = |tx: firn_heap::Tx<'_, Mapped>| {
        let spine = tx.alloc_refs::<Bytes>(1000)?;
        tx.set_root("spine", spine)
    };
    pool.session().unwrap().transaction(make).unwrap();
    pool
}

#[test]
fn a_pool_keeps_its_limit_when_it_is_opened_again() {
    let ends: [fn(Pool<Mapped>); 2] = [|pool| pool.close().unwrap(), Pool::abandon];
    for (kind, what) in [
        (PoolKind::Traced, Fill::Typed),
        (PoolKind::Explicit, Fill::Typed),
        (PoolKind::Explicit, Fill::Raw),
    ] {
        for end in ends {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pool");
            let on = MappedOptions::default();
            let limit = 24 << 20;
            let open = |max_bytes| {
                let options = PoolOptions {
                    kind,
                    log: match what {
                        Fill::Typed => firn_heap::LogKind::Redo,
                        Fill::Raw => firn_heap::LogKind::Undo,
                    },
                    max_bytes,
                    ..PoolOptions::new("limited")
                };
                Pool::open(Mapped::open(&path, &on).unwrap(), &options).unwrap()
            };
            let length = || std::fs::metadata(&path).unwrap().len();
            end(limited(&path, kind, Some(limit)));
            let pool = open(None);
            assert_eq!(pool.limit_bytes(), Some(limit));
            let fitted = fill(&pool, what);
            assert!((80..170).contains(&fitted), "{fitted} objects in 24 MiB");
            assert!(length() <= limit);
            end(pool);
            // Full is full, whoever opens it.
            let pool = open(None);
            assert_eq!((fill(&pool, what), length() <= limit), (0, true));
            assert_eq!(
                Statistics::read(pool.medium()).unwrap().limit_bytes,
                Some(limit)
            );
            end(pool);
            // A limit that is given at opening is the pool's from then on.
            end(open(Some(2 * limit)));
            let pool = open(None);
            assert_eq!(pool.limit_bytes(), Some(2 * limit));
            assert!(fill(&pool, what) >= fitted && length() <= 2 * limit);
            end(pool);
            // And it is taken away by one that no pool reaches.
            end(open(Some(u64::MAX)));
            let pool = open(None);
            assert_eq!(pool.limit_bytes(), None);
            end(pool);
        }
    }
}

#[test]
fn a_copy_has_its_pools_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = Some(24 << 20);
    let pool = limited(&folder.path().join("pool"), PoolKind::Traced, limit);
    let copy = pool
        .copy_into(mapped(), firn_heap::CopyIdentity::New, &mut |_| {})
        .unwrap();
    assert_eq!(copy.limit_bytes(), limit);
}

/// What every root refers to, as a guard and a transaction see it, by name and by handle.
fn assert_roots(
    session: &mut Session<Crash>,
    handles: &[(String, RootHandle<Bytes>)],
    model: &BTreeMap<String, u64>,
) {
    fn number<'g, V: View<'g>>(root: Obj<'g, Bytes, V>) -> u64 {
        u64::from_le_bytes(root.to_vec().unwrap()[..8].try_into().unwrap())
    }
    fn all<'g, V: View<'g>>(
        view: V,
        handles: &[(String, RootHandle<Bytes>)],
        model: &BTreeMap<String, u64>,
    ) {
        for (name, handle) in handles {
            let expected = model.get(name).copied();
            assert_eq!(
                view.find_root(name).unwrap().map(number),
                expected,
                "{name}"
            );
            assert_eq!(
                view.find_root(handle).unwrap().map(number),
                expected,
                "{name}"
            );
        }
        let mut names = view.root_names().unwrap();
        names.sort();
        assert!(names.iter().eq(model.keys()));
    }
    session.read(|view| all(view, handles, model));
    let seen = session.transaction(|tx| {
        all(tx, handles, model);
        Ok::<_, Error>(())
    });
    seen.unwrap();
}

/// Roots come, are replaced and go, in transactions that commit, roll a part back or fail; the index says of each name
/// and each handle what a map says, to the transaction itself and to everybody after it, and after a recovery.
#[test]
fn roots_equal_a_map_whoever_looks_them_up() {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    let mut pool = Pool::create(crash, &PoolOptions::new("basics")).unwrap();
    let handle = |name: String| (name.clone(), RootHandle::new(&name).unwrap());
    let handles: Vec<_> = (0..300).map(|n| handle(format!("name {n}"))).collect();
    let mut model = BTreeMap::new();
    let mut random = 7u64;
    let mut below = |limit: usize| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) as usize % limit
    };
    for round in 0..60u64 {
        let mut session = pool.session().unwrap();
        let (fails, part_fails) = (round % 5 == 4, round % 3 == 2);
        let mut after = model.clone();
        let changed = session.transaction(|tx| {
            after.clone_from(&model);
            for step in 0..40 {
                let (name, handle) = &handles[below(handles.len())];
                let keeps = !part_fails || step % 2 == 0;
                let value = round * 100 + step;
                let part = tx.nested(|tx| {
                    if below(3) == 0 {
                        let there = after.contains_key(name);
                        assert_eq!(tx.remove_root(name).is_ok(), there);
                        if keeps {
                            after.remove(name);
                        }
                    } else if after.len() < 256 || after.contains_key(name) {
                        tx.set_root(handle, tx.alloc_bytes(&value.to_le_bytes())?)?;
                        assert!(tx.find_root::<Bytes>(name)?.is_some());
                        if keeps {
                            after.insert(name.clone(), value);
                        }
                    }
                    if keeps { Ok(()) } else { Err(Error::ReadOnly) }
                });
                assert_eq!(part.is_ok(), keeps);
                let found = tx
                    .find_root::<Bytes>(name)?
                    .map(|b| b.to_vec())
                    .transpose()?;
                let expected = after.get(name).map(|n: &u64| n.to_le_bytes().to_vec());
                assert_eq!(found, expected, "{name}");
            }
            if fails { Err(Error::ReadOnly) } else { Ok(()) }
        });
        assert_eq!(changed.is_ok(), !fails);
        if !fails {
            model = after;
        }
        assert_roots(&mut session, &handles, &model);
        if round % 20 == 19 {
            drop(session);
            let crash = pool.medium().clone();
            pool.abandon();
            let again = Crash::from_image(&crash.random_image(round), CrashOptions::default());
            pool = Pool::open(again, &PoolOptions::new("basics")).unwrap();
            assert_roots(&mut pool.session().unwrap(), &handles, &model);
        }
    }
    assert!(model.len() > 100, "{}", model.len());
}

#[test]
fn a_handle_is_good_for_any_pool_and_checks_what_it_finds() {
    let root = RootHandle::<Bytes>::new("root").unwrap();
    for places in [0, 3] {
        let pool = pool(PoolKind::Traced);
        let mut session = pool.session().unwrap();
        assert!(
            session
                .read(|view| view.find_root(&root).map(|found| found.is_none()))
                .unwrap()
        );
        let missing = session.read(|view| view.root(&root).map(drop));
        assert!(matches!(missing, Err(Error::NoRoot { name }) if name == "root"));
        session
            .transaction(|tx| {
                for place in 0..places {
                    tx.set_root(&format!("other {place}"), tx.alloc_bytes(b"")?)?;
                }
                tx.set_root(&root, tx.alloc_bytes(&[places; 5])?)
            })
            .unwrap();
        let found = session.read(|view| view.root(&root).and_then(Obj::to_vec));
        assert_eq!(found.unwrap(), [places; 5]);
        let other = session.transaction(|tx| tx.set_root("root", tx.alloc_refs::<Bytes>(1)?));
        other.unwrap();
        let wrong = session.read(|view| view.root(&root).map(drop));
        assert!(matches!(wrong, Err(Error::WrongType { .. })), "{wrong:?}");
    }
    for name in ["", "a\0b", &"x".repeat(41)] {
        assert!(matches!(
            RootHandle::<Bytes>::new(name),
            Err(Error::RootName { .. })
        ));
    }
}

/// Two threads look a root up and change what it leads to: they wait for each other, and nothing starts over.
#[test]
fn transactions_that_only_look_roots_up_never_start_over() {
    const EACH: u64 = 5_000;
    let pool = pool(PoolKind::Traced);
    let count = |step: u64| {
        let mut session = pool.session().unwrap();
        let spine = RootHandle::<Spine>::new("spine").unwrap();
        for n in 0..EACH {
            session
                .transaction(|tx| {
                    let spine = match n % 2 {
                        0 => tx.root(&spine)?,
                        _ => tx.root::<Spine>("spine")?,
                    };
                    tx.lock_exclusive(77)?;
                    let old = spine.get(0).map_or(Ok(vec![0; 8]), Obj::to_vec)?;
                    let new = u64::from_le_bytes(old[..8].try_into().unwrap()) + step;
                    spine.set(0, Some(tx.alloc_bytes(&new.to_le_bytes())?))
                })
                .unwrap();
        }
        session.publish_statistics();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| count(1));
        scope.spawn(|| count(1000));
    });
    let total = content(&pool, 0).unwrap();
    assert_eq!(total, (EACH * 1001).to_le_bytes());
    assert_eq!(Statistics::read(pool.medium()).unwrap().aborts, 0);
}

/// Two threads read a structure and then change it, in one transaction: each learns once that it should have asked to
/// write at first.
#[test]
fn transactions_that_read_before_they_write_start_over_once_a_session() {
    const EACH: u64 = 5_000;
    let pool = pool(PoolKind::Traced);
    let count = || {
        let mut session = pool.session().unwrap();
        for _ in 0..EACH {
            session
                .transaction(|tx| {
                    let spine = tx.root::<Spine>("spine")?;
                    let _read = tx.lock_shared(77)?;
                    let old = spine.get(0).map_or(Ok(vec![0; 8]), Obj::to_vec)?;
                    let new = u64::from_le_bytes(old[..8].try_into().unwrap()) + 1;
                    tx.lock_exclusive(77)?;
                    spine.set(0, Some(tx.alloc_bytes(&new.to_le_bytes())?))
                })
                .unwrap();
        }
        session.publish_statistics();
    };
    std::thread::scope(|scope| {
        scope.spawn(count);
        scope.spawn(count);
    });
    assert_eq!(content(&pool, 0).unwrap(), (2 * EACH).to_le_bytes());
    let aborts = Statistics::read(pool.medium()).unwrap().aborts;
    assert!(aborts <= 2, "{aborts} aborts of two sessions");
}
