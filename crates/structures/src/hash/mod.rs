//! An unordered map from byte strings to byte strings: a hash table that grows without a stop.
//!
//! ```text
//! bucket   what lies on media, chains      change   inserting and removing
//! hash     hashes, and which bucket        resize   one bucket more, one bucket less
//! read     reading                         check    whether every invariant holds
//! ```
//!
//! Linear hashing: the number of buckets follows the number of entries, one bucket at a time, so that
//! an insert rehashes one bucket at most, and a removal joins two at most. There is no moment at which
//! the whole map moves, and no operation with more work than another by more than a constant. A
//! bucket keeps 32 bits of each key's hash, by which it is divided without a look at its keys, and
//! by which a search looks at hardly any entry but the one it is for.
//!
//! A key and its value are one object. An insert stores them, one place of a bucket, and the number
//! of entries. Everything but the root object can be moved by the collector, and nothing of the map's
//! own is larger than 2 KiB.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the map's lock, a writer has it alone until its transaction ends.
//! Source: Litwin, "Linear Hashing" (VLDB 1980), over a directory as in Larson, "Dynamic Hash Tables"
//! (CACM 1988); the hash is XXH3 with a seed of the map's own.

mod bucket;
mod change;
mod check;
#[allow(clippy::module_inception, reason = "the field's own word")]
mod hash;
mod read;
mod resize;

use firn_heap::{Error, Obj, Ref, Refs, RootKey, Stored, Tx, View};
use firn_media::Medium;

use crate::entry::Entry as OfKey;

pub use crate::map::{MAX_KEY_BYTES, MAX_VALUE_BYTES, OwnedEntry};
pub use bucket::Bucket;
pub use check::Shape;
pub use read::{Entry, HashReader, Iter, Position};

/// What a hash map's name refers to.
#[derive(Stored)]
#[firn(name = "firn.hash")]
#[repr(C)]
pub struct HashRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of entries.
    pub(crate) len: u64,
    /// Seed of the hash.
    pub(crate) seed: u64,
    /// Number of buckets; zero before the first insert.
    pub(crate) buckets: u64,
    /// Levels of the directory.
    pub(crate) height: u64,
    /// The directory: a table of the buckets.
    pub(crate) directory: Ref<Refs<Bucket>>,
}

/// A hash map, seen through a guard or a transaction. It is named by a root of the pool, or by a field
/// that refers to its [`HashRoot`].
///
/// A key has up to [`MAX_KEY_BYTES`], a value up to [`MAX_VALUE_BYTES`]; both may be empty. Every
/// function takes constant time unless it says otherwise: expected over the seed, which is chosen at
/// random when the map is made, so that no choice of keys makes all of them collide. Every function
/// returns [`Error::Damaged`] or [`Error::WrongType`] for media that make no sense, in a transaction
/// [`Error::Conflict`] where it would have to wait against the order of locks.
pub struct HashMap<'g, V: View<'g>> {
    root: Obj<'g, HashRoot, V>,
    lock: u64,
}

impl<'g, V: View<'g>> HashMap<'g, V> {
    /// The map of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is no hash map.
    pub fn open(view: V, root: impl RootKey<HashRoot>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The map of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is no hash map.
    pub fn find(view: V, root: impl RootKey<HashRoot>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The map at this object, which a field or a handle refers to.
    pub fn at(root: Obj<'g, HashRoot, V>) -> Self {
        Self {
            root,
            lock: root.load(HashRoot::LOCK),
        }
    }

    /// The object that stands for the map: refer to it from a field, or make a handle of it.
    pub fn object(&self) -> Obj<'g, HashRoot, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through it.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer, who waits for
    /// the first one, waits forever.
    #[inline]
    pub fn read(&self) -> Result<HashReader<'_, 'g, V>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(HashReader::new(self.root, lock))
    }

    /// Number of entries.
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.read()?.len())
    }

    /// Whether there are no entries.
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

    /// Every invariant that does not hold, in sentences; none for a sound map. In time linear in the
    /// number of entries.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(check::check(self.root).0)
    }

    /// How many buckets the map has and how full they are. In time linear in the number of entries.
    pub fn shape(&self) -> Result<Shape, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(check::check(self.root).1)
    }
}

impl<'t, M: Medium> HashMap<'t, Tx<'t, M>> {
    /// Makes an empty map and a root for it.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full.
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<HashRoot>) -> Result<Self, Error> {
        crate::refuse_taken_name(tx, root)?;
        let map = Self::new(tx)?;
        tx.set_root(root, map.root)?;
        Ok(map)
    }

    /// The map of a root, made if there is no such root.
    ///
    /// Errors: the root is no hash map, the pool is full.
    pub fn open_or_create(tx: Tx<'t, M>, root: impl RootKey<HashRoot>) -> Result<Self, Error> {
        match Self::find(tx, root)? {
            Some(map) => Ok(map),
            None => Self::create(tx, root),
        }
    }

    /// Makes an empty map without a name: refer to its [`HashMap::object`] from a field, or it is
    /// reclaimed.
    ///
    /// Errors: the pool is full.
    pub fn new(tx: Tx<'t, M>) -> Result<Self, Error> {
        let root = tx.alloc(HashRoot {
            lock: tx.new_lock_id(),
            len: 0,
            seed: tx.medium().random_u64(),
            buckets: 0,
            height: 0,
            directory: Ref::NULL,
        })?;
        Ok(Self::at(root))
    }

    /// Inserts, or replaces the value of a key that is there. Returns whether it replaced one.
    ///
    /// Errors: key or value too large ([`Error::ObjectTooLarge`]), the pool is full; the map is as
    /// before.
    #[inline]
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.lock()?;
        change::insert(self.root, key, value, None)
    }

    /// Inserts, or replaces the value of a key that is there, which is returned.
    ///
    /// Errors: as [`HashMap::insert`].
    pub fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let replaced = change::insert(self.root, key, value, Some(&mut old))?;
        Ok(replaced.then_some(old))
    }

    /// Removes `key`. Returns whether it was there.
    ///
    /// Works in a full pool too.
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.lock()?;
        change::remove(self.root, key, None)
    }

    /// Removes `key` and returns its value.
    pub fn take(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let there = change::remove(self.root, key, Some(&mut old))?;
        Ok(there.then_some(old))
    }

    /// Makes the value of `key` what `change` makes of it: it is given the value, `None` if the key is
    /// not there, and returns the new one, `None` to remove the key. The key is searched for once.
    ///
    /// Errors: as [`HashMap::insert`].
    pub fn update(
        &mut self,
        key: &[u8],
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<(), Error> {
        self.lock()?;
        change::update(self.root, key, change)
    }

    /// The entry of `key`, to look at it and change it. Takes the write lock.
    pub fn entry<'c, 'k>(&'c mut self, key: &'k [u8]) -> Result<OfKey<'c, 'k, Self>, Error> {
        OfKey::of(self, key)
    }

    /// Removes every entry and gives all space back, in time linear in their number.
    ///
    /// All of it is one transaction, which remembers each object until it ends. Where that is too
    /// much, remove entries piece by piece.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.lock()?;
        let root = self.root;
        root.view().nested(|_| change::clear(root))
    }

    #[inline]
    pub(crate) fn lock(&self) -> Result<(), Error> {
        self.root.view().lock_exclusive(self.lock)
    }
}
