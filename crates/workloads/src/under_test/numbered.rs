//! Lists, trees and arrays of strings: an element has a number.

use std::marker::PhantomData;

use firn_heap::{Error, Reading, Tx};
use firn_media::Medium;
use firn_structures::avl::Avl;
use firn_structures::inline_tree::Inline;
use firn_structures::red_black::RedBlack;
use firn_structures::tree::{Kind, Tree};
use firn_structures::{self as structures, StringArray};

use super::{Content, Found, Key, Keys, Order, UnderTest};

/// The key of this number; for a number that is too large, one that is never inserted.
fn number(key: u64) -> Key {
    Key::try_from(key).unwrap_or(Key::MAX)
}

/// [`structures::List`].
pub(super) struct List;

impl<M: Medium> UnderTest<M> for List {
    fn order(&self) -> Order {
        Order::ByArrival
    }

    fn create(&self, tx: Tx<'_, M>, root: &str, _keys: Key) -> Result<(), Error> {
        structures::List::create(tx, root).map(drop)
    }

    fn insert(&self, tx: Tx<'_, M>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut list = structures::List::open(tx, root)?;
        let mut cursor = list.cursor()?;
        if cursor.find(key.into())? {
            return cursor.set_value(value).map(drop);
        }
        list.push_back(key.into(), value)
    }

    fn remove(&self, tx: Tx<'_, M>, root: &str, key: Key) -> Result<(), Error> {
        let mut list = structures::List::open(tx, root)?;
        list.remove(key.into()).map(drop)
    }

    fn get(&self, view: Reading<'_, M>, root: &str, key: Key) -> Result<Option<Vec<u8>>, Error> {
        structures::List::open(view, root)?.get(key.into())
    }

    fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error> {
        let list = structures::List::open(view, root)?;
        let wrong = list.check()?;
        let reader = list.read()?;
        let elements = reader.iter().map(|element| {
            let element = element?;
            Ok((number(element.key()), element.value()?))
        });
        let content = elements.collect::<Result<Content, Error>>()?;
        Ok(Found { wrong, content })
    }
}

/// A [`Tree`] of a kind.
pub(super) struct OfTree<K>(PhantomData<fn() -> K>);

pub(super) static AVL: OfTree<Avl> = OfTree(PhantomData);
pub(super) static RED_BLACK: OfTree<RedBlack> = OfTree(PhantomData);
pub(super) static INLINE: OfTree<Inline> = OfTree(PhantomData);

impl<K: Kind, M: Medium> UnderTest<M> for OfTree<K> {
    fn keys(&self) -> Keys {
        Keys::OF_TREES
    }

    fn create(&self, tx: Tx<'_, M>, root: &str, _keys: Key) -> Result<(), Error> {
        Tree::<_, K>::create(tx, root).map(drop)
    }

    fn insert(&self, tx: Tx<'_, M>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut tree = Tree::<_, K>::open(tx, root)?;
        tree.insert(key.into(), value).map(drop)
    }

    fn remove(&self, tx: Tx<'_, M>, root: &str, key: Key) -> Result<(), Error> {
        let mut tree = Tree::<_, K>::open(tx, root)?;
        tree.remove(key.into()).map(drop)
    }

    fn get(&self, view: Reading<'_, M>, root: &str, key: Key) -> Result<Option<Vec<u8>>, Error> {
        Tree::<_, K>::open(view, root)?.get(key.into())
    }

    fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error> {
        let tree = Tree::<_, K>::open(view, root)?;
        let wrong = tree.check()?;
        let reader = tree.read()?;
        let entries = reader.iter().map(|entry| {
            let (key, value) = entry?.to_pair()?;
            Ok((number(key), value))
        });
        let content = entries.collect::<Result<Content, Error>>()?;
        Ok(Found { wrong, content })
    }
}

/// [`StringArray`]: a key is a place.
pub(super) struct Strings;

impl<M: Medium> UnderTest<M> for Strings {
    fn create(&self, tx: Tx<'_, M>, root: &str, keys: Key) -> Result<(), Error> {
        StringArray::create(tx, root, keys.into()).map(drop)
    }

    fn insert(&self, tx: Tx<'_, M>, root: &str, key: Key, value: &[u8]) -> Result<(), Error> {
        StringArray::open(tx, root)?
            .set(key.into(), value)
            .map(drop)
    }

    fn remove(&self, tx: Tx<'_, M>, root: &str, key: Key) -> Result<(), Error> {
        StringArray::open(tx, root)?.remove(key.into()).map(drop)
    }

    fn get(&self, view: Reading<'_, M>, root: &str, key: Key) -> Result<Option<Vec<u8>>, Error> {
        StringArray::open(view, root)?.get(key.into())
    }

    fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error> {
        let array = StringArray::open(view, root)?;
        let wrong = array.check()?;
        let strings = array.read()?.iter().collect::<Result<Vec<_>, _>>()?;
        let placed = (0..).zip(strings);
        let content = placed.filter_map(|(key, string)| Some((key, string?)));
        Ok(Found {
            wrong,
            content: content.collect(),
        })
    }
}
