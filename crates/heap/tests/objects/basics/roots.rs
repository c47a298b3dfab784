//! Roots by name and by handle.

use super::*;

/// Asserts each root's object, as a guard and a transaction see it, by name and by handle.
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

/// Roots come, are replaced and go, in transactions that commit, roll a part back or fail. For each name and each
/// handle the index agrees with a map: for the transaction itself, for everyone after it, and after a recovery.
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

/// Two threads look a root up and change its object: they wait for each other, and no transaction is run again.
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

/// Two threads read a structure and then change it, in one transaction: each learns once that it should have asked for
/// the write lock at first.
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
