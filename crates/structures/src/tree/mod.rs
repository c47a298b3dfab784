//! Ordered maps from numbers to byte strings: the common functions of this crate's trees.
//!
//! ```text
//! kind     the interface of a kind of tree       check    the defects, in sentences
//! range    iterating from either end
//! ```
//! [`Tree`] is a [`Collection`] with a [`Kind`] of tree behind it: [`crate::AvlTree`],
//! [`crate::RedBlackTree`] and [`crate::InlineTree`] are this type with one kind each.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the tree's lock, a writer has it alone until its transaction ends.

pub(crate) mod check;
pub(crate) mod kind;
mod range;

use core::ops::RangeBounds;

use firn_heap::{Error, Field, Obj, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::protocol::{Growing, InOrder, Keyed, Lookup, Part, Protocol, Spot};
use crate::reader::{Iter, Reader};
use kind::{ABREAST, Direction, Found};

pub use kind::Kind;
pub use range::Range;

/// Longest value, in bytes, of a tree that keeps each value in an object of its own.
pub const MAX_VALUE_BYTES: u64 = crate::map::MAX_VALUE_BYTES;

/// A key and its value.
pub type OwnedEntry = (u64, Vec<u8>);

/// An ordered map from numbers to byte strings.
///
/// Every function takes time logarithmic in the number of entries unless it says otherwise.
pub type Tree<'g, V, K> = Collection<'g, V, K>;

/// A key of a [`Tree`] and its value, while the tree's lock is held.
pub type Item<'r, 'g, V, K> = crate::Item<'r, Found<'g, V, K>>;

impl<K: Kind> Protocol for K {
    type Root = <K as Kind>::Root;
    type AtHand<'g, V: View<'g>> = ();
    type Walk<'g, V: View<'g>> = Range<'g, V, K>;

    const LOCK: Field<<K as Kind>::Root, u64> = <K as Kind>::LOCK;
    const LEN: Field<<K as Kind>::Root, u64> = <K as Kind>::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(_root: Part<'g, <K as Kind>::Root, V>) {}

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, <K as Kind>::Root, V>) -> Range<'g, V, K> {
        Range::new(root, &..)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, <K as Kind>::Root, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        check::check::<V, K>(root, findings)
    }
}

impl<K: Kind> Growing for K {
    fn empty<M: Medium>(_tx: Tx<'_, M>, lock: u64) -> <K as Kind>::Root {
        K::new_root(lock)
    }

    fn clear<'t, M: Medium>(
        Part(root): Part<'t, <K as Kind>::Root, Tx<'t, M>>,
    ) -> Result<(), Error> {
        <K as Kind>::clear(Part(root))?;
        root.store(<K as Kind>::LEN, 0);
        Ok(())
    }
}

impl<K: Kind> Lookup for K {
    type Key<'k> = u64;
    type Found<'g, V: View<'g>> = K::Spot<'g, V>;

    #[inline(always)]
    fn look_up<'g, V: View<'g>>(
        Part(root): Part<'g, <K as Kind>::Root, V>,
        _at_hand: (),
        key: u64,
    ) -> Result<Option<K::Spot<'g, V>>, Error> {
        K::find(Part(root), key)
    }
}

impl<K: Kind> Keyed for K {
    fn insert<'t, M: Medium>(
        Part(root): Part<'t, <K as Kind>::Root, Tx<'t, M>>,
        key: u64,
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        if value.len() as u64 > K::VALUE_LIMIT {
            return Err(Error::ObjectTooLarge {
                bytes: value.len() as u64,
                limit: K::VALUE_LIMIT,
            });
        }
        let replaced = <K as Kind>::insert(Part(root), key, value, old)?;
        if !replaced {
            count::<M, K>(root, u64::wrapping_add);
        }
        Ok(replaced)
    }

    fn remove<'t, M: Medium>(
        Part(root): Part<'t, <K as Kind>::Root, Tx<'t, M>>,
        key: u64,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        let there = <K as Kind>::remove(Part(root), key, old)?;
        if there {
            count::<M, K>(root, u64::wrapping_sub);
        }
        Ok(there)
    }
}

impl<K: Kind> InOrder for K {
    type OwnedEntry = OwnedEntry;

    fn first<'g, V: View<'g>>(
        Part(root): Part<'g, <K as Kind>::Root, V>,
    ) -> Result<Option<OwnedEntry>, Error> {
        end::<V, K>(root, Direction::Up)
    }

    fn last<'g, V: View<'g>>(
        Part(root): Part<'g, <K as Kind>::Root, V>,
    ) -> Result<Option<OwnedEntry>, Error> {
        end::<V, K>(root, Direction::Down)
    }
}

impl<'g, V: View<'g>, K: Kind> Reader<'_, 'g, V, K> {
    /// The entries whose keys lie within `bounds`, in order; none if these are reversed.
    pub fn range(&self, bounds: impl RangeBounds<u64>) -> Iter<'_, Range<'g, V, K>> {
        Iter::new(Range::new(self.root, &bounds))
    }

    /// Passes the value of each of the keys to `each`, in their order, with the key's position in `keys`; `None` for a
    /// key that is not there.
    ///
    /// Searches for some of the keys side by side: while one search waits for memory another goes on. That takes a
    /// fraction of the time of as many calls of [`Reader::get_into`] where the tree is larger than the processor's
    /// caches.
    ///
    /// Errors: the tree is damaged; some or all values before the failing key were passed on.
    pub fn get_each(
        &self,
        keys: &[u64],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let (mut value, mut place) = (Vec::new(), 0);
        for keys in keys.chunks(ABREAST) {
            let mut found = [None; ABREAST];
            K::find_abreast(Part(self.root), keys, &mut found)?;
            for spot in &found[..keys.len()] {
                value.clear();
                if let Some(spot) = spot {
                    spot.value_into(&mut value)?;
                }
                each(place, spot.is_some().then_some(&value));
                place += 1;
            }
        }
        Ok(())
    }
}

/// The first entry in this direction.
fn end<'g, V: View<'g>, K: Kind>(
    root: Obj<'g, <K as Kind>::Root, V>,
    direction: Direction,
) -> Result<Option<OwnedEntry>, Error> {
    let Some((key, spot)) = Range::<V, K>::new(root, &..).go(direction)? else {
        return Ok(None);
    };
    let mut value = Vec::new();
    spot.value_into(&mut value)?;
    Ok(Some((key, value)))
}

fn count<'t, M: Medium, K: Kind>(
    root: Obj<'t, <K as Kind>::Root, Tx<'t, M>>,
    change: impl Fn(u64, u64) -> u64,
) {
    let len = <K as Kind>::LEN;
    root.store(len, change(root.load(len), 1));
}

pub(crate) fn damaged<'g, T, V: View<'g>>(what: &'static str, object: Obj<'g, T, V>) -> Error {
    Error::Damaged {
        what,
        at: object.address().0,
    }
}
