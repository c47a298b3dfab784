//! Reading under a held lock: a reader, iterations, and their items.

use core::iter::FusedIterator;
use core::marker::PhantomData;

use firn_heap::{Error, Obj, ReadLock, View};

use crate::protocol::{InOrder, Keyed, Lookup, NumberedSpot, Part, Protocol, Spot, Walk, WalkBack};

/// A collection that no writer changes while this lives. See
/// [`Collection::read`](crate::Collection::read).
pub struct Reader<'c, 'g, V: View<'g>, P: Protocol> {
    pub(crate) root: Obj<'g, P::Root, V>,
    pub(crate) at_hand: P::AtHand<'g, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// Keeps a transaction from changing the collection through the value from which this was made.
    of: PhantomData<&'c ()>,
}

impl<'g, V: View<'g>, P: Protocol> Reader<'_, 'g, V, P> {
    #[inline]
    pub(crate) fn new(root: Obj<'g, P::Root, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            at_hand: P::at_hand(Part(root)),
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of entries or elements, in constant time.
    #[inline]
    pub fn len(&self) -> u64 {
        self.root.load(P::LEN)
    }

    /// Whether there are none, in constant time.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything that the collection holds, in its order.
    #[inline]
    pub fn iter(&self) -> Iter<'_, P::Walk<'g, V>> {
        Iter::new(P::walk(Part(self.root)))
    }
}

impl<'g, V: View<'g>, P: Lookup> Reader<'_, 'g, V, P> {
    #[inline(always)]
    pub(crate) fn look_up(&self, key: P::Key<'_>) -> Result<Option<P::Found<'g, V>>, Error> {
        P::look_up(Part(self.root), self.at_hand, key)
    }

    /// The value of `key`, or the element at that index; `None` if there is none.
    pub fn get(&self, key: P::Key<'_>) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Appends the value of `key`, or the element at that index, to `into`, without another allocation if it has room.
    /// Returns whether there is one.
    #[inline]
    pub fn get_into(&self, key: P::Key<'_>, into: &mut Vec<u8>) -> Result<bool, Error> {
        match self.look_up(key)? {
            Some(found) => found.value_into(into).map(|()| true),
            None => Ok(false),
        }
    }
}

impl<'g, V: View<'g>, P: Keyed> Reader<'_, 'g, V, P> {
    /// Whether `key` is there.
    pub fn contains(&self, key: P::Key<'_>) -> Result<bool, Error> {
        Ok(self.look_up(key)?.is_some())
    }
}

impl<'g, V: View<'g>, P: InOrder> Reader<'_, 'g, V, P> {
    /// The least key and its value.
    pub fn first(&self) -> Result<Option<P::OwnedEntry>, Error> {
        P::first(Part(self.root))
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<P::OwnedEntry>, Error> {
        P::last(Part(self.root))
    }
}

/// The items of a collection, one after the other. After an error there are no more.
pub struct Iter<'r, W> {
    pub(crate) walk: W,
    of: PhantomData<&'r ()>,
}

impl<'r, W: Walk> Iter<'r, W> {
    #[inline]
    pub(crate) fn new(walk: W) -> Self {
        let of = PhantomData;
        Self { walk, of }
    }

    #[inline(always)]
    fn handed_out(
        &mut self,
        found: Result<Option<W::Found>, Error>,
    ) -> Option<Result<W::Item<'r>, Error>> {
        match found {
            Ok(Some(found)) => Some(Ok(W::item(found))),
            Ok(None) => {
                self.walk.end();
                None
            }
            Err(error) => {
                self.walk.end();
                Some(Err(error))
            }
        }
    }
}

impl<'r, W: Walk> Iterator for Iter<'r, W> {
    type Item = Result<W::Item<'r>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let found = self.walk.step();
        self.handed_out(found)
    }
}

impl<W: WalkBack> DoubleEndedIterator for Iter<'_, W> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let found = self.walk.step_back();
        self.handed_out(found)
    }
}

impl<W: Walk> FusedIterator for Iter<'_, W> {}

/// A key and its value, while the collection's lock is held.
pub struct Item<'r, S> {
    pub(crate) spot: S,
    of: PhantomData<&'r ()>,
}

impl<S: Spot> Item<'_, S> {
    #[inline]
    pub(crate) fn new(spot: S) -> Self {
        let of = PhantomData;
        Self { spot, of }
    }

    /// The value.
    pub fn value(&self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.value_into(&mut value)?;
        Ok(value)
    }

    /// Appends the value to `into`.
    #[inline]
    pub fn value_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        self.spot.value_into(into)
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> Result<usize, Error> {
        self.spot.value_len()
    }
}

impl<S: NumberedSpot> Item<'_, S> {
    /// The key.
    #[inline]
    pub fn key(&self) -> u64 {
        self.spot.key()
    }

    /// Key and value.
    pub fn to_pair(&self) -> Result<(u64, Vec<u8>), Error> {
        Ok((self.key(), self.value()?))
    }
}
