//! Maps, whose keys are byte strings.

use firn_heap::{Error, Reading, Tx};
use firn_media::Medium;
use firn_structures::{HashMap, Map as OrderedMap};

use super::{Content, Found, Key, UnderTest};

/// One key in this many is short: an entry stores the length of its key, except for keys of eight bytes.
const SHORT_ONE_IN: Key = 8;

/// A key as bytes, whose order is that of the keys.
fn name(key: Key) -> Vec<u8> {
    let mut bytes = key.to_be_bytes().to_vec();
    if key % SHORT_ONE_IN != 1 {
        bytes.resize(size_of::<u64>(), 0);
    }
    bytes
}

/// The key of these bytes; for bytes that are no key, one that is never inserted.
fn key_of(bytes: &[u8]) -> Key {
    let key = bytes.first_chunk().map(|first| Key::from_be_bytes(*first));
    key.filter(|&key| name(key) == bytes).unwrap_or(Key::MAX)
}

/// The implementation for a map with the interface that both have.
macro_rules! under_test {
    ($(#[$doc:meta])* $under_test:ident, $map:ident, $into_order:expr) => {
        $(#[$doc])*
        pub(super) struct $under_test;

        impl<M: Medium> UnderTest<M> for $under_test {
            fn create(&self, tx: Tx<'_, M>, root: &str, _keys: Key) -> Result<(), Error> {
                $map::create(tx, root).map(drop)
            }

            fn insert(
                &self,
                tx: Tx<'_, M>,
                root: &str,
                key: Key,
                value: &[u8],
            ) -> Result<(), Error> {
                $map::open(tx, root)?.insert(&name(key), value).map(drop)
            }

            fn remove(&self, tx: Tx<'_, M>, root: &str, key: Key) -> Result<(), Error> {
                $map::open(tx, root)?.remove(&name(key)).map(drop)
            }

            fn get(
                &self,
                view: Reading<'_, M>,
                root: &str,
                key: Key,
            ) -> Result<Option<Vec<u8>>, Error> {
                $map::open(view, root)?.get(&name(key))
            }

            fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error> {
                let map = $map::open(view, root)?;
                let wrong = map.check()?;
                let reader = map.read()?;
                let entries = reader.iter().map(|entry| {
                    let (key, value) = entry?.to_pair()?;
                    Ok((key_of(&key), value))
                });
                let content = entries.collect::<Result<Content, Error>>()?;
                let content = $into_order(content);
                Ok(Found { wrong, content })
            }
        }
    };
}

under_test!(
    /// [`firn_structures::Map`], whose order is that of its keys.
    Map,
    OrderedMap,
    |content| content
);

under_test!(
    /// [`HashMap`], whose own order means nothing.
    Hash,
    HashMap,
    |mut content: Content| {
        content.sort();
        content
    }
);
