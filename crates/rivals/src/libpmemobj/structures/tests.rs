//! Does each structure equal a plain map, even after aborted changes? Without libpmemobj the tests say so and pass.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::phases::{VALUE_BYTES, key, value};

const NUMBERS: u32 = 600;
const OPERATIONS: usize = 6000;

/// Runs `test` on empty nodes, if the library is there.
fn with_nodes(test: impl FnOnce(&Pool<'_>, Nodes<'_>)) {
    let library = match Library::open("libpmemobj.so.1") {
        Ok(library) => library,
        Err(absent) => return println!("skipped: {absent}"),
    };
    let shared = Path::new("/dev/shm");
    let elsewhere = std::env::temp_dir();
    let dir = if shared.is_dir() { shared } else { &elsewhere };
    let own = format!("firn-rivals-{:?}", std::thread::current().id());
    let dir = dir.join(format!("{own}-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a fresh directory");
    let pool = Pool::create_in(&library, &dir, POOL_BYTES).expect("a pool");
    std::fs::remove_dir(&dir).expect("no pool has a name");
    test(&pool, nodes(&pool));
}

/// Random insertions and deletions: first mostly insertions, then mostly deletions, down to nothing. `keys` is asked
/// now and then, and returns them in any order. Each change is aborted once before it is made: a range changed without
/// a snapshot would show.
fn equals_a_map<S: Structure>(pool: &Pool<'_>, mut structure: S, keys: impl Fn(&S) -> Vec<u64>) {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut map = BTreeMap::new();
    let mut copy = [0; VALUE_BYTES];
    for turn in 0..OPERATIONS {
        let number = rng.u32(..NUMBERS);
        let wants = rng.usize(..OPERATIONS) > turn;
        let key = key(number);
        let there = map.contains_key(&key);
        if there != wants {
            let change = |structure: &mut S| {
                if wants {
                    structure.insert(number, key, &value(key))
                } else {
                    structure.delete(number, key)
                }
            };
            pool.abort_next.store(true, Relaxed);
            change(&mut structure).expect_err("it was aborted");
            pool.forgive();
            let mut found = keys(&structure);
            found.sort_unstable();
            assert!(found.iter().eq(map.keys()), "turn {turn}, aborted");
            for (key, number) in &map {
                let found = structure.get(*number, *key, &mut copy);
                assert!(found.expect("an answer") && copy == value(*key), "{turn}");
            }
            change(&mut structure).expect("room");
            if wants {
                map.insert(key, number);
            } else {
                map.remove(&key);
            }
        }
        let found = structure.get(number, key, &mut copy).expect("an answer");
        assert_eq!(found, map.contains_key(&key), "turn {turn}");
        assert!(!found || copy == value(key), "turn {turn}");
        if turn % 64 == 0 {
            let mut found = keys(&structure);
            found.sort_unstable();
            assert!(found.iter().eq(map.keys()), "turn {turn}");
        }
    }
    for (key, number) in map {
        structure.delete(number, key).expect("it is there");
    }
    assert!(keys(&structure).is_empty());
}

#[test]
fn the_list_equals_a_map() {
    with_nodes(|pool, nodes| {
        equals_a_map(pool, List::new(nodes, NUMBERS).expect("room"), List::keys)
    });
}

#[test]
fn the_avl_tree_equals_a_map() {
    with_nodes(|pool, nodes| {
        equals_a_map(pool, Avl::new(nodes).expect("room"), |tree| {
            let keys = tree.keys();
            assert!(keys.is_sorted());
            keys
        });
    });
}

#[test]
fn the_red_black_tree_equals_a_map() {
    with_nodes(|pool, nodes| {
        equals_a_map(pool, RedBlack::new(nodes).expect("room"), |tree| {
            let keys = tree.keys();
            assert!(keys.is_sorted());
            keys
        });
    });
}

#[test]
fn the_b_plus_tree_equals_a_map() {
    with_nodes(|pool, nodes| {
        equals_a_map(pool, BPlus::new(nodes).expect("room"), |tree| {
            let keys = tree.keys();
            assert!(keys.is_sorted());
            keys
        });
    });
}

#[test]
fn strings_that_change_places_equal_an_array() {
    with_nodes(|pool, nodes| {
        let mut strings = StringSwap::new(nodes, NUMBERS).expect("room");
        let swap = strings.swap().expect("its own operation");
        let mut array = vec![None; NUMBERS as usize];
        let mut rng = fastrand::Rng::with_seed(7);
        let mut copy = [0; VALUE_BYTES];
        for turn in 0..OPERATIONS {
            let (number, other) = (rng.u32(..NUMBERS), rng.u32(..NUMBERS));
            let at = number as usize;
            if rng.bool() {
                pool.abort_next.store(true, Relaxed);
                swap(&mut strings, number, other).expect_err("it was aborted");
                pool.forgive();
                array.swap(at, other as usize);
                swap(&mut strings, number, other).expect("both are places");
            } else if array[at].take().is_some() {
                strings.delete(number, key(number)).expect("it is there");
            } else {
                let holds = turn as u64;
                array[at] = Some(holds);
                strings.insert(number, 0, &value(holds)).expect("room");
            }
            let found = strings.get(number, 0, &mut copy).expect("an answer");
            let found = found.then_some(copy);
            assert_eq!(found, array[at].map(value), "turn {turn}");
        }
    });
}
