//! The entry of a key, occupied or vacant, as in the standard library's maps.
//!
//! The value is read when the entry is requested. That takes the collection's write lock, so the value stays current
//! until the transaction ends.
//!
//! ```
//! # use firn_heap::{Error, Pool, PoolOptions};
//! # use firn_mapped::{Mapped, MappedOptions};
//! use firn_structures::Map;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let medium = Mapped::anonymous(16 << 20, &MappedOptions::default())?;
//! # let pool = Pool::create(medium, &PoolOptions::new("example"))?;
//! # let mut session = pool.session()?;
//! session.transaction(|tx| {
//!     let mut words = Map::open_or_create(tx, "words")?;
//!     for word in ["to", "be", "or", "not", "to", "be"] {
//!         let seen = words.entry(word.as_bytes())?.and_modify(|count| count[0] += 1)?;
//!         seen.or_insert(&[1])?;
//!     }
//!     assert_eq!(words.get(b"be")?, Some(vec![2]));
//!     Ok::<_, Error>(())
//! })?;
//! # Ok(())
//! # }
//! ```

use firn_heap::{Error, Tx};
use firn_media::Medium;

use crate::collection::Collection;
use crate::protocol::Keyed;

impl<'t, M: Medium, P: Keyed> Collection<'t, Tx<'t, M>, P> {
    /// The entry of `key`, for reading and changing it. Takes the write lock.
    ///
    /// Errors: only those of every function.
    pub fn entry<'c, 'k>(&'c mut self, key: P::Key<'k>) -> Result<Entry<'c, 'k, 't, M, P>, Error> {
        Entry::of(self, key)
    }
}

/// The entry of a key, occupied or vacant.
pub enum Entry<'c, 'k, 't, M: Medium, P: Keyed> {
    /// The key is there.
    Occupied(OccupiedEntry<'c, 'k, 't, M, P>),
    /// The key is not there.
    Vacant(VacantEntry<'c, 'k, 't, M, P>),
}

/// The entry of a key that is there.
pub struct OccupiedEntry<'c, 'k, 't, M: Medium, P: Keyed> {
    of: VacantEntry<'c, 'k, 't, M, P>,
    value: Vec<u8>,
}

/// The entry of a key that is not there.
pub struct VacantEntry<'c, 'k, 't, M: Medium, P: Keyed> {
    collection: &'c mut Collection<'t, Tx<'t, M>, P>,
    key: P::Key<'k>,
}

impl<'c, 'k, 't, M: Medium, P: Keyed> Entry<'c, 'k, 't, M, P> {
    pub(crate) fn of(
        collection: &'c mut Collection<'t, Tx<'t, M>, P>,
        key: P::Key<'k>,
    ) -> Result<Self, Error> {
        collection.lock()?;
        let value = collection.get(key)?;
        let of = VacantEntry { collection, key };
        Ok(match value {
            Some(value) => Self::Occupied(OccupiedEntry { of, value }),
            None => Self::Vacant(of),
        })
    }

    /// The key.
    pub fn key(&self) -> P::Key<'k> {
        match self {
            Self::Occupied(entry) => entry.key(),
            Self::Vacant(entry) => entry.key(),
        }
    }

    /// Inserts `value` if the key is not there.
    ///
    /// Errors: as the collection's `insert`.
    pub fn or_insert(self, value: &[u8]) -> Result<OccupiedEntry<'c, 'k, 't, M, P>, Error> {
        self.or_insert_with(|| value.to_vec())
    }

    /// Inserts the result of `make` if the key is not there.
    ///
    /// Errors: as the collection's `insert`.
    pub fn or_insert_with(
        self,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Result<OccupiedEntry<'c, 'k, 't, M, P>, Error> {
        match self {
            Self::Occupied(entry) => Ok(entry),
            Self::Vacant(entry) => entry.insert_owned(make()),
        }
    }

    /// Changes the value if the key is there.
    ///
    /// Errors: as the collection's `insert`.
    pub fn and_modify(mut self, change: impl FnOnce(&mut Vec<u8>)) -> Result<Self, Error> {
        if let Self::Occupied(entry) = &mut self {
            entry.modify(change)?;
        }
        Ok(self)
    }

    /// Sets the key's value, whether or not it has one.
    ///
    /// Errors: as the collection's `insert`.
    pub fn insert_entry(self, value: &[u8]) -> Result<OccupiedEntry<'c, 'k, 't, M, P>, Error> {
        match self {
            Self::Occupied(mut entry) => entry.insert(value).map(|_| entry),
            Self::Vacant(entry) => entry.insert(value),
        }
    }
}

impl<'k, 't, M: Medium, P: Keyed> OccupiedEntry<'_, 'k, 't, M, P> {
    /// The key.
    pub fn key(&self) -> P::Key<'k> {
        self.of.key
    }

    /// The value.
    pub fn get(&self) -> &[u8] {
        &self.value
    }

    /// The value, as an owned vector.
    pub fn into_value(self) -> Vec<u8> {
        self.value
    }

    /// Replaces the value. Returns the old one.
    ///
    /// Errors: as the collection's `insert`; the value stays.
    pub fn insert(&mut self, value: &[u8]) -> Result<Vec<u8>, Error> {
        self.of.collection.insert(self.of.key, value)?;
        Ok(core::mem::replace(&mut self.value, value.to_vec()))
    }

    /// Changes the value. If the result is equal, nothing is stored.
    ///
    /// Errors: as the collection's `insert`; the value stays.
    pub fn modify(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        let mut new = self.value.clone();
        change(&mut new);
        if new != self.value {
            self.of.collection.insert(self.of.key, &new)?;
            self.value = new;
        }
        Ok(())
    }

    /// Removes the key. Returns its value.
    ///
    /// Errors: as the collection's `remove`.
    pub fn remove(self) -> Result<Vec<u8>, Error> {
        self.of.collection.remove(self.of.key)?;
        Ok(self.value)
    }
}

impl<'c, 'k, 't, M: Medium, P: Keyed> VacantEntry<'c, 'k, 't, M, P> {
    /// The key.
    pub fn key(&self) -> P::Key<'k> {
        self.key
    }

    /// Inserts the key with this value.
    ///
    /// Errors: as the collection's `insert`.
    pub fn insert(self, value: &[u8]) -> Result<OccupiedEntry<'c, 'k, 't, M, P>, Error> {
        self.insert_owned(value.to_vec())
    }

    fn insert_owned(self, value: Vec<u8>) -> Result<OccupiedEntry<'c, 'k, 't, M, P>, Error> {
        self.collection.insert(self.key, &value)?;
        Ok(OccupiedEntry { of: self, value })
    }
}
