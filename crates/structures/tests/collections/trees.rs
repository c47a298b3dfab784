//! Does each tree equal a plain map, through aborts, nested parts that fail, reopening and
//! collections between and within its operations? What does a change cost?

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::support::{Random, TempFile};
use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::{CollectOptions, Collection, PageSize};
use firn_heap::{Error, Pool, PoolKind, PoolOptions, Session, Tx, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::avl::Avl;
use firn_structures::inline_tree::{Inline, MAX_VALUE_BYTES};
use firn_structures::red_black::RedBlack;
use firn_structures::tree::{Kind, Tree};

type Model = BTreeMap<u64, Vec<u8>>;

/// Transactions of each part of the model test.
const ROUNDS: usize = 300;

const NONE: Vec<String> = Vec::new();

/// Keys close together, far apart and at both ends.
fn key(random: &mut Random, space: u64) -> u64 {
    let number = random.below(space);
    match number % 8 {
        0..4 => number,
        4..7 => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        _ => u64::MAX - number / 8,
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    let len = match random.below(4) {
        0 => MAX_VALUE_BYTES as u64,
        _ => random.below(MAX_VALUE_BYTES as u64 + 1),
    };
    vec![random.next() as u8; len as usize]
}

/// Changes the tree and the model; `removals` of ten steps remove.
fn change<'t, K: Kind>(
    tree: &mut Tree<'t, Tx<'t, Mapped>, K>,
    model: &mut Model,
    random: &mut Random,
    (space, removals): (u64, u64),
) -> Result<(), Error> {
    let key = key(random, space);
    if random.below(10) < removals {
        match random.below(2) {
            0 => assert_eq!(tree.remove(key)?, model.remove(&key).is_some()),
            _ => assert_eq!(tree.take(key)?, model.remove(&key)),
        }
        return Ok(());
    }
    let new = value(random);
    match random.below(3) {
        0 => assert_eq!(tree.insert(key, &new)?, model.insert(key, new).is_some()),
        1 => assert_eq!(tree.replace(key, &new)?, model.insert(key, new)),
        _ => {
            let there = tree.update(key, |old| {
                assert_eq!(old, model.get(&key).map(Vec::as_slice));
                // An entry that has the new length goes.
                (old.map(<[u8]>::len) != Some(new.len())).then(|| new.clone())
            })?;
            let old = model.remove(&key);
            assert_eq!(there, old.is_some());
            if old.is_none_or(|old| old.len() != new.len()) {
                model.insert(key, new);
            }
        }
    }
    Ok(())
}

fn assert_same<'g, V: View<'g>, K: Kind>(tree: &Tree<'g, V, K>, model: &Model) {
    assert_eq!(tree.check().unwrap(), NONE);
    let reader = tree.read().unwrap();
    assert_eq!(reader.len(), model.len() as u64);
    let owned = |(key, value): (&u64, &Vec<u8>)| (*key, value.clone());
    assert_eq!(reader.first().unwrap(), model.first_key_value().map(owned));
    assert_eq!(reader.last().unwrap(), model.last_key_value().map(owned));
    let up = reader.iter().map(|entry| entry.unwrap().to_pair().unwrap());
    assert!(up.eq(model.iter().map(owned)));
    let down = reader.iter().rev();
    assert!(
        down.map(|entry| entry.unwrap().key())
            .eq(model.keys().rev().copied())
    );
}

fn assert_same_parts<'g, V: View<'g>, K: Kind>(
    tree: &Tree<'g, V, K>,
    model: &Model,
    random: &mut Random,
    space: u64,
) {
    let reader = tree.read().unwrap();
    // Some keys more than once, some not there, in no order.
    let keys: Vec<u64> = (0..random.below(60)).map(|_| key(random, space)).collect();
    let mut found = Vec::new();
    reader
        .get_each(&keys, |place, value| {
            found.push((place, value.map(<[u8]>::to_vec)));
        })
        .unwrap();
    let expected = keys.iter().map(|key| model.get(key).cloned());
    assert!(found.into_iter().eq(expected.enumerate()));
    for _ in 0..20 {
        let (a, b) = (key(random, space), key(random, space));
        assert_eq!(reader.get(a).unwrap().as_ref(), model.get(&a));
        assert_eq!(reader.contains(b).unwrap(), model.contains_key(&b));
        let bound = |key, which| match which {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        };
        let bounds = (
            bound(a.min(b), random.below(3)),
            bound(a.max(b), random.below(3)),
        );
        let (mut found, mut expected) = (reader.range(bounds), {
            let inside = |key: &u64| {
                let above = match bounds.0 {
                    Bound::Included(low) => *key >= low,
                    Bound::Excluded(low) => *key > low,
                    Bound::Unbounded => true,
                };
                above
                    && match bounds.1 {
                        Bound::Included(high) => *key <= high,
                        Bound::Excluded(high) => *key < high,
                        Bound::Unbounded => true,
                    }
            };
            model
                .keys()
                .filter(|k| inside(k))
                .copied()
                .collect::<Vec<_>>()
        });
        // From both ends, in turns that are not regular.
        while !expected.is_empty() {
            let (found, expected) = match random.below(3) {
                0 => (found.next_back(), expected.pop()),
                _ => (found.next(), Some(expected.remove(0))),
            };
            assert_eq!(found.map(|entry| entry.unwrap().key()), expected);
        }
        assert!(found.next().is_none() && found.next_back().is_none());
    }
    assert_eq!(
        reader
            .range((Bound::Excluded(u64::MAX), Bound::Unbounded))
            .count(),
        0
    );
}

/// One transaction of a few changes, which may be aborted, or have a part that is.
fn transaction<K: Kind>(
    session: &mut Session<Mapped>,
    model: &mut Model,
    random: &mut Random,
    mix: (u64, u64),
) {
    let end = random.below(8);
    let mut changed = model.clone();
    let steps = 1 + random.below(12);
    let outcome = session.transaction(|tx| {
        let mut tree = Tree::<_, K>::open(tx, "tree")?;
        if end == 1 {
            let failed = tx.nested(|_| {
                let mut lost = changed.clone();
                for _ in 0..steps {
                    change(&mut tree, &mut lost, random, mix)?;
                }
                Err::<(), _>(Error::ReadOnly)
            });
            assert!(matches!(failed, Err(Error::ReadOnly)));
        }
        for _ in 0..steps {
            change(&mut tree, &mut changed, random, mix)?;
        }
        if random.below(200) == 0 {
            tree.clear()?;
            changed.clear();
        }
        if random.below(20) == 0 {
            assert_same(&tree, &changed);
        }
        if end == 0 {
            Err(Error::ReadOnly)
        } else {
            Ok(())
        }
    });
    match end {
        0 => assert!(matches!(outcome, Err(Error::ReadOnly))),
        _ => {
            outcome.unwrap();
            *model = changed;
        }
    }
}

fn collect_small() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

/// A collection, step by step, with transactions in between.
fn collect_slowly<K: Kind>(
    pool: &Pool<Mapped>,
    session: &mut Session<Mapped>,
    model: &mut Model,
    random: &mut Random,
    mix: (u64, u64),
) -> u64 {
    let mut collection: Collection<'_, Mapped> = pool.collection(&collect_small()).unwrap();
    if !collection.begin().unwrap() {
        return 0;
    }
    for _ in 0..10 {
        transaction::<K>(session, model, random, mix);
        let guard = session.guard();
        let tree = Tree::<_, K>::open(guard.view(), "tree").unwrap();
        assert_same_parts(&tree, model, random, mix.0);
        drop(guard);
        if collection.compact(1 + random.below(40)).unwrap() {
            break;
        }
    }
    if random.below(4) > 0 {
        collection.finish().unwrap();
    }
    // Otherwise the next collection, or the close, ends it.
    1
}

fn equals_a_plain_map<K: Kind>(kind: PoolKind, seed: u64) {
    let file = TempFile::new();
    let options = PoolOptions {
        kind,
        ..PoolOptions::new("test")
    };
    let medium = Mapped::create(file.path(), 16 << 20, &MappedOptions::default()).unwrap();
    let mut pool = Pool::create(medium, &options).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let tree = Tree::<_, K>::create(tx, "tree")?;
            assert!(tree.is_empty()? && tree.first()?.is_none());
            assert!(Tree::<_, K>::create(tx, "tree").is_err());
            assert!(Tree::<_, K>::open_or_create(tx, "tree")?.object() == tree.object());
            Ok::<_, Error>(())
        })
        .unwrap();
    let mut model = Model::new();
    let mut random = Random(seed);
    let mut moved = 0;
    for round in 0..4 * ROUNDS {
        // Growing, shrinking, growing in a small space, emptying.
        let mix = [(1 << 13, 1), (1 << 13, 9), (1 << 8, 3), (1 << 8, 9)][round / ROUNDS];
        transaction::<K>(&mut session, &mut model, &mut random, mix);
        match random.below(40) {
            0 => drop(pool.collect(&collect_small()).unwrap()),
            1 | 2 => {
                moved += collect_slowly::<K>(&pool, &mut session, &mut model, &mut random, mix);
            }
            3 => {
                drop(session);
                pool.close().unwrap();
                let medium = Mapped::open(file.path(), &MappedOptions::default()).unwrap();
                pool = Pool::open(medium, &options).unwrap();
                session = pool.session().unwrap();
            }
            4 => {
                let findings = pool.check().unwrap();
                assert!(findings.is_empty(), "{findings:?}");
            }
            _ => {}
        }
        let guard = session.guard();
        let tree = Tree::<_, K>::open(guard.view(), "tree").unwrap();
        if round % 10 == 0 {
            assert_same(&tree, &model);
            assert_same_parts(&tree, &model, &mut random, mix.0);
        }
    }
    assert!(moved > 0, "some collection moved something");
    // Nothing leaks: what is allocated is what is reachable.
    pool.collect(&collect_small()).unwrap();
    assert_eq!(pool.trace().unwrap().reclaimed, 0);
    session
        .transaction(|tx| Tree::<_, K>::open(tx, "tree")?.clear())
        .unwrap();
    assert_eq!(pool.trace().unwrap().objects, 1);
}

/// In ascending, descending and scrambled order, to the last one.
fn fills_and_empties<K: Kind>() {
    let pool = crate::support::pool();
    let mut session = pool.session().unwrap();
    let orders: [fn(u64) -> u64; 3] = [|i| i, |i| !i, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
    session
        .transaction(|tx| Tree::<_, K>::create(tx, "tree").map(|_| ()))
        .unwrap();
    for filling in orders {
        for emptying in orders {
            session
                .transaction(|tx| {
                    let mut tree = Tree::<_, K>::open(tx, "tree")?;
                    for i in 0..300 {
                        assert!(!tree.insert(filling(i), &i.to_le_bytes())?);
                    }
                    assert_eq!(tree.check()?, NONE);
                    let mut keys: Vec<_> = (0..300).map(filling).collect();
                    keys.sort_by_key(|&key| emptying(key));
                    for (gone, key) in keys.into_iter().enumerate() {
                        assert!(tree.remove(key)?);
                        if gone % 20 == 0 {
                            assert_eq!(tree.check()?, NONE);
                        }
                    }
                    assert!(tree.is_empty()? && tree.first()?.is_none());
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
    }
    assert_eq!(pool.trace().unwrap().objects, 1);
}

/// What fails for want of space changes nothing, and a full tree can be emptied.
fn an_insert_without_room_changes_nothing<K: Kind>(kind: PoolKind) {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let options = PoolOptions {
        kind,
        max_bytes: Some(18 << 20),
        ..PoolOptions::new("test")
    };
    let pool = Pool::create(medium, &options).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Tree::<_, K>::create(tx, "tree").map(|_| ()))
        .unwrap();
    let (mut refused, mut number) = (0, 0u64);
    while refused < 300 {
        number += 1;
        let full = session
            .transaction(|tx| {
                let mut tree = Tree::<_, K>::open(tx, "tree")?;
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                // The error is swallowed.
                Ok::<_, Error>(tree.insert(key, &vec![1; number as usize % 128]).is_err())
            })
            .unwrap_or(true);
        refused += u64::from(full);
    }
    assert_eq!(pool.trace().unwrap().reclaimed, 0);
    session.read(|view| {
        let tree = Tree::<_, K>::open(view, "tree").unwrap();
        assert_eq!(tree.check().unwrap(), NONE);
    });
    // One by one: the log of a larger transaction may need room.
    for number in 1..=number {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        session
            .transaction(|tx| Tree::<_, K>::open(tx, "tree")?.remove(key))
            .unwrap();
    }
    assert_eq!(pool.trace().unwrap().objects, 1);
}

/// Fences of a change in steady state.
fn a_change_costs_one_fence<K: Kind>() {
    let options = CrashOptions {
        domain: Domain::Adr,
        ..CrashOptions::default()
    };
    let crash = Crash::new(16 << 20, options);
    let pool = Pool::create(crash.clone(), &PoolOptions::new("fences")).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Tree::<_, K>::create(tx, "tree").map(|_| ()))
        .unwrap();
    let mut count = |numbers: core::ops::Range<u64>, inserts: bool| {
        let before = crash.counts().fences;
        for number in numbers.clone() {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            session
                .transaction(|tx| {
                    let mut tree = Tree::<_, K>::open(tx, "tree")?;
                    match inserts {
                        true => tree.insert(key, &[7; MAX_VALUE_BYTES]),
                        false => tree.remove(key),
                    }
                })
                .unwrap();
        }
        (crash.counts().fences - before, numbers.end - numbers.start)
    };
    count(0..200, true);
    let (fences, inserts) = count(200..400, true);
    assert_eq!(fences, inserts);
    let (fences, removals) = count(100..300, false);
    assert_eq!(fences, removals);
}

fn refuses_long_values<K: Kind>() {
    let pool = crate::support::pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let mut tree = Tree::<_, K>::new(tx)?;
            tx.set_root("it", tree.object())?;
            let long = vec![1; 129];
            for refused in [
                tree.insert(1, &long),
                tree.replace(1, &long).map(|_| true),
                tree.update(1, |_| Some(long.clone())),
            ] {
                match K::VALUE_LIMIT {
                    128 => assert!(matches!(
                        refused,
                        Err(Error::ObjectTooLarge {
                            bytes: 129,
                            limit: 128
                        })
                    )),
                    _ => assert!(refused.is_ok()),
                }
            }
            assert_eq!(tree.len()?, u64::from(K::VALUE_LIMIT > 128));
            Ok::<_, Error>(())
        })
        .unwrap();
}

/// The tests of one tree.
macro_rules! tests_of {
    ($module:ident, $kind:ty) => {
        mod $module {
            use super::*;

            #[test]
            fn equals_a_plain_map_in_a_traced_pool() {
                equals_a_plain_map::<$kind>(PoolKind::Traced, 11);
            }

            #[test]
            fn equals_a_plain_map_in_an_explicit_pool() {
                equals_a_plain_map::<$kind>(PoolKind::Explicit, 12);
            }

            #[test]
            fn fills_and_empties_in_any_order() {
                fills_and_empties::<$kind>();
            }

            #[test]
            fn an_insert_without_room_changes_nothing() {
                super::an_insert_without_room_changes_nothing::<$kind>(PoolKind::Traced);
                super::an_insert_without_room_changes_nothing::<$kind>(PoolKind::Explicit);
            }

            #[test]
            fn a_change_costs_one_fence() {
                super::a_change_costs_one_fence::<$kind>();
            }

            #[test]
            fn refuses_long_values() {
                super::refuses_long_values::<$kind>();
            }
        }
    };
}

tests_of!(avl, Avl);
tests_of!(red_black, RedBlack);
tests_of!(inline_tree, Inline);
