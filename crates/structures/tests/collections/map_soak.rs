//! Does a map stay sound through long runs of inserts and removals, and give its space back?

use std::collections::BTreeMap;

use crate::support::{Random, pool};
use firn_heap::{Error, Pool, PoolKind, PoolOptions, Session, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::{List, Map};

/// Kinds of keys, which differ in the length of their common prefix.
fn key(kind: u64, number: u64) -> Vec<u8> {
    match kind {
        0 => number.to_be_bytes().to_vec(),
        1 => number.to_le_bytes().to_vec(),
        2 => format!("/usr/share/doc/package-{}/file-{number}", number % 97).into_bytes(),
        3 => vec![b'x'; (number % 600) as usize],
        4 => {
            let mut key = vec![0; (number % 23) as usize];
            if let Some(last) = key.last_mut() {
                *last = (number >> 8) as u8 % 3;
            }
            key
        }
        _ => format!("{number:040}").into_bytes(),
    }
}

fn check_equal(session: &mut Session<Mapped>, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let guard = session.guard();
    let map = Map::open(guard.view(), "map").unwrap();
    assert_eq!(map.check().unwrap(), Vec::<String>::new());
    assert_eq!(map.len().unwrap(), model.len() as u64);
    let reader = map.read().unwrap();
    let mut expected = model.iter();
    for entry in reader.iter() {
        let (key, value) = entry.unwrap().to_pair().unwrap();
        assert_eq!(expected.next(), Some((&key, &value)));
    }
    assert_eq!(expected.next(), None);
    let mut expected = model.iter().rev();
    for entry in reader.iter().rev() {
        let (key, value) = entry.unwrap().to_pair().unwrap();
        assert_eq!(expected.next(), Some((&key, &value)));
    }
}

fn soak(kind: u64, steps: u64, space: u64) {
    let pool = pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Map::create(tx, "map").map(|_| ()))
        .unwrap();
    let mut model = BTreeMap::new();
    let mut random = Random(77 + kind);
    for phase in 0..4 {
        // Growing, shrinking, growing, emptying.
        let removals = [2, 8, 4, 10][phase];
        for _ in 0..steps / 4 / 50 {
            let batch: Vec<_> = (0..50)
                .map(|_| {
                    let key = key(kind, random.below(space));
                    let value = vec![random.next() as u8; random.below(40) as usize];
                    (key, value, random.below(10) < removals)
                })
                .collect();
            session
                .transaction(|tx| {
                    let mut map = Map::open(tx, "map")?;
                    for (key, value, remove) in &batch {
                        if *remove {
                            map.remove(key)?;
                        } else {
                            map.insert(key, value)?;
                        }
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            for (key, value, remove) in batch {
                if remove {
                    model.remove(&key);
                } else {
                    model.insert(key, value);
                }
            }
        }
        check_equal(&mut session, &model);
        assert_no_leak(&pool, 0);
    }
    session
        .transaction(|tx| Map::open(tx, "map")?.clear())
        .unwrap();
    check_equal(&mut session, &BTreeMap::new());
    assert_no_leak(&pool, 1);
}

/// Asserts that the heap's checker finds nothing, and every object is reachable; `objects` remain, if not 0.
fn assert_no_leak(pool: &Pool<Mapped>, objects: u64) {
    let findings = pool.check().unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    let traced = pool.trace().unwrap();
    assert_eq!(traced.reclaimed, 0);
    assert!(objects == 0 || traced.objects == objects);
}

#[test]
fn numbers() {
    soak(0, 100_000, 20_000);
    soak(1, 100_000, 20_000);
}

#[test]
fn paths() {
    soak(2, 100_000, 10_000);
}

#[test]
fn keys_that_differ_in_length_alone() {
    soak(3, 30_000, 600);
    soak(4, 30_000, 1 << 16);
}

#[test]
fn long_common_starts() {
    soak(5, 60_000, 5_000);
}

#[test]
fn emptied_maps_and_lists_keep_their_root_alone() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
        let options = PoolOptions {
            kind,
            ..PoolOptions::new("test")
        };
        let pool = Pool::create(medium, &options).unwrap();
        let mut session = pool.session().unwrap();
        let mut random = Random(9);
        let mut keys: Vec<_> = (0..3_000).map(|n| key(n % 6, n)).collect();
        session
            .transaction(|tx| {
                let mut list = List::create(tx, "list")?;
                let mut map = Map::create(tx, "map")?;
                for (number, key) in keys.iter().enumerate() {
                    map.insert(key, &vec![1; number % 50])?;
                    list.push_back(number as u64, key)?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(pool.trace().unwrap().reclaimed, 0);
        while !keys.is_empty() {
            let key = keys.swap_remove(random.below(keys.len() as u64) as usize);
            session
                .transaction(|tx| {
                    Map::open(tx, "map")?.remove(&key)?;
                    List::open(tx, "list")?.pop_front()
                })
                .unwrap();
        }
        let findings = pool.check().unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        drop(session);
        pool.session().unwrap().publish_statistics();
        assert_eq!(Statistics::read(pool.medium()).unwrap().objects, 2);
        let guard_session = &mut pool.session().unwrap();
        guard_session.read(|view| {
            assert!(Map::open(view, "map").unwrap().is_empty().unwrap());
            assert!(List::open(view, "list").unwrap().is_empty().unwrap());
        });
    }
}

#[test]
fn leaves_stay_full_enough_when_most_keys_go() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    let all = 20_000u64;
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let shape = |session: &mut Session<Mapped>| {
        session.read(|view| Map::open(view, "map").unwrap().shape().unwrap())
    };
    session
        .transaction(|tx| {
            let mut map = Map::create(tx, "map")?;
            (0..all).try_for_each(|n| map.insert(&key(n), b"").map(|_| ()))
        })
        .unwrap();
    let full = shape(&mut session);
    assert!(full.entries * 3 > full.leaves * 14 * 2 - full.leaves);
    session
        .transaction(|tx| {
            let mut map = Map::open(tx, "map")?;
            (0..all * 4 / 5).try_for_each(|n| map.remove(&key(n)).map(|_| ()))
        })
        .unwrap();
    let sparse = shape(&mut session);
    assert_eq!(sparse.entries, all / 5);
    assert!(sparse.entries * 2 > sparse.leaves * 14, "{sparse:?}");
}

#[test]
fn ascending_keys_leave_full_leaves() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    for (name, descending) in [("up", false), ("down", true)] {
        session
            .transaction(|tx| {
                let mut map = Map::create(tx, name)?;
                for n in 0..10_000u64 {
                    let n = if descending { u64::MAX - n } else { n };
                    map.insert(format!("key number {n:020}").as_bytes(), b"")?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        session.read(|view| {
            let shape = Map::open(view, name).unwrap().shape().unwrap();
            assert!(shape.entries * 20 > shape.leaves * 14 * 19, "{shape:?}");
        });
    }
}
