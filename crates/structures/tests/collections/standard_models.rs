//! Do the hash map, the vector, the queue and the array of strings equal the standard library's, through aborted
//! transactions, reopening, and collections that move them?

use std::collections::{self, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::support::model::{self, Phase, Subject};
use crate::support::{Random, pool, random_bytes};
use firn_heap::{Error, Tx, View};
use firn_mapped::Mapped;
use firn_structures::hash::Position;
use firn_structures::{HashMap, Queue, StringArray, Vector};

/// More keys than exist at a time, so that most inserts are of new ones.
const KEYS: u64 = 20_000;

struct OfHash;

fn key(number: u64) -> Vec<u8> {
    match number % 4 {
        0 => number.to_le_bytes().to_vec(),
        1 => format!("key {number}").into_bytes(),
        2 => vec![7; (number % 900) as usize],
        _ => number.to_be_bytes()[5..].to_vec(),
    }
}

impl Subject for OfHash {
    /// With a hasher that is the same in each run.
    type Model = collections::HashMap<Vec<u8>, Vec<u8>, BuildHasherDefault<DefaultHasher>>;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        HashMap::create(tx, "it").map(|_| ())
    }

    fn empty() -> Self::Model {
        Self::Model::default()
    }

    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Self::Model,
        phase: Phase,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut map = HashMap::open(tx, "it")?;
        let grows = phase.grows();
        let value = random_bytes(random);
        let any = key(random.below(KEYS));
        let some = model.keys().next().cloned();
        let known = some
            .filter(|_| random.below(8) < if grows { 2 } else { 7 })
            .unwrap_or(any);
        match random.below(if grows { 9 } else { 14 }) {
            0..=2 => {
                let there = model.insert(known.clone(), value.clone()).is_some();
                assert_eq!(map.insert(&known, &value)?, there);
            }
            3 => assert_eq!(map.replace(&known, &value)?, model.insert(known, value)),
            4 | 5 => {
                map.update(&known, |old| {
                    assert_eq!(old, model.get(&known).map(Vec::as_slice));
                    Some(value.clone())
                })?;
                model.insert(known, value);
            }
            6 => assert_eq!(map.get(&known)?, model.get(&known).cloned()),
            7 => {
                assert_eq!(map.contains(&known)?, model.contains_key(&known));
                assert_eq!(map.len()?, model.len() as u64);
            }
            8 if grows || random.below(400) > 0 => {
                map.update(&known, |_| None)?;
                model.remove(&known);
            }
            8 => {
                map.clear()?;
                model.clear();
            }
            9..=11 => assert_eq!(map.remove(&known)?, model.remove(&known).is_some()),
            _ => assert_eq!(map.take(&known)?, model.remove(&known)),
        }
        Ok(())
    }

    fn content<'g, V: View<'g>>(view: V) -> Self::Model {
        let map = HashMap::open(view, "it").unwrap();
        assert_eq!(map.check().unwrap(), Vec::<String>::new());
        let reader = map.read().unwrap();
        let entries = reader.iter();
        let content: Self::Model = entries.map(|e| e.unwrap().to_pair().unwrap()).collect();
        assert_eq!(reader.len(), content.len() as u64);
        for (key, value) in &content {
            assert_eq!(reader.get(key).unwrap().as_ref(), Some(value));
            let position = reader.position_of(key).unwrap().unwrap();
            let first = reader.iter_from(position).next().unwrap();
            assert_eq!(&first.unwrap().key().unwrap(), key);
        }
        assert_eq!(reader.position_of(b"no key of these").unwrap(), None);
        assert_eq!(piecewise(&map), content);
        content
    }
}

/// The entries of a map, a few at a time: between the pieces only a position is kept.
fn piecewise<'g, V: View<'g>>(map: &HashMap<'g, V>) -> <OfHash as Subject>::Model {
    const PIECE: usize = 5;
    let mut content = <OfHash as Subject>::empty();
    let mut position = Position::START;
    loop {
        let reader = map.read().unwrap();
        let mut entries = reader.iter_from(position);
        let before = content.len();
        for entry in entries.by_ref().take(PIECE) {
            let (key, value) = entry.unwrap().to_pair().unwrap();
            assert_eq!(content.insert(key, value), None, "an entry comes once");
        }
        if content.len() == before {
            return content;
        }
        position = Position::from_word(entries.position().word());
    }
}

struct OfVector;

impl Subject for OfVector {
    type Model = Vec<Vec<u8>>;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        Vector::create(tx, "it").map(|_| ())
    }

    fn empty() -> Self::Model {
        Self::Model::default()
    }

    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Self::Model,
        phase: Phase,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut vector = Vector::open(tx, "it")?;
        let grows = phase.grows();
        let bytes = random_bytes(random);
        let len = model.len();
        let any = random.below(len as u64 + 2) as usize;
        let index = any as u64;
        match random.below(16) {
            0..=4 => {
                for _ in 0..=if grows { random.below(4) } else { 0 } {
                    vector.push(&bytes)?;
                    model.push(bytes.clone());
                }
            }
            5 if any <= len => {
                vector.insert(index, &bytes)?;
                model.insert(any, bytes);
            }
            _ if any >= len => {
                assert_eq!(vector.get(index)?, None);
                assert!(vector.set(index, b"").is_err());
                assert!(vector.swap(index, 0).is_err());
                assert!(vector.swap_remove(index).is_err());
                assert!(vector.remove(index).is_err());
                assert!(vector.insert(len as u64 + 1, b"").is_err());
            }
            6 => assert_eq!(vector.remove(index)?, model.remove(any)),
            7 => {
                vector.set(index, &bytes)?;
                model[any] = bytes;
            }
            8 => {
                let old = std::mem::replace(&mut model[any], bytes.clone());
                assert_eq!(vector.replace(index, &bytes)?, old);
            }
            9 => {
                vector.swap(index, len as u64 - 1)?;
                model.swap(any, len - 1);
            }
            10 => assert_eq!(vector.get(index)?.as_ref(), model.get(any)),
            11 => assert_eq!(vector.swap_remove(index)?, model.swap_remove(any)),
            12 if !grows => {
                let kept = len - len.min(random.below(30) as usize);
                vector.truncate(kept as u64)?;
                model.truncate(kept);
            }
            13 if !grows && random.below(100) == 0 => {
                vector.clear()?;
                model.clear();
            }
            _ => assert_eq!(vector.pop()?, model.pop()),
        }
        Ok(())
    }

    fn content<'g, V: View<'g>>(view: V) -> Self::Model {
        let vector = Vector::open(view, "it").unwrap();
        assert_eq!(vector.check().unwrap(), Vec::<String>::new());
        let reader = vector.read().unwrap();
        let content: Self::Model = reader.iter().map(Result::unwrap).collect();
        let back: Vec<_> = reader.iter().rev().map(Result::unwrap).collect();
        assert!(back.iter().eq(content.iter().rev()));
        assert_eq!(reader.len(), content.len() as u64);
        content
    }
}

struct OfQueue;

impl Subject for OfQueue {
    type Model = VecDeque<Vec<u8>>;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        Queue::create(tx, "it").map(|_| ())
    }

    fn empty() -> Self::Model {
        Self::Model::default()
    }

    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Self::Model,
        phase: Phase,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut queue = Queue::open(tx, "it")?;
        let bytes = random_bytes(random);
        match (random.below(10), phase.grows()) {
            (0..=5, true) | (0..=2, false) => {
                queue.push_back(&bytes)?;
                model.push_back(bytes);
            }
            (9, _) => {
                assert_eq!(queue.front()?.as_ref(), model.front());
                assert_eq!(queue.len()?, model.len() as u64);
            }
            (8, false) if random.below(100) == 0 => {
                queue.clear()?;
                model.clear();
            }
            _ => assert_eq!(queue.pop_front()?, model.pop_front()),
        }
        Ok(())
    }

    fn content<'g, V: View<'g>>(view: V) -> Self::Model {
        let queue = Queue::open(view, "it").unwrap();
        assert_eq!(queue.check().unwrap(), Vec::<String>::new());
        let reader = queue.read().unwrap();
        assert_eq!(reader.is_empty(), reader.front().unwrap().is_none());
        reader.iter().map(Result::unwrap).collect()
    }
}

/// Strings of the array. An array too large for the collector to move would be too slow to compare.
const STRINGS: u64 = 600;

struct OfStrings;

impl Subject for OfStrings {
    type Model = Vec<Option<Vec<u8>>>;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        StringArray::create(tx, "it", STRINGS).map(|_| ())
    }

    fn empty() -> Self::Model {
        vec![None; STRINGS as usize]
    }

    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Self::Model,
        phase: Phase,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut array = StringArray::open(tx, "it")?;
        let string = random_bytes(random);
        let (a, b) = (random.below(STRINGS), random.below(STRINGS));
        let old = &mut model[a as usize];
        match random.below(if phase.grows() { 7 } else { 10 }) {
            0 | 1 => assert_eq!(array.set(a, &string)?, old.replace(string).is_some()),
            2 => assert_eq!(array.replace(a, &string)?, old.replace(string)),
            3 | 4 => {
                array.swap(a, b)?;
                model.swap(a as usize, b as usize);
            }
            5 => {
                assert_eq!(array.get(a)?, *old);
                assert_eq!(array.get(STRINGS)?, None);
                assert!(array.set(STRINGS, b"").is_err());
                assert!(array.swap(0, STRINGS).is_err());
                assert!(array.remove(STRINGS).is_err());
            }
            6 => assert_eq!(array.take(a)?, old.take()),
            _ => assert_eq!(array.remove(a)?, old.take().is_some()),
        }
        Ok(())
    }

    fn content<'g, V: View<'g>>(view: V) -> Self::Model {
        let array = StringArray::open(view, "it").unwrap();
        assert_eq!(array.check().unwrap(), Vec::<String>::new());
        let reader = array.read().unwrap();
        let content: Self::Model = reader.iter().map(Result::unwrap).collect();
        // Every third index, backwards from behind the end.
        let indices: Vec<u64> = (0..content.len() as u64 + 9).rev().step_by(3).collect();
        let mut found = Vec::new();
        let each = |place: usize, string: Option<&[u8]>| {
            assert_eq!(place, found.len());
            found.push(string.map(<[u8]>::to_vec));
        };
        reader.get_each(&indices, each).unwrap();
        let expected = indices.iter().map(|&at| content.get(at as usize));
        assert!(found.into_iter().eq(expected.map(|s| s.cloned().flatten())));
        let back: Vec<_> = reader.iter().rev().map(Result::unwrap).collect();
        assert!(back.iter().eq(content.iter().rev()));
        content
    }
}

#[test]
fn a_hash_map_equals_the_standard_one() {
    model::run::<OfHash>(31, 600, |_, _| {});
}

#[test]
fn a_vector_equals_the_standard_one() {
    model::run::<OfVector>(32, 600, |_, _| {});
}

#[test]
fn a_queue_equals_a_deque() {
    model::run::<OfQueue>(33, 600, |_, _| {});
}

#[test]
fn an_array_of_strings_equals_an_array() {
    model::run::<OfStrings>(34, 600, |_, _| {});
}

/// Past the length at which a table has three levels, and back.
#[test]
fn a_long_vector_gives_its_arrays_back() {
    const LEN: u64 = 70_000;
    const BATCH: u64 = 500;
    let pool = pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Vector::create(tx, "it").map(|_| ()))
        .unwrap();
    for start in (0..LEN).step_by(BATCH as usize) {
        session
            .transaction(|tx| {
                let mut vector = Vector::open(tx, "it")?;
                (start..start + BATCH).try_for_each(|n| vector.push(&n.to_le_bytes()))
            })
            .unwrap();
    }
    session.read(|view| {
        let vector = Vector::open(view, "it").unwrap();
        assert_eq!(vector.check().unwrap(), Vec::<String>::new());
        for n in (0..LEN).step_by(97) {
            assert_eq!(vector.get(n).unwrap(), Some(n.to_le_bytes().to_vec()));
        }
    });
    for batch in (0..LEN / BATCH).rev() {
        let end = batch * BATCH;
        session
            .transaction(|tx| {
                let mut vector = Vector::open(tx, "it")?;
                for n in (end..end + BATCH).rev() {
                    assert_eq!(vector.pop()?, Some(n.to_le_bytes().to_vec()));
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
    session.read(|view| {
        let vector = Vector::open(view, "it").unwrap();
        assert_eq!(vector.check().unwrap(), Vec::<String>::new());
    });
    let traced = pool.trace().unwrap();
    assert_eq!(traced.reclaimed, 0, "something leaked");
    assert_eq!(traced.objects, 2, "the root object and an array");
}
