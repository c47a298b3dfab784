//! The type of every collection: an object of the pool that a root or a field names, with a lock of its own.
//!
//! [`Collection`] opens, makes and locks one; a [`Protocol`] implements it. Each of this crate's collections is that
//! type with one protocol: [`crate::Map`], [`crate::List`] and the others.

use firn_heap::{Error, Obj, RootKey, Tx, Untyped, View};
use firn_media::Medium;

use crate::protocol::{Growing, Part, Protocol};
use crate::reader::Reader;

/// A collection, seen through a guard or a transaction. A root of the pool names it, or a field that refers to its root
/// object.
///
/// Every function returns [`Error::Damaged`] or [`Error::WrongType`] for damaged media, and in a transaction
/// [`Error::Conflict`] where it would have to wait against the order of locks. A change that finds damage may be
/// incomplete: end the transaction with the error.
///
/// Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
/// Concurrency: readers share the collection's lock, a writer has it alone until its transaction ends.
pub struct Collection<'g, V: View<'g>, P: Protocol> {
    pub(crate) root: Obj<'g, P::Root, V>,
    lock: u64,
}

impl<'g, V: View<'g>, P: Protocol> Collection<'g, V, P> {
    /// The collection of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is another collection or none.
    pub fn open(view: V, root: impl RootKey<P::Root>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The collection of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is another collection or none.
    pub fn find(view: V, root: impl RootKey<P::Root>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The collection at this object, to which a field or a handle refers.
    #[inline]
    pub fn at(root: Obj<'g, P::Root, V>) -> Self {
        Self {
            root,
            lock: root.load(P::LOCK),
        }
    }

    /// The collection's root object, for a reference in a field, or a handle.
    pub fn object(&self) -> Obj<'g, P::Root, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through that value.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer waits forever if the writer waits
    /// for the first.
    #[inline]
    pub fn read(&self) -> Result<Reader<'_, 'g, V, P>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(Reader::new(self.root, lock))
    }

    /// Number of entries or elements, in constant time.
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.read()?.len())
    }

    /// Whether there are none, in constant time.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Every violated invariant, in sentences; none for a sound collection. Takes linear time.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        let mut findings = Vec::new();
        if let Err(error) = P::check(Part(self.root), &mut findings) {
            findings.push(error.to_string());
        }
        Ok(findings)
    }
}

impl<'t, M: Medium, P: Protocol> Collection<'t, Tx<'t, M>, P> {
    /// Makes a collection and a root for it.
    ///
    /// Errors: there is such a root already, or no place for another; as `make`.
    pub(crate) fn create_as(
        tx: Tx<'t, M>,
        root: impl RootKey<P::Root>,
        make: impl FnOnce() -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        if Obj::<Untyped, _>::of_root(tx, &root.text())?.is_some() {
            return Err(Error::WrongKind {
                what: "creating a collection under a name",
                needs: "a pool that has no root of this name",
            });
        }
        let made = make()?;
        tx.set_root(root, made.root)?;
        Ok(made)
    }

    /// Takes the write lock, until the transaction ends.
    #[inline]
    pub(crate) fn lock(&self) -> Result<(), Error> {
        self.root.view().lock_exclusive(self.lock)
    }
}

impl<'t, M: Medium, P: Growing> Collection<'t, Tx<'t, M>, P> {
    /// Makes an empty collection and a root for it.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full.
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<P::Root>) -> Result<Self, Error> {
        Self::create_as(tx, root, || Self::new(tx))
    }

    /// The collection of a root, made if there is no such root.
    ///
    /// Errors: the root is another collection or none, the pool is full.
    pub fn open_or_create(tx: Tx<'t, M>, root: impl RootKey<P::Root>) -> Result<Self, Error> {
        match Self::find(tx, root)? {
            Some(found) => Ok(found),
            None => Self::create(tx, root),
        }
    }

    /// Makes an empty collection without a name: refer to its [`Collection::object`] from a field, or the collection is
    /// reclaimed.
    ///
    /// Errors: the pool is full.
    pub fn new(tx: Tx<'t, M>) -> Result<Self, Error> {
        Ok(Self::at(tx.alloc(P::empty(tx, tx.new_lock_id()))?))
    }

    /// Removes everything and gives all space back, in linear time.
    ///
    /// All of it is one transaction, which remembers each object until it ends. Where that is too much, remove elements
    /// piece by piece.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.lock()?;
        let root = self.root;
        root.view().nested(|_| P::clear(Part(root)))
    }
}
