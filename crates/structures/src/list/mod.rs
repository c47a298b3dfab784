//! A doubly linked list of byte strings, each with a number for a key.
//!
//! ```text
//! node      what lies on media        cursor    changes
//! read      reading                   check     whether every invariant holds
//! ```
//! The order is the program's; keys may occur more than once. Finding a key takes linear time, as in
//! the lists that persistent heaps are usually measured with.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the list's lock, a writer has it alone until its transaction ends.

mod check;
mod cursor;
mod node;
mod read;

use firn_heap::{Error, Obj, RootKey, Tx, View};
use firn_media::Medium;

pub use cursor::Cursor;
pub use node::{ListRoot, Node};
pub use read::{Element, Iter, ListReader};

/// A list, seen through a guard or a transaction. It is named by a root of the pool, or by a field
/// that refers to its [`ListRoot`].
///
/// Every function takes constant time unless it says otherwise, and returns [`Error::Damaged`] or
/// [`Error::WrongType`] for media that make no sense, in a transaction [`Error::Conflict`] where it
/// would have to wait against the order of locks.
pub struct List<'g, V: View<'g>> {
    root: Obj<'g, ListRoot, V>,
    lock: u64,
}

impl<'g, V: View<'g>> List<'g, V> {
    /// The list of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is no list.
    pub fn open(view: V, root: impl RootKey<ListRoot>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The list of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is no list.
    pub fn find_root(view: V, root: impl RootKey<ListRoot>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The list at this object, which a field or a handle refers to.
    pub fn at(root: Obj<'g, ListRoot, V>) -> Self {
        Self {
            root,
            lock: root.load(ListRoot::LOCK),
        }
    }

    /// The object that stands for the list: refer to it from a field, or make a handle of it.
    pub fn object(&self) -> Obj<'g, ListRoot, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through it.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer, who waits for
    /// the first one, waits forever.
    pub fn read(&self) -> Result<ListReader<'_, 'g, V>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(ListReader::new(self.root, lock))
    }

    /// Number of elements.
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.read()?.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// The value of the first element with this key, in linear time.
    pub fn get(&self, key: u64) -> Result<Option<Vec<u8>>, Error> {
        let reader = self.read()?;
        let element = reader.find(key)?;
        element.map(|e| e.value()).transpose()
    }

    /// Every invariant that does not hold, in sentences; none for a sound list. In linear time.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(check::check(self.root))
    }
}

impl<'t, M: Medium> List<'t, Tx<'t, M>> {
    /// Makes an empty list and a root for it.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full.
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<ListRoot>) -> Result<Self, Error> {
        crate::refuse_taken_name(tx, root)?;
        let list = Self::new(tx)?;
        tx.set_root(root, list.root)?;
        Ok(list)
    }

    /// The list of a root, made if there is no such root.
    ///
    /// Errors: the root is no list, the pool is full.
    pub fn open_or_create(tx: Tx<'t, M>, root: impl RootKey<ListRoot>) -> Result<Self, Error> {
        match Self::find_root(tx, root)? {
            Some(list) => Ok(list),
            None => Self::create(tx, root),
        }
    }

    /// Makes an empty list without a name: refer to its [`List::object`] from a field, or it is
    /// reclaimed.
    ///
    /// Errors: the pool is full.
    pub fn new(tx: Tx<'t, M>) -> Result<Self, Error> {
        let root = tx.alloc(ListRoot {
            lock: tx.new_lock_id(),
            len: 0,
            first: firn_heap::Ref::NULL,
            last: firn_heap::Ref::NULL,
        })?;
        Ok(Self::at(root))
    }

    /// A cursor beside the elements: in front of the first and behind the last. Takes the write
    /// lock.
    pub fn cursor(&mut self) -> Result<Cursor<'_, 't, M>, Error> {
        self.root.view().lock_exclusive(self.lock)?;
        Ok(Cursor::new(self.root))
    }

    /// Inserts an element in front of all others.
    ///
    /// Errors: the value is too large, the pool is full; the list is as before.
    pub fn push_front(&mut self, key: u64, value: &[u8]) -> Result<(), Error> {
        self.cursor()?.insert_after(key, value)
    }

    /// Inserts an element behind all others.
    ///
    /// Errors: the value is too large, the pool is full; the list is as before.
    pub fn push_back(&mut self, key: u64, value: &[u8]) -> Result<(), Error> {
        self.cursor()?.insert_before(key, value)
    }

    /// Removes the first element with this key, in linear time. Returns whether there was one.
    pub fn remove(&mut self, key: u64) -> Result<bool, Error> {
        let mut cursor = self.cursor()?;
        Ok(cursor.find(key)? && cursor.remove()?)
    }

    /// Removes the first element and returns it.
    pub fn pop_front(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut cursor = self.cursor()?;
        cursor.move_next()?;
        cursor.take()
    }

    /// Removes the last element and returns it.
    pub fn pop_back(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut cursor = self.cursor()?;
        cursor.move_previous()?;
        cursor.take()
    }
}
