//! The interface of a kind of tree to [`super::Tree`].

use firn_heap::{Error, Field, Stored, Tx, View};
use firn_media::Medium;

use super::check::Check;
use crate::protocol::{Part, Spot, sealed::Sealed};

/// Searches that run side by side: as many as the cache misses that a processor handles at once.
pub(crate) const ABREAST: usize = 16;

/// One result for each of these searches.
#[doc(hidden)]
pub type Abreast<T> = [Option<T>; ABREAST];

/// A kind of tree: [`crate::avl::Avl`], [`crate::red_black::RedBlack`] or [`crate::inline_tree::Inline`]. Closed: only
/// this crate calls its functions.
///
/// Functions that change a tree leave its length alone, and are called under its write lock; the others under its read
/// lock.
pub trait Kind: Sealed + Sized + 'static {
    /// The tree's root object.
    type Root: Stored;
    #[doc(hidden)]
    type Spot<'g, V: View<'g>>: Spot;
    #[doc(hidden)]
    type Cursor<'g, V: View<'g>>: Cursor<'g, V, Self>;

    /// Longest value, in bytes.
    const VALUE_LIMIT: u64;
    #[doc(hidden)]
    const LOCK: Field<Self::Root, u64>;
    #[doc(hidden)]
    const LEN: Field<Self::Root, u64>;

    #[doc(hidden)]
    fn new_root(lock: u64) -> Self::Root;

    /// Where the entry of `key` is.
    #[doc(hidden)]
    fn find<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
        key: u64,
    ) -> Result<Option<Self::Spot<'g, V>>, Error>;

    /// Where the entries of some keys are, at most [`ABREAST`], each in the position of its key. Prefetches the bytes
    /// that are read next.
    #[doc(hidden)]
    fn find_abreast<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
        keys: &[u64],
        found: &mut Abreast<Self::Spot<'g, V>>,
    ) -> Result<(), Error>;

    /// Inserts or replaces; appends the replaced value to `old`. Returns whether it replaced. The length of `value` is
    /// within the limit.
    #[doc(hidden)]
    fn insert<'t, M: Medium>(
        root: Part<'t, Self::Root, Tx<'t, M>>,
        key: u64,
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error>;

    /// Removes; appends the value to `old`. Returns whether the key was there.
    #[doc(hidden)]
    fn remove<'t, M: Medium>(
        root: Part<'t, Self::Root, Tx<'t, M>>,
        key: u64,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error>;

    /// Unlinks and frees everything except the root object.
    #[doc(hidden)]
    fn clear<'t, M: Medium>(root: Part<'t, Self::Root, Tx<'t, M>>) -> Result<(), Error>;

    /// Checks everything except the length.
    #[doc(hidden)]
    fn check<'g, V: View<'g>>(
        root: Part<'g, Self::Root, V>,
        check: &mut Check,
    ) -> Result<(), Error>;
}

/// The direction of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To greater keys.
    Up,
    /// To lesser keys.
    Down,
}

/// A key, and where its entry is.
pub type Found<'g, V, K> = (u64, <K as Kind>::Spot<'g, V>);

/// A position between two entries that moves in one direction. It ends, or fails, on any media whose keys are in order;
/// the caller checks the order.
pub trait Cursor<'g, V: View<'g>, K: Kind>: Sized {
    /// Before the first entry, in this direction, whose key is at or beyond `key`.
    fn seek(root: Part<'g, K::Root, V>, direction: Direction, key: u64) -> Result<Self, Error>;

    /// Steps over an entry; `None` at the end.
    fn step(&mut self) -> Result<Option<Found<'g, V, K>>, Error>;
}
