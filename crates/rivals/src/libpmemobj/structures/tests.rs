//! Does each structure equal a plain map? Where libpmemobj is not installed, they say so and pass.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::phases::{VALUE_BYTES, key, value};

const NUMBERS: u32 = 600;
const OPERATIONS: usize = 6000;

/// Runs `test` on empty nodes, if the library is there.
fn with_nodes(test: impl FnOnce(Nodes<'_>)) {
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
    test(nodes(&pool));
}

/// Random insertions and deletions, first more of the former, then more of the latter, down to
/// nothing; `keys` is asked now and then, and says them in any order.
fn equals_a_map<S: Structure>(mut structure: S, keys: impl Fn(&S) -> Vec<u64>) {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut map = BTreeMap::new();
    let mut copy = [0; VALUE_BYTES];
    for turn in 0..OPERATIONS {
        let number = rng.u32(..NUMBERS);
        let wants = rng.usize(..OPERATIONS) > turn;
        let key = key(number);
        match (map.contains_key(&key), wants) {
            (false, true) => {
                map.insert(key, number);
                structure.insert(number, key, &value(key)).expect("room");
            }
            (true, false) => {
                map.remove(&key);
                structure.delete(number, key).expect("it is there");
            }
            _ => {}
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
    with_nodes(|nodes| equals_a_map(List::new(nodes, NUMBERS).expect("room"), List::keys));
}

#[test]
fn the_avl_tree_equals_a_map() {
    with_nodes(|nodes| {
        equals_a_map(Avl::new(nodes).expect("room"), |tree| {
            let keys = tree.keys();
            assert!(keys.is_sorted());
            keys
        });
    });
}

#[test]
fn the_red_black_tree_equals_a_map() {
    with_nodes(|nodes| {
        equals_a_map(RedBlack::new(nodes).expect("room"), |tree| {
            let keys = tree.keys();
            assert!(keys.is_sorted());
            keys
        });
    });
}

#[test]
fn the_b_plus_tree_equals_a_map() {
    with_nodes(|nodes| {
        equals_a_map(BPlus::new(nodes).expect("room"), |tree| {
            let keys = tree.keys();
            assert!(keys.is_sorted());
            keys
        });
    });
}

#[test]
fn strings_that_change_places_equal_an_array() {
    with_nodes(|nodes| {
        let mut strings = StringSwap::new(nodes, NUMBERS).expect("room");
        let swap = strings.swap().expect("its own operation");
        let mut array = vec![None; NUMBERS as usize];
        let mut rng = fastrand::Rng::with_seed(7);
        let mut copy = [0; VALUE_BYTES];
        for turn in 0..OPERATIONS {
            let (number, other) = (rng.u32(..NUMBERS), rng.u32(..NUMBERS));
            let at = number as usize;
            if rng.bool() {
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
