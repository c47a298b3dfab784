//! Does a reader see only whole transactions while a writer works?

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Random, pool};
use firn_heap::{Error, Pool, View};
use firn_mapped::Mapped;
use firn_structures::Map;
use firn_structures::map::Scan;

const TRANSACTIONS: u64 = 3_000;
const KEYS: u64 = 2_000;

fn key(number: u64, is_partner: bool) -> Vec<u8> {
    [&[u8::from(is_partner)][..], &number.to_be_bytes()].concat()
}

/// Each transaction changes a key and its partner: both exist with one value, or neither.
fn write(pool: &Pool<Mapped>) {
    let mut session = pool.session().unwrap();
    let mut random = Random(5);
    for step in 0..TRANSACTIONS {
        let numbers: Vec<_> = (0..8).map(|_| random.below(KEYS)).collect();
        session
            .transaction(|tx| {
                let mut map = Map::open(tx, "map")?;
                for &number in &numbers {
                    let value = step.to_le_bytes();
                    for partner in [false, true] {
                        match number % 3 == step % 3 {
                            true => map.remove(&key(number, partner))?,
                            false => map.insert(&key(number, partner), &value)?,
                        };
                    }
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Under one lock: exactly the pairs.
fn assert_pairs<'g, V: View<'g>>(view: V) {
    let map = Map::open(view, "map").unwrap();
    let reader = map.read().unwrap();
    let entries: Vec<_> = reader
        .iter()
        .map(|e| e.unwrap().to_pair().unwrap())
        .collect();
    assert_eq!(entries.len() as u64, reader.len());
    let (first, second) = entries.split_at(entries.len() / 2);
    for (a, b) in first.iter().zip(second) {
        assert_eq!((&a.0[1..], &a.1), (&b.0[1..], &b.1));
    }
}

#[test]
fn a_scan_beside_a_writer() {
    let pool = pool();
    pool.session()
        .unwrap()
        .transaction(|tx| Map::create(tx, "map").map(|_| ()))
        .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write(&pool);
            done.store(true, Ordering::Release);
        });
        let mut session = pool.session().unwrap();
        let mut passes = 0;
        while !done.load(Ordering::Acquire) || passes < 2 {
            passes += 1;
            session.read(|view| assert_pairs(view));
            // In steps: in order, and nothing that never existed.
            let mut scan = Scan::of_root("map").prefix(&[1]);
            let mut last = Vec::new();
            while let Some((key, value)) = scan.next(&mut session).unwrap() {
                assert!(key > &last[..] && key[0] == 1 && value.len() == 8);
                last = key.to_vec();
            }
        }
    });
    let mut session = pool.session().unwrap();
    let findings = session.read(|view| Map::open(view, "map").unwrap().check().unwrap());
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn a_scan_sees_everything_once() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let mut map = Map::create(tx, "map")?;
            for number in 0..5_000u64 {
                map.insert(&number.to_be_bytes(), &vec![7; (number % 200) as usize])?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    let mut seen = 0u64;
    let mut scan = Scan::of_root("map");
    while let Some((key, value)) = scan.next(&mut session).unwrap() {
        assert_eq!(
            (key, value.len()),
            (&seen.to_be_bytes()[..], (seen % 200) as usize)
        );
        seen += 1;
    }
    assert_eq!(seen, 5_000);
    let handle = pool.handle(Map::open(session.guard().view(), "map").unwrap().object());
    let bounds = 100u64.to_be_bytes()..=1_000u64.to_be_bytes();
    let mut scan = Scan::of_handle(handle).range(bounds);
    let mut seen = 0;
    while scan.next(&mut session).unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, 901);
}
