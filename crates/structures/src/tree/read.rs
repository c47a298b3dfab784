//! Reading under a lock that is held.

use core::marker::PhantomData;
use core::ops::RangeBounds;

use firn_heap::{Error, Obj, ReadLock, View};

use super::OwnedEntry;
use super::kind::{ABREAST, Found, Kind};
use super::range::Range;

/// A tree that no writer changes while this lives. See [`super::Tree::read`].
pub struct TreeReader<'r, 'g, V: View<'g>, K: Kind> {
    root: Obj<'g, K::Root, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the tree through the value that this was made of.
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>, K: Kind> TreeReader<'_, 'g, V, K> {
    #[inline]
    pub(crate) fn new(root: Obj<'g, K::Root, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of entries, in constant time.
    pub fn len(&self) -> u64 {
        self.root.load(K::LEN)
    }

    /// Whether there are no entries, in constant time.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    pub fn get(&self, key: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Appends the value of `key` to `into`, without another allocation if it has room. Returns
    /// whether the key is there.
    #[inline]
    pub fn get_into(&self, key: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        match K::find(self.root, key)? {
            Some(spot) => K::value_into(spot, into).map(|()| true),
            None => Ok(false),
        }
    }

    /// Hands the value of each of the keys to `each`, with the key's place among them, in their order;
    /// `None` for a key that is not there.
    ///
    /// Searches for some of the keys side by side: while one waits for memory another goes on. That takes
    /// a fraction of the time of as many calls of [`TreeReader::get_into`] where the tree is larger than
    /// the processor's caches.
    ///
    /// Errors: the tree is damaged; the values before the key that found it were handed over, perhaps
    /// not all.
    pub fn get_each(
        &self,
        keys: &[u64],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let (mut value, mut place) = (Vec::new(), 0);
        for keys in keys.chunks(ABREAST) {
            let mut found = [None; ABREAST];
            K::find_abreast(self.root, keys, &mut found)?;
            for spot in &found[..keys.len()] {
                value.clear();
                if let Some(spot) = spot {
                    K::value_into(*spot, &mut value)?;
                }
                each(place, spot.is_some().then_some(&value));
                place += 1;
            }
        }
        Ok(())
    }

    /// Whether `key` is there.
    pub fn contains(&self, key: u64) -> Result<bool, Error> {
        Ok(K::find(self.root, key)?.is_some())
    }

    /// The least key and its value.
    pub fn first(&self) -> Result<Option<OwnedEntry>, Error> {
        self.iter().next().map(|entry| entry?.to_pair()).transpose()
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<OwnedEntry>, Error> {
        let last = self.iter().next_back();
        last.map(|entry| entry?.to_pair()).transpose()
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> Range<'_, 'g, V, K> {
        self.range(..)
    }

    /// The entries whose keys lie within `bounds`, in order; none if these are reversed.
    pub fn range(&self, bounds: impl RangeBounds<u64>) -> Range<'_, 'g, V, K> {
        Range::new(self.root, &bounds)
    }
}

/// A key and its value, while the tree's lock is held.
pub struct Entry<'r, 'g, V: View<'g>, K: Kind> {
    found: Found<'g, V, K>,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>, K: Kind> Entry<'_, 'g, V, K> {
    pub(crate) fn new(found: Found<'g, V, K>) -> Self {
        let of = PhantomData;
        Self { found, of }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> u64 {
        self.found.0
    }

    /// The value.
    pub fn value(&self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.value_into(&mut value)?;
        Ok(value)
    }

    /// Appends the value to `into`.
    pub fn value_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        K::value_into(self.found.1, into)
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> Result<usize, Error> {
        K::value_len(self.found.1)
    }

    /// Key and value.
    pub fn to_pair(&self) -> Result<OwnedEntry, Error> {
        Ok((self.key(), self.value()?))
    }
}
