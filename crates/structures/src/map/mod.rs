//! An ordered map from byte strings to byte strings: a B+tree whose changes touch few lines.
//!
//! ```text
//! order    a node's permutation word     insert, remove     changes
//! key      words, separators             rebuild, merge     changes of whole nodes
//! entry    a key and its value           read, range, scan  reading
//! node     what lies on media            check              whether every invariant holds
//! search, path, fence    the way down and what it says about a node
//! ```
//!
//! A node keeps eight bytes of each key, taken behind what all its keys have in common, so that a
//! search compares numbers and looks at one entry. An insert that splits nothing stores one such
//! word, one reference, the order word and the length, besides the new entry.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the map's lock, a writer has it alone until its transaction ends.
//! Source: B+trees with the permutation word of Masstree (Mao, Kohler, Morris, EuroSys 2012) and the
//! truncated separators of prefix B-trees (Bayer, Unterauer, TODS 1977).

mod check;
pub(crate) mod entry;
mod fence;
mod insert;
mod key;
mod merge;
mod node;
pub(crate) mod order;
mod path;
mod range;
mod read;
mod rebuild;
mod remove;
mod scan;
mod search;

use firn_heap::{Error, Obj, RootKey, Tx, View};
use firn_media::Medium;

use crate::entry::Entry as OfKey;

pub use check::Shape;
pub use node::{MapRoot, Node};
pub use range::{Entry, Range};
pub use read::MapReader;
pub use scan::{Copied, Scan};

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 16 << 10;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: u64 = 1 << 30;

/// A key and its value.
pub type OwnedEntry = (Vec<u8>, Vec<u8>);

/// A map, seen through a guard or a transaction. It is named by a root of the pool, or by a field
/// that refers to its [`MapRoot`].
///
/// A key has up to [`MAX_KEY_BYTES`], a value up to [`MAX_VALUE_BYTES`]; both may be empty. Every
/// function takes time logarithmic in the number of entries unless it says otherwise, and returns
/// [`Error::Damaged`] or [`Error::WrongType`] for media that make no sense, in a transaction
/// [`Error::Conflict`] where it would have to wait against the order of locks.
pub struct Map<'g, V: View<'g>> {
    root: Obj<'g, MapRoot, V>,
    lock: u64,
}

impl<'g, V: View<'g>> Map<'g, V> {
    /// The map of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is no map.
    pub fn open(view: V, root: impl RootKey<MapRoot>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The map of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is no map.
    pub fn find(view: V, root: impl RootKey<MapRoot>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The map at this object, which a field or a handle refers to.
    pub fn at(root: Obj<'g, MapRoot, V>) -> Self {
        Self {
            root,
            lock: root.load(MapRoot::LOCK),
        }
    }

    /// The object that stands for the map: refer to it from a field, or make a handle of it.
    pub fn object(&self) -> Obj<'g, MapRoot, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through it.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer, who waits for
    /// the first one, waits forever.
    #[inline]
    pub fn read(&self) -> Result<MapReader<'_, 'g, V>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(MapReader::new(self.root, lock))
    }

    /// Number of entries, in constant time.
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.read()?.len())
    }

    /// Whether there are no entries, in constant time.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.read()?.get(key)
    }

    /// Appends the value of `key` to `into`, without another allocation if it has room. Returns
    /// whether the key is there.
    #[inline]
    pub fn get_into(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        self.read()?.get_into(key, into)
    }

    /// Whether `key` is there.
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        self.read()?.contains(key)
    }

    /// The least key and its value.
    pub fn first(&self) -> Result<Option<OwnedEntry>, Error> {
        let reader = self.read()?;
        let first = reader.iter()?.next();
        first.map(|entry| entry?.to_pair()).transpose()
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<OwnedEntry>, Error> {
        let reader = self.read()?;
        let last = reader.iter()?.next_back();
        last.map(|entry| entry?.to_pair()).transpose()
    }

    /// Every invariant that does not hold, in sentences; none for a sound map. In time linear in the
    /// number of entries.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(check::check(self.root).0)
    }

    /// How many nodes the map has and how full they are. In time linear in the number of entries.
    pub fn shape(&self) -> Result<Shape, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(check::check(self.root).1)
    }
}

impl<'t, M: Medium> Map<'t, Tx<'t, M>> {
    /// Makes an empty map and a root for it.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full.
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<MapRoot>) -> Result<Self, Error> {
        crate::refuse_taken_name(tx, root)?;
        let map = Self::new(tx)?;
        tx.set_root(root, map.root)?;
        Ok(map)
    }

    /// The map of a root, made if there is no such root.
    ///
    /// Errors: the root is no map, the pool is full.
    pub fn open_or_create(tx: Tx<'t, M>, root: impl RootKey<MapRoot>) -> Result<Self, Error> {
        match Self::find(tx, root)? {
            Some(map) => Ok(map),
            None => Self::create(tx, root),
        }
    }

    /// Makes an empty map without a name: refer to its [`Map::object`] from a field, or it is
    /// reclaimed.
    ///
    /// Errors: the pool is full.
    pub fn new(tx: Tx<'t, M>) -> Result<Self, Error> {
        let root = tx.alloc(MapRoot {
            lock: tx.new_lock_id(),
            len: 0,
            height: 0,
            top: firn_heap::Ref::NULL,
        })?;
        Ok(Self::at(root))
    }

    /// Inserts, or replaces the value of a key that is there. Returns whether it replaced one.
    ///
    /// Errors: key or value too large ([`Error::ObjectTooLarge`]), the pool is full; the map is as
    /// before.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.lock()?;
        insert::insert(self.root, key, value, None)
    }

    /// Inserts, or replaces the value of a key that is there, which is returned.
    ///
    /// Errors: as [`Map::insert`].
    pub fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let replaced = insert::insert(self.root, key, value, Some(&mut old))?;
        Ok(replaced.then_some(old))
    }

    /// Removes `key`. Returns whether it was there.
    ///
    /// Works in a full pool too.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.lock()?;
        remove::remove(self.root, key, None)
    }

    /// Removes `key` and returns its value.
    pub fn take(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let there = remove::remove(self.root, key, Some(&mut old))?;
        Ok(there.then_some(old))
    }

    /// The entry of `key`, to look at it and change it. Takes the write lock.
    pub fn entry<'c, 'k>(&'c mut self, key: &'k [u8]) -> Result<OfKey<'c, 'k, Self>, Error> {
        OfKey::of(self, key)
    }

    /// Removes every entry, in time linear in their number.
    ///
    /// All of it is one transaction, which remembers each object until it ends. Where that is too
    /// much, remove entries piece by piece.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.lock()?;
        let tx = self.root.view();
        let root = self.root;
        tx.nested(|tx| remove::clear(tx, root))
    }

    pub(crate) fn lock(&self) -> Result<(), Error> {
        self.root.view().lock_exclusive(self.lock)
    }
}
