//! Maps, whose keys are byte strings.

use firn_crash::Crash;
use firn_heap::{Error, Reading, Tx};
use firn_structures as structures;
use firn_structures::HashMap;

use super::{Content, Found, Key, Subject};

/// One key of so many is short: an entry says the length of its key, and of those of eight bytes, it
/// does not.
const SHORT_ONE_IN: Key = 8;

/// A key as bytes, which are in the order of the keys.
fn name(key: Key) -> Vec<u8> {
    let mut bytes = key.to_be_bytes().to_vec();
    if key % SHORT_ONE_IN != 1 {
        bytes.resize(size_of::<u64>(), 0);
    }
    bytes
}

/// The key of these bytes; one that is no name is a key that nobody inserts.
fn key_of(bytes: &[u8]) -> Key {
    let key = bytes.first_chunk().map(|first| Key::from_be_bytes(*first));
    key.filter(|&key| name(key) == bytes).unwrap_or(Key::MAX)
}

/// [`structures::Map`].
pub(super) struct Map;

impl Subject for Map {
    fn name(&self) -> &'static str {
        "map"
    }

    fn create(&self, tx: Tx<'_, Crash>, root: &str, _keys: Key) -> Result<(), Error> {
        structures::Map::create(tx, root).map(drop)
    }

    fn insert(&self, tx: Tx<'_, Crash>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut map = structures::Map::open(tx, root)?;
        map.insert(&name(key), value).map(drop)
    }

    fn remove(&self, tx: Tx<'_, Crash>, root: &str, key: Key) -> Result<(), Error> {
        let mut map = structures::Map::open(tx, root)?;
        map.remove(&name(key)).map(drop)
    }

    fn get(
        &self,
        view: Reading<'_, Crash>,
        root: &str,
        key: Key,
    ) -> Result<Option<Vec<u8>>, Error> {
        structures::Map::open(view, root)?.get(&name(key))
    }

    fn read(&self, view: Reading<'_, Crash>, root: &str) -> Result<Found, Error> {
        let map = structures::Map::open(view, root)?;
        let wrong = map.check()?;
        let reader = map.read()?;
        let entries = reader.iter()?.map(|entry| {
            let (key, value) = entry?.to_pair()?;
            Ok((key_of(&key), value))
        });
        let content = entries.collect::<Result<Content, Error>>()?;
        Ok(Found { wrong, content })
    }
}

/// [`HashMap`], whose own order means nothing.
pub(super) struct Hash;

impl Subject for Hash {
    fn name(&self) -> &'static str {
        "hash"
    }

    fn create(&self, tx: Tx<'_, Crash>, root: &str, _keys: Key) -> Result<(), Error> {
        HashMap::create(tx, root).map(drop)
    }

    fn insert(&self, tx: Tx<'_, Crash>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut map = HashMap::open(tx, root)?;
        map.insert(&name(key), value).map(drop)
    }

    fn remove(&self, tx: Tx<'_, Crash>, root: &str, key: Key) -> Result<(), Error> {
        let mut map = HashMap::open(tx, root)?;
        map.remove(&name(key)).map(drop)
    }

    fn get(
        &self,
        view: Reading<'_, Crash>,
        root: &str,
        key: Key,
    ) -> Result<Option<Vec<u8>>, Error> {
        HashMap::open(view, root)?.get(&name(key))
    }

    fn read(&self, view: Reading<'_, Crash>, root: &str) -> Result<Found, Error> {
        let map = HashMap::open(view, root)?;
        let wrong = map.check()?;
        let reader = map.read()?;
        let entries = reader.iter()?.map(|entry| {
            let (key, value) = entry?.to_pair()?;
            Ok((key_of(&key), value))
        });
        let mut content = entries.collect::<Result<Content, Error>>()?;
        content.sort();
        Ok(Found { wrong, content })
    }
}
