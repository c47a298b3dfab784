//! The traits through which [`Collection`](crate::Collection) uses its collections; each collection implements those
//! that apply to it.
//!
//! ```text
//! Protocol     all of them                     Walk, WalkBack         going over everything
//! Growing      empty when they are new         Spot, NumberedSpot     places of values
//! Lookup       values by key or by index
//! Keyed        maps; InOrder: ordered ones
//! ```
//! Protocols are closed: only this crate calls their functions.

use firn_heap::{Bytes, Error, Field, Obj, Stored, Tx, View};
use firn_media::Medium;

/// Findings after which a check ends.
pub(crate) const MAX_FINDINGS: usize = 100;

/// What a collection adds to [`Collection`](crate::Collection): its objects on media, and iterating over them. Closed:
/// its functions are called under the collection's lock.
pub trait Protocol: sealed::Sealed + Sized + 'static {
    /// The collection's root object.
    type Root: Stored;
    /// State that a reader looks up once and keeps.
    #[doc(hidden)]
    type AtHand<'g, V: View<'g>>: Copy;
    /// A position for iterating over all elements.
    #[doc(hidden)]
    type Walk<'g, V: View<'g>>: Walk;

    #[doc(hidden)]
    const LOCK: Field<Self::Root, u64>;
    #[doc(hidden)]
    const LEN: Field<Self::Root, u64>;

    #[doc(hidden)]
    fn at_hand<'g, V: View<'g>>(root: Part<'g, Self::Root, V>) -> Self::AtHand<'g, V>;

    #[doc(hidden)]
    fn walk<'g, V: View<'g>>(root: Part<'g, Self::Root, V>) -> Self::Walk<'g, V>;

    /// Checks everything. Ends at the first finding after which the rest cannot be trusted, with an error if it cannot
    /// go on.
    #[doc(hidden)]
    fn check<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error>;
}

/// A collection that is made empty, and can be emptied again.
pub trait Growing: Protocol {
    /// The root of an empty one.
    #[doc(hidden)]
    fn empty<M: Medium>(tx: Tx<'_, M>, lock: u64) -> Self::Root;

    /// Unlinks and frees everything except the root object, and marks that as empty.
    #[doc(hidden)]
    fn clear<'t, M: Medium>(root: Part<'t, Self::Root, Tx<'t, M>>) -> Result<(), Error>;
}

/// A collection in which a key, or an index, names a value.
pub trait Lookup: Protocol {
    /// A key.
    type Key<'k>: Copy;
    /// Where a looked-up value is.
    #[doc(hidden)]
    type Found<'g, V: View<'g>>: Spot;

    /// Where the value of `key` is.
    #[doc(hidden)]
    fn look_up<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
        at_hand: Self::AtHand<'g, V>,
        key: Self::Key<'_>,
    ) -> Result<Option<Self::Found<'g, V>>, Error>;
}

/// A map: a collection whose keys are its own, and are inserted and removed.
pub trait Keyed: Lookup + Growing {
    /// Inserts or replaces; appends the replaced value to `old`. Returns whether it replaced.
    #[doc(hidden)]
    fn insert<'t, M: Medium>(
        root: Part<'t, Self::Root, Tx<'t, M>>,
        key: Self::Key<'_>,
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error>;

    /// Removes; appends the value to `old`. Returns whether the key was there.
    #[doc(hidden)]
    fn remove<'t, M: Medium>(
        root: Part<'t, Self::Root, Tx<'t, M>>,
        key: Self::Key<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error>;

    /// Replaces the value by the result of `change`. Returns whether the key was there.
    #[doc(hidden)]
    fn update<'t, M: Medium>(
        root: Part<'t, Self::Root, Tx<'t, M>>,
        key: Self::Key<'_>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<bool, Error> {
        let mut old = Vec::new();
        let there = match Self::look_up(root, Self::at_hand(root), key)? {
            Some(found) => found.value_into(&mut old).map(|()| true)?,
            None => false,
        };
        match change(there.then_some(&old)) {
            Some(new) if there && new == old => {}
            Some(new) => drop(Self::insert(root, key, &new, None)?),
            None if there => drop(Self::remove(root, key, None)?),
            None => {}
        }
        Ok(there)
    }
}

/// A map whose order is that of its keys.
pub trait InOrder: Keyed {
    /// A key and its value.
    type OwnedEntry;

    /// The least key and its value.
    #[doc(hidden)]
    fn first<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
    ) -> Result<Option<Self::OwnedEntry>, Error>;

    /// The greatest key and its value.
    #[doc(hidden)]
    fn last<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
    ) -> Result<Option<Self::OwnedEntry>, Error>;
}

/// A position for iterating over a collection. It ends, or fails, on any media.
pub trait Walk {
    /// What it yields.
    #[doc(hidden)]
    type Found;
    /// The yielded item, as a reader returns it.
    type Item<'r>;

    /// Moves to the next item; `None` at the end.
    #[doc(hidden)]
    fn step(&mut self) -> Result<Option<Self::Found>, Error>;

    /// Ends the iteration from now on.
    #[doc(hidden)]
    fn end(&mut self);

    #[doc(hidden)]
    fn item<'r>(found: Self::Found) -> Self::Item<'r>;
}

/// A position for iterating from the other end, too.
pub trait WalkBack: Walk {
    /// Moves to the last remaining item; `None` at the end.
    #[doc(hidden)]
    fn step_back(&mut self) -> Result<Option<Self::Found>, Error>;
}

/// Where a value lies.
pub trait Spot: Copy {
    /// Appends the value to `into`.
    #[doc(hidden)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error>;
    /// Bytes of the value.
    #[doc(hidden)]
    fn value_len(self) -> Result<usize, Error>;
}

/// Where a value with a number as its key lies.
pub trait NumberedSpot: Spot {
    /// The key.
    #[doc(hidden)]
    fn key(self) -> u64;
}

/// An object of a collection, closed: no code outside this crate can make one or reach its content. So no other code
/// calls a protocol's functions, which leave the lock to the caller, or keeps a reference to an object that a
/// collection frees (see `reclaim.rs`).
#[doc(hidden)]
pub struct Part<'g, T, V: View<'g>>(pub(crate) Obj<'g, T, V>);

impl<'g, T, V: View<'g>> Clone for Part<'g, T, V> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, T, V: View<'g>> Copy for Part<'g, T, V> {}

impl<'g, V: View<'g>> Spot for Part<'g, Bytes, V> {
    #[inline(always)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        self.0.read_into(into)
    }

    fn value_len(self) -> Result<usize, Error> {
        self.0.checked_len()
    }
}

impl<S: Spot> Spot for (u64, S) {
    #[inline(always)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        self.1.value_into(into)
    }

    fn value_len(self) -> Result<usize, Error> {
        self.1.value_len()
    }
}

impl<S: Spot> NumberedSpot for (u64, S) {
    #[inline]
    fn key(self) -> u64 {
        self.0
    }
}

pub(crate) mod sealed {
    /// Closes [`super::Protocol`].
    pub trait Sealed {}
}
