//! Looking up and changing by key: the common functions of all collections with keys or indices.

use firn_heap::{Error, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::protocol::{InOrder, Keyed, Lookup, Part};

impl<'g, V: View<'g>, P: Lookup> Collection<'g, V, P> {
    /// The value of `key`, or the element at that index; `None` if there is none.
    pub fn get(&self, key: P::Key<'_>) -> Result<Option<Vec<u8>>, Error> {
        self.read()?.get(key)
    }

    /// Appends the value of `key`, or the element at that index, to `into`, without another allocation if it has room.
    /// Returns whether there is one.
    #[inline]
    pub fn get_into(&self, key: P::Key<'_>, into: &mut Vec<u8>) -> Result<bool, Error> {
        self.read()?.get_into(key, into)
    }
}

impl<'g, V: View<'g>, P: Keyed> Collection<'g, V, P> {
    /// Whether `key` is there.
    pub fn contains(&self, key: P::Key<'_>) -> Result<bool, Error> {
        self.read()?.contains(key)
    }
}

impl<'g, V: View<'g>, P: InOrder> Collection<'g, V, P> {
    /// The least key and its value.
    pub fn first(&self) -> Result<Option<P::OwnedEntry>, Error> {
        self.read()?.first()
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<P::OwnedEntry>, Error> {
        self.read()?.last()
    }
}

impl<'t, M: Medium, P: Keyed> Collection<'t, Tx<'t, M>, P> {
    /// Inserts, or replaces the value of an existing key. Returns whether it replaced one.
    ///
    /// Errors: key or value too large ([`Error::ObjectTooLarge`]), the pool is full; the collection is unchanged.
    #[inline]
    pub fn insert(&mut self, key: P::Key<'_>, value: &[u8]) -> Result<bool, Error> {
        self.lock()?;
        P::insert(Part(self.root), key, value, None)
    }

    /// Inserts, or replaces the value of an existing key and returns the old one.
    ///
    /// Errors: as [`Collection::insert`].
    pub fn replace(&mut self, key: P::Key<'_>, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let replaced = P::insert(Part(self.root), key, value, Some(&mut old))?;
        Ok(replaced.then_some(old))
    }

    /// Removes `key`. Returns whether it was there.
    ///
    /// Works in a full pool too.
    #[inline]
    pub fn remove(&mut self, key: P::Key<'_>) -> Result<bool, Error> {
        self.lock()?;
        P::remove(Part(self.root), key, None)
    }

    /// Removes `key` and returns its value.
    pub fn take(&mut self, key: P::Key<'_>) -> Result<Option<Vec<u8>>, Error> {
        self.lock()?;
        let mut old = Vec::new();
        let there = P::remove(Part(self.root), key, Some(&mut old))?;
        Ok(there.then_some(old))
    }

    /// Replaces the value of `key` by the result of `change`, which gets the old value, or `None` if the key is not
    /// there, and returns `None` to remove the key. Returns whether the key was there.
    ///
    /// Errors: as [`Collection::insert`].
    pub fn update(
        &mut self,
        key: P::Key<'_>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.lock()?;
        P::update(Part(self.root), key, change)
    }
}
