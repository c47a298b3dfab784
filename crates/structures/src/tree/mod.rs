//! Ordered maps from numbers to byte strings: what every tree of this crate can do.
//!
//! ```text
//! kind     what a tree must know about itself     read     reading under a lock
//! range    iterating from either end              check    sentences about what is wrong
//! ```
//! [`Tree`] is the interface, a [`Kind`] is the tree behind it: [`crate::AvlTree`],
//! [`crate::RedBlackTree`] and [`crate::InlineTree`] are this type with one kind each.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the tree's lock, a writer has it alone until its transaction ends.

pub(crate) mod check;
pub(crate) mod kind;
mod range;
mod read;

use firn_heap::{Error, Obj, RootKey, Tx, View};
use firn_media::Medium;

use crate::entry::Entry as OfKey;

pub use kind::Kind;
pub use range::Range;
pub use read::{Entry, TreeReader};

/// Longest value, in bytes, of a tree that keeps each in an object of its own.
pub const MAX_VALUE_BYTES: u64 = crate::map::MAX_VALUE_BYTES;

/// A key and its value.
pub type OwnedEntry = (u64, Vec<u8>);

/// An ordered map from numbers to byte strings, seen through a guard or a transaction. It is named
/// by a root of the pool, or by a field that refers to its root object.
///
/// Every function takes time logarithmic in the number of entries unless it says otherwise, and
/// returns [`Error::Damaged`] or [`Error::WrongType`] for media that make no sense, in a transaction
/// [`Error::Conflict`] where it would have to wait against the order of locks. A change that finds
/// damage may be half made: let the transaction end with the error.
pub struct Tree<'g, V: View<'g>, K: Kind> {
    root: Obj<'g, K::Root, V>,
    lock: u64,
}

impl<'g, V: View<'g>, K: Kind> Tree<'g, V, K> {
    /// The tree of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is no tree of this kind.
    pub fn open(view: V, root: impl RootKey<K::Root>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The tree of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is no tree of this kind.
    pub fn find_root(view: V, root: impl RootKey<K::Root>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The tree at this object, which a field or a handle refers to.
    pub fn at(root: Obj<'g, K::Root, V>) -> Self {
        Self {
            root,
            lock: root.load(K::LOCK),
        }
    }

    /// The object that stands for the tree: refer to it from a field, or make a handle of it.
    pub fn object(&self) -> Obj<'g, K::Root, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through it.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer, who waits for
    /// the first one, waits forever.
    #[inline]
    pub fn read(&self) -> Result<TreeReader<'_, 'g, V, K>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(TreeReader::new(self.root, lock))
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
    pub fn get(&self, key: u64) -> Result<Option<Vec<u8>>, Error> {
        self.read()?.get(key)
    }

    /// Appends the value of `key` to `into`, without another allocation if it has room. Returns
    /// whether the key is there.
    #[inline]
    pub fn get_into(&self, key: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        self.read()?.get_into(key, into)
    }

    /// Whether `key` is there.
    pub fn contains(&self, key: u64) -> Result<bool, Error> {
        self.read()?.contains(key)
    }

    /// The least key and its value.
    pub fn first(&self) -> Result<Option<OwnedEntry>, Error> {
        self.read()?.first()
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<OwnedEntry>, Error> {
        self.read()?.last()
    }

    /// Every invariant that does not hold, in sentences; none for a sound tree. In time linear in
    /// the number of entries.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(check::check::<V, K>(self.root))
    }
}

impl<'t, M: Medium, K: Kind> Tree<'t, Tx<'t, M>, K> {
    /// Makes an empty tree and a root for it.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full.
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<K::Root>) -> Result<Self, Error> {
        crate::refuse_taken_name(tx, root)?;
        let tree = Self::new(tx)?;
        tx.set_root(root, tree.root)?;
        Ok(tree)
    }

    /// The tree of a root, made if there is no such root.
    ///
    /// Errors: the root is no tree of this kind, the pool is full.
    pub fn open_or_create(tx: Tx<'t, M>, root: impl RootKey<K::Root>) -> Result<Self, Error> {
        match Self::find_root(tx, root)? {
            Some(tree) => Ok(tree),
            None => Self::create(tx, root),
        }
    }

    /// Makes an empty tree without a name: refer to its [`Tree::object`] from a field, or it is
    /// reclaimed.
    ///
    /// Errors: the pool is full.
    pub fn new(tx: Tx<'t, M>) -> Result<Self, Error> {
        Ok(Self::at(tx.alloc(K::new_root(tx.new_lock_id()))?))
    }

    /// Inserts, or replaces the value of a key that is there. Returns whether it replaced one.
    ///
    /// Errors: the value is too large ([`Error::ObjectTooLarge`]), the pool is full; the tree is as
    /// before.
    pub fn insert(&mut self, key: u64, value: &[u8]) -> Result<bool, Error> {
        self.lock()?;
        self.put(key, value, None)
    }

    /// Inserts, or replaces the value of a key that is there, which is returned.
    ///
    /// Errors: as [`Tree::insert`].
    pub fn replace(&mut self, key: u64, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let replaced = self.put(key, value, Some(&mut old))?;
        Ok(replaced.then_some(old))
    }

    /// Removes `key`. Returns whether it was there.
    ///
    /// Works in a full pool too.
    pub fn remove(&mut self, key: u64) -> Result<bool, Error> {
        self.lock()?;
        self.drop_key(key, None)
    }

    /// Removes `key` and returns its value.
    pub fn take(&mut self, key: u64) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let there = self.drop_key(key, Some(&mut old))?;
        Ok(there.then_some(old))
    }

    /// Asks `change` what becomes of the value of `key`, `None` where there is none: what it returns
    /// is the new value, and without one the key is removed. Where the value stays, nothing is
    /// stored. Returns whether the key was there.
    ///
    /// Errors: as [`Tree::insert`].
    pub fn update(
        &mut self,
        key: u64,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let there = match K::find(self.root, key)? {
            Some(spot) => K::value_into(spot, &mut old).map(|()| true)?,
            None => false,
        };
        match change(there.then_some(&old)) {
            Some(new) if there && new == old => {}
            Some(new) => drop(self.put(key, &new, None)?),
            None if there => drop(self.drop_key(key, None)?),
            None => {}
        }
        Ok(there)
    }

    /// The entry of `key`, to look at it and change it. Takes the write lock.
    pub fn entry(&mut self, key: u64) -> Result<OfKey<'_, '_, Self>, Error> {
        OfKey::of(self, key)
    }

    /// Removes every entry, in time linear in their number.
    ///
    /// All of it is one transaction, which remembers each object until it ends. Where that is too
    /// much, remove entries piece by piece.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.lock()?;
        let root = self.root;
        root.view().nested(|_| K::clear(root))?;
        root.store(K::LEN, 0);
        Ok(())
    }

    fn put(&self, key: u64, value: &[u8], old: Option<&mut Vec<u8>>) -> Result<bool, Error> {
        if value.len() as u64 > K::VALUE_LIMIT {
            return Err(Error::ObjectTooLarge {
                bytes: value.len() as u64,
                limit: K::VALUE_LIMIT,
            });
        }
        let replaced = K::insert(self.root, key, value, old)?;
        if !replaced {
            self.count(u64::wrapping_add);
        }
        Ok(replaced)
    }

    fn drop_key(&self, key: u64, old: Option<&mut Vec<u8>>) -> Result<bool, Error> {
        let there = K::remove(self.root, key, old)?;
        if there {
            self.count(u64::wrapping_sub);
        }
        Ok(there)
    }

    fn count(&self, change: impl Fn(u64, u64) -> u64) {
        self.root.store(K::LEN, change(self.root.load(K::LEN), 1));
    }

    pub(crate) fn lock(&self) -> Result<(), Error> {
        self.root.view().lock_exclusive(self.lock)
    }
}

pub(crate) fn damaged<'g, T, V: View<'g>>(what: &'static str, object: Obj<'g, T, V>) -> Error {
    Error::Damaged {
        what,
        at: object.address().0,
    }
}
