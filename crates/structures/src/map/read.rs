//! Reading under a lock that is held.

use core::ops::{Bound, RangeBounds};

use firn_heap::{Error, Obj, ReadLock, View};

use super::entry;
use super::node::MapRoot;
use super::range::{Bounds, Range};
use super::search::{self, Found};

/// A map that no writer changes while this lives. See [`super::Map::read`].
pub struct MapReader<'m, 'g, V: View<'g>> {
    root: Obj<'g, MapRoot, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the map through the value that this was made of.
    of: core::marker::PhantomData<&'m ()>,
}

impl<'g, V: View<'g>> MapReader<'_, 'g, V> {
    #[inline]
    pub(crate) fn new(root: Obj<'g, MapRoot, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            _lock: lock,
            of: core::marker::PhantomData,
        }
    }

    /// Number of entries, in constant time.
    pub fn len(&self) -> u64 {
        self.root.load(MapRoot::LEN)
    }

    /// Whether there are no entries, in constant time.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn entry(&self, key: &[u8]) -> Result<Option<entry::Entry<'g, V>>, Error> {
        let Some(leaf) = search::leaf(self.root, key)? else {
            return Ok(None);
        };
        match leaf.find(key)? {
            Found::At(place) => leaf.entry(place).map(Some),
            Found::Before(_) => Ok(None),
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Appends the value of `key` to `into`, without another allocation if it has room. Returns
    /// whether the key is there.
    #[inline]
    pub fn get_into(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        match self.entry(key)? {
            Some(entry) => entry::value_into(entry, into).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether `key` is there.
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.entry(key)?.is_some())
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> Result<Range<'_, 'g, V>, Error> {
        Range::new(self.root, Bounds::ALL)
    }

    /// The entries whose keys lie within `bounds`, in order; none if these are reversed.
    pub fn range<K: AsRef<[u8]>>(
        &self,
        bounds: impl RangeBounds<K>,
    ) -> Result<Range<'_, 'g, V>, Error> {
        let bounds = Bounds {
            start: bounds.start_bound().map(AsRef::as_ref),
            end: bounds.end_bound().map(AsRef::as_ref),
        };
        Range::new(self.root, bounds)
    }

    /// The entries within bounds that are at hand.
    pub(crate) fn range_of(&self, bounds: Bounds<'_>) -> Result<Range<'_, 'g, V>, Error> {
        Range::new(self.root, bounds)
    }

    /// The entries whose keys begin with `prefix`, in order.
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range<'_, 'g, V>, Error> {
        let behind = behind_prefix(prefix);
        let bounds = Bounds {
            start: Bound::Included(prefix),
            end: behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        };
        Range::new(self.root, bounds)
    }
}

/// The least string above all that begin with `prefix`; `None` if there is none.
pub(crate) fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}
