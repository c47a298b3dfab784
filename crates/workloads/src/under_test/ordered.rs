//! Vectors and queues: an element stores its key before its value.

use firn_heap::{Error, Reading, Tx, View};
use firn_media::Medium;
use firn_structures as structures;

use super::{Content, Found, Key, Order, UnderTest};

const KEY_BYTES: usize = size_of::<Key>();

fn element(key: Key, value: &[u8]) -> Vec<u8> {
    [&key.to_le_bytes(), value].concat()
}

/// Key and value of an element; an element too short for a key has one that is never inserted.
fn split(element: &[u8]) -> (Key, Vec<u8>) {
    match element.split_first_chunk::<KEY_BYTES>() {
        Some((key, value)) => (Key::from_le_bytes(*key), value.to_vec()),
        None => (Key::MAX, element.to_vec()),
    }
}

/// The value of the first element of the key.
fn find(
    elements: impl Iterator<Item = Result<Vec<u8>, Error>>,
    key: Key,
) -> Result<Option<Vec<u8>>, Error> {
    for element in elements {
        let (of, value) = split(&element?);
        if of == key {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn all(elements: impl Iterator<Item = Result<Vec<u8>, Error>>) -> Result<Content, Error> {
    elements.map(|element| Ok(split(&element?))).collect()
}

/// [`structures::Vector`].
pub(super) struct Vector;

/// The index at which a vector holds the key.
fn position<'g, V: View<'g>>(
    vector: &structures::Vector<'g, V>,
    key: Key,
) -> Result<Option<u64>, Error> {
    for (index, element) in (0..).zip(vector.read()?.iter()) {
        if split(&element?).0 == key {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

impl<M: Medium> UnderTest<M> for Vector {
    fn order(&self) -> Order {
        Order::ByArrival
    }

    fn create(&self, tx: Tx<'_, M>, root: &str, _keys: Key) -> Result<(), Error> {
        structures::Vector::create(tx, root).map(drop)
    }

    fn insert(&self, tx: Tx<'_, M>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut vector = structures::Vector::open(tx, root)?;
        match position(&vector, key)? {
            Some(index) => vector.set(index, &element(key, value)),
            None => vector.push(&element(key, value)),
        }
    }

    fn remove(&self, tx: Tx<'_, M>, root: &str, key: Key) -> Result<(), Error> {
        let mut vector = structures::Vector::open(tx, root)?;
        match position(&vector, key)? {
            Some(index) => vector.remove(index).map(drop),
            None => Ok(()),
        }
    }

    fn get(&self, view: Reading<'_, M>, root: &str, key: Key) -> Result<Option<Vec<u8>>, Error> {
        let vector = structures::Vector::open(view, root)?;
        let reader = vector.read()?;
        find(reader.iter(), key)
    }

    fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error> {
        let vector = structures::Vector::open(view, root)?;
        let wrong = vector.check()?;
        let content = all(vector.read()?.iter())?;
        Ok(Found { wrong, content })
    }
}

/// [`structures::Queue`].
pub(super) struct Queue;

impl<M: Medium> UnderTest<M> for Queue {
    fn order(&self) -> Order {
        Order::FirstIn
    }

    fn create(&self, tx: Tx<'_, M>, root: &str, _keys: Key) -> Result<(), Error> {
        structures::Queue::create(tx, root).map(drop)
    }

    fn insert(&self, tx: Tx<'_, M>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut queue = structures::Queue::open(tx, root)?;
        queue.push_back(&element(key, value))
    }

    fn remove(&self, tx: Tx<'_, M>, root: &str, _key: Key) -> Result<(), Error> {
        let mut queue = structures::Queue::open(tx, root)?;
        queue.pop_front().map(drop)
    }

    fn get(&self, view: Reading<'_, M>, root: &str, key: Key) -> Result<Option<Vec<u8>>, Error> {
        let queue = structures::Queue::open(view, root)?;
        let reader = queue.read()?;
        find(reader.iter(), key)
    }

    fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error> {
        let queue = structures::Queue::open(view, root)?;
        let wrong = queue.check()?;
        let content = all(queue.read()?.iter())?;
        Ok(Found { wrong, content })
    }
}
