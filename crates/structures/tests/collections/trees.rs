//! Does each tree equal a plain map, through aborts, nested parts that fail, reopening and collections between and
//! within its operations? How much does a change cost?

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::support::Random;
use crate::support::model::{self, Phase, Subject};
use firn_crash::{Crash, CrashOptions};
use firn_heap::{Error, Pool, PoolOptions, Tx, View};
use firn_mapped::Mapped;
use firn_media::Domain;
use firn_structures::Reader;
use firn_structures::avl::Avl;
use firn_structures::inline_tree::{Inline, MAX_VALUE_BYTES};
use firn_structures::red_black::RedBlack;
use firn_structures::tree::{Kind, Tree};

type Model = BTreeMap<u64, Vec<u8>>;

/// Transactions of the model test.
const ROUNDS: u64 = 1_200;

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

/// A tree of a kind.
struct OfTree<K>(PhantomData<K>);

/// The bound of the keys, and how many of ten steps remove one: the tree grows, shrinks, grows within a small range, is
/// emptied.
fn mix(phase: Phase) -> (u64, u64) {
    [(1 << 13, 1), (1 << 13, 9), (1 << 8, 3), (1 << 8, 9)][phase.0 as usize]
}

impl<K: Kind> Subject for OfTree<K> {
    type Model = Model;

    const MOST_STEPS: u64 = 12;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        let tree = Tree::<_, K>::create(tx, "it")?;
        assert!(tree.is_empty()? && tree.first()?.is_none());
        assert!(Tree::<_, K>::create(tx, "it").is_err());
        assert!(Tree::<_, K>::open_or_create(tx, "it")?.object() == tree.object());
        Ok(())
    }

    fn empty() -> Model {
        Model::new()
    }

    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Model,
        phase: Phase,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut tree = Tree::<_, K>::open(tx, "it")?;
        let (space, removals) = mix(phase);
        let key = key(random, space);
        if random.below(1_300) == 0 {
            tree.clear()?;
            model.clear();
        }
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
                    // An entry that already has the new length is removed.
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

    fn content<'g, V: View<'g>>(view: V) -> Model {
        let tree = Tree::<_, K>::open(view, "it").unwrap();
        assert_eq!(tree.check().unwrap(), NONE);
        let reader = tree.read().unwrap();
        let up: Vec<_> = reader
            .iter()
            .map(|e| e.unwrap().to_pair().unwrap())
            .collect();
        assert!(up.is_sorted() && reader.len() == up.len() as u64);
        assert_eq!(reader.first().unwrap().as_ref(), up.first());
        assert_eq!(reader.last().unwrap().as_ref(), up.last());
        let down = reader.iter().rev().map(|entry| entry.unwrap().key());
        assert!(down.eq(up.iter().rev().map(|entry| entry.0)));
        let content: Model = up.iter().cloned().collect();
        assert_eq!(content.len(), up.len(), "a key comes once");
        content
    }

    fn assert_same_parts<'g, V: View<'g>>(
        view: V,
        model: &Model,
        phase: Phase,
        random: &mut Random,
    ) {
        let tree = Tree::<_, K>::open(view, "it").unwrap();
        let (reader, (space, _)) = (tree.read().unwrap(), mix(phase));
        // Some keys more than once, some absent, in no order.
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
            same_range(&reader, model, random, (a.min(b), a.max(b)));
        }
        let none = (Bound::Excluded(u64::MAX), Bound::Unbounded);
        assert_eq!(reader.range(none).count(), 0);
    }
}

/// Compares a range with bounds of some kind at these keys, iterating from both ends in irregular turns.
fn same_range<'g, V: View<'g>, K: Kind>(
    reader: &Reader<'_, 'g, V, K>,
    model: &Model,
    random: &mut Random,
    (low, high): (u64, u64),
) {
    let bound = |key, which| match which {
        0 => Bound::Included(key),
        1 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    };
    let bounds = (bound(low, random.below(3)), bound(high, random.below(3)));
    let inside = model.keys().copied().filter(|key| bounds.contains(key));
    let (mut found, mut expected) = (reader.range(bounds), inside.collect::<VecDeque<_>>());
    while !expected.is_empty() {
        let (found, expected) = match random.below(3) {
            0 => (found.next_back(), expected.pop_back()),
            _ => (found.next(), expected.pop_front()),
        };
        assert_eq!(found.map(|entry| entry.unwrap().key()), expected);
    }
    assert!(found.next().is_none() && found.next_back().is_none());
}

/// Runs the test in a pool of each kind, and clears the tree at the end.
fn equals_a_plain_map<K: Kind>() {
    model::run::<OfTree<K>>(11, ROUNDS, |pool, session| {
        session
            .transaction(|tx| Tree::<_, K>::open(tx, "it")?.clear())
            .unwrap();
        assert_eq!(pool.trace().unwrap().objects, 1);
    });
}

/// In ascending, descending and scrambled order, down to the last entry.
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

/// The fences of a change in steady state.
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
            fn equals_a_plain_map() {
                super::equals_a_plain_map::<$kind>();
            }

            #[test]
            fn fills_and_empties_in_any_order() {
                fills_and_empties::<$kind>();
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
