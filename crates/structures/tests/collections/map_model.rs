//! Does a map equal a plain one, through aborts, nested parts that fail, and reopening?

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::support::{TempFile, same_bounds};
use firn_heap::{Error, Pool, PoolOptions, Session, Tx, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::Iter;
use firn_structures::Map;
use firn_structures::map::Range;
use proptest::prelude::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Commit,
    Abort,
    Panic,
    NestedAbort,
    Reopen,
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

fn transactions() -> impl Strategy<Value = Vec<(Vec<Step>, End)>> {
    let end = prop_oneof![
        6 => Just(End::Commit),
        1 => Just(End::Abort),
        1 => Just(End::Panic),
        2 => Just(End::NestedAbort),
        1 => Just(End::Reopen),
    ];
    prop::collection::vec((prop::collection::vec(step(), 1..60), end), 1..20)
}

fn apply(model: &mut Model, step: &Step) -> Option<Vec<u8>> {
    match step {
        Step::Insert(key, value) => model.insert(key.clone(), value.clone()),
        Step::Remove(key) => model.remove(key),
        Step::Clear => {
            model.clear();
            None
        }
    }
}

fn all<'t>(
    map: &mut Map<'t, Tx<'t, Mapped>>,
    steps: &[Step],
    model: &mut Model,
) -> Result<(), Error> {
    for step in steps {
        let expected = apply(model, step);
        let found = match step {
            Step::Insert(key, value) if value.len() % 2 == 0 => map.replace(key, value)?,
            Step::Insert(key, value) => {
                assert_eq!(map.insert(key, value)?, expected.is_some());
                continue;
            }
            Step::Remove(key) if key.len() % 2 == 0 => map.take(key)?,
            Step::Remove(key) => {
                assert_eq!(map.remove(key)?, expected.is_some());
                continue;
            }
            Step::Clear => {
                map.clear()?;
                continue;
            }
        };
        assert_eq!(found, expected);
    }
    Ok(())
}

fn run(session: &mut Session<Mapped>, model: &mut Model, steps: &[Step], end: End) {
    let mut changed = model.clone();
    let body = |tx: Tx<'_, Mapped>| {
        let mut map = Map::open(tx, "map")?;
        changed.clone_from(model);
        if end == End::NestedAbort {
            all(&mut map, &steps[..steps.len() / 2], &mut changed)?;
            let kept = changed.clone();
            let failed = tx.nested(|_| {
                all(&mut map, steps, &mut changed)?;
                Err::<(), _>(Error::ReadOnly)
            });
            assert!(matches!(failed, Err(Error::ReadOnly)));
            changed = kept;
        } else {
            all(&mut map, steps, &mut changed)?;
        }
        // A transaction reads its own changes.
        same(&map, &changed);
        match end {
            End::Abort => Err(Error::ReadOnly),
            End::Panic => panic!("as planned"),
            _ => Ok(()),
        }
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.transaction(body).map_err(|e| e.to_string())
    }));
    match end {
        End::Abort => assert_eq!(outcome.unwrap(), Err(Error::ReadOnly.to_string())),
        End::Panic => {
            let payload = outcome.unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&"as planned"));
        }
        _ => {
            outcome.unwrap().unwrap();
            *model = changed;
        }
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
    let map = Map::open(guard.view(), "map").unwrap();
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
        let expected: Vec<_> = model.keys().filter(|k| same_bounds(bounds, k)).collect();
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
        transactions in transactions(),
        bounds in prop::collection::vec((bound(), bound()), 1..10),
    ) {
        std::panic::set_hook(Box::new(|info| {
            if info.payload().downcast_ref() != Some(&"as planned") {
                eprintln!("{info}");
            }
        }));
        let file = TempFile::new();
        let options = PoolOptions::new("test");
        let medium = Mapped::create(file.path(), 16 << 20, &MappedOptions::default()).unwrap();
        let mut pool = Pool::create(medium, &options).unwrap();
        let mut session = pool.session().unwrap();
        session.transaction(|tx| Map::create(tx, "map").map(|_| ())).unwrap();
        let mut model = Model::new();
        for (steps, end) in &transactions {
            run(&mut session, &mut model, steps, *end);
            if *end == End::Reopen {
                drop(session);
                pool.close().unwrap();
                let medium = Mapped::open(file.path(), &MappedOptions::default()).unwrap();
                pool = Pool::open(medium, &options).unwrap();
                session = pool.session().unwrap();
            }
            let guard = session.guard();
            same(&Map::open(guard.view(), "map").unwrap(), &model);
        }
        same_ranges(&mut session, &model, &bounds);
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
