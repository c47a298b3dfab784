//! Does a map equal a plain one?

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use crate::support::steps::{self, Stepped};
use firn_heap::{Error, Session, Tx, View};
use firn_mapped::Mapped;
use firn_structures::map::Range;
use firn_structures::{Iter, Map};
use proptest::prelude::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Clear,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0u8..3, 0..12),
        (0u8..4, 0u16..300).prop_map(|(a, b)| format!("shared/start/{a}/{b:05}").into_bytes()),
        any::<u16>().prop_map(|n| n.to_be_bytes().to_vec()),
        any::<u8>().prop_map(|n| (u64::from(n) << 28).to_be_bytes().to_vec()),
        (0usize..3).prop_map(|n| vec![0xff; n * 2000]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..50),
        1 => (any::<u8>(), 400usize..6000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    prop_oneof![
        60 => (key(), value).prop_map(|(key, value)| Step::Insert(key, value)),
        40 => key().prop_map(Step::Remove),
        1 => Just(Step::Clear),
    ]
}

struct OfMap;

impl Stepped for OfMap {
    type Model = Model;
    type Step = Step;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        Map::create(tx, "it").map(drop)
    }

    fn step(tx: Tx<'_, Mapped>, model: &mut Model, step: &Step) -> Result<(), Error> {
        let mut map = Map::open(tx, "it")?;
        match step {
            Step::Insert(key, value) => {
                let expected = model.insert(key.clone(), value.clone());
                match value.len() % 2 {
                    0 => assert_eq!(map.replace(key, value)?, expected),
                    _ => assert_eq!(map.insert(key, value)?, expected.is_some()),
                }
            }
            Step::Remove(key) => {
                let expected = model.remove(key);
                match key.len() % 2 {
                    0 => assert_eq!(map.take(key)?, expected),
                    _ => assert_eq!(map.remove(key)?, expected.is_some()),
                }
            }
            Step::Clear => {
                map.clear()?;
                model.clear();
            }
        }
        Ok(())
    }

    fn assert_same<'g, V: View<'g>>(view: V, model: &Model) {
        same(&Map::open(view, "it").unwrap(), model);
    }
}

fn same<'g, V: View<'g>>(map: &Map<'g, V>, model: &Model) {
    assert_eq!(map.check().unwrap(), Vec::<String>::new());
    assert_eq!(map.len().unwrap(), model.len() as u64);
    let reader = map.read().unwrap();
    let found: Vec<_> = reader
        .iter()
        .map(|entry| entry.unwrap().to_pair().unwrap())
        .collect();
    let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert_eq!(found, expected);
    for (key, value) in model {
        assert_eq!(reader.get(key).unwrap().as_ref(), Some(value));
    }
    assert!(!reader.contains(b"never inserted").unwrap());
}

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn same_ranges(session: &mut Session<Mapped>, model: &Model, bounds: &[Bounds]) {
    let guard = session.guard();
    let map = Map::open(guard.view(), "it").unwrap();
    assert_eq!(
        map.first().unwrap().as_ref().map(|p| (&p.0, &p.1)),
        model.first_key_value()
    );
    assert_eq!(
        map.last().unwrap().as_ref().map(|p| (&p.0, &p.1)),
        model.last_key_value()
    );
    let reader = map.read().unwrap();
    for bounds in bounds {
        let expected: Vec<_> = model.keys().filter(|&k| bounds.contains(k)).collect();
        let range = || reader.range(bounds.clone());
        assert_eq!(keys_of(range()).iter().collect::<Vec<_>>(), expected);
        let mut back: Vec<_> = range().rev().map(|e| e.unwrap().key().unwrap()).collect();
        back.reverse();
        assert_eq!(back.iter().collect::<Vec<_>>(), expected);
        // From both ends in turn: everything once.
        let (mut both, mut range, mut turn) = (Vec::new(), range(), false);
        while let Some(entry) = if turn {
            range.next_back()
        } else {
            range.next()
        } {
            both.push(entry.unwrap().key().unwrap());
            turn = !turn;
        }
        both.sort();
        assert_eq!(both.iter().collect::<Vec<_>>(), expected);
        if let Bound::Included(prefix) | Bound::Excluded(prefix) = &bounds.0 {
            let expected: Vec<_> = model.keys().filter(|k| k.starts_with(prefix)).collect();
            assert_eq!(
                keys_of(reader.prefix(prefix)).iter().collect::<Vec<_>>(),
                expected
            );
        }
    }
}

fn keys_of<'g, V: View<'g>>(range: Iter<'_, Range<'g, V>>) -> Vec<Vec<u8>> {
    range.map(|e| e.unwrap().key().unwrap()).collect()
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_map_equals_a_plain_map(
        transactions in steps::transactions(step(), 60),
        bounds in prop::collection::vec((bound(), bound()), 1..10),
    ) {
        steps::run::<OfMap>(&transactions, |session, model| same_ranges(session, model, &bounds));
    }
}

#[test]
fn too_large_keys_and_taken_names_are_errors() {
    let pool = crate::support::pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Map::create(tx, "map").map(|_| ()))
        .unwrap();
    let long = vec![1; firn_structures::map::MAX_KEY_BYTES];
    session
        .transaction(|tx| {
            let mut map = Map::open(tx, "map")?;
            map.insert(&long, b"")?;
            let longer = vec![1; firn_structures::map::MAX_KEY_BYTES + 1];
            assert!(matches!(
                map.insert(&longer, b""),
                Err(Error::ObjectTooLarge { .. })
            ));
            assert_eq!(map.get(&longer)?, None);
            assert!(!map.remove(&longer)?);
            assert!(matches!(
                Map::create(tx, "map"),
                Err(Error::WrongKind { .. })
            ));
            assert!(matches!(Map::open(tx, "none"), Err(Error::NoRoot { .. })));
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[test]
fn large_values_are_kept_whole() {
    let pool = crate::support::pool();
    let mut session = pool.session().unwrap();
    let value: Vec<u8> = (0..40u32 << 20).map(|n| (n >> 8) as u8).collect();
    session
        .transaction(|tx| Map::create(tx, "map")?.insert(b"large", &value).map(|_| ()))
        .unwrap();
    let guard = session.guard();
    let map = Map::open(guard.view(), "map").unwrap();
    assert!(map.get(b"large").unwrap().unwrap() == value);
}
