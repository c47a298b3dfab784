//! Does a map stay sound through long runs of inserts and removals, and give its space back?

mod support;

use std::collections::BTreeMap;

use firn_heap::{Error, Session};
use firn_mapped::Mapped;
use firn_structures::Map;
use support::{Random, pool};

/// Kinds of keys: how many bytes they have in common matters.
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
    for entry in reader.iter().unwrap() {
        let (key, value) = entry.unwrap().to_pair().unwrap();
        assert_eq!(expected.next(), Some((&key, &value)));
    }
    assert_eq!(expected.next(), None);
    let mut expected = model.iter().rev();
    for entry in reader.iter().unwrap().rev() {
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
    }
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
