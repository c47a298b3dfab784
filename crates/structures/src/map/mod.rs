//! An ordered map from byte strings to byte strings: a B+tree whose changes touch few lines.
//!
//! ```text
//! order    a node's permutation word     insert, remove     changes
//! key      words, separators             rebuild, merge     changes of whole nodes
//! entry    a key and its value           range, scan        iterating
//! node     the nodes on media            check              whether every invariant holds
//! search, path, fence    the way down, and the bounds of a node's keys
//! ```
//!
//! A node keeps eight bytes of each key, taken behind the common prefix of its keys, so a search compares numbers and
//! looks at one entry. An insert that splits nothing stores one such word, one reference, the order word and the
//! length, besides the new entry.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the map's lock, a writer has it alone until its transaction ends.
//! Source: B+trees with the permutation word of Masstree (Mao, Kohler, Morris, EuroSys 2012) and the
//! truncated separators of prefix B-trees (Bayer, Unterauer, TODS 1977).

mod check;
pub(crate) mod entry;
mod fence;
mod insert;
mod key;
mod merge;
mod node;
pub(crate) mod order;
mod path;
mod range;
mod rebuild;
mod remove;
mod scan;
mod search;

use core::ops::{Bound, RangeBounds};

use firn_heap::{Error, Field, Raw, Ref, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::protocol::{Growing, InOrder, Keyed, Lookup, Part, Protocol, sealed::Sealed};
use crate::reader::{Iter, Reader};
use range::{Bounds, behind_prefix};

pub use check::Shape;
pub use node::{MapRoot, Node};
pub use range::Range;
pub use scan::{Copied, Scan};

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 16 << 10;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: u64 = 1 << 30;

/// A key and its value.
pub type OwnedEntry = (Vec<u8>, Vec<u8>);

/// An ordered map from byte strings to byte strings.
///
/// A key has up to [`MAX_KEY_BYTES`], a value up to [`MAX_VALUE_BYTES`]; both may be empty. Every
/// function takes time logarithmic in the number of entries unless it says otherwise.
pub type Map<'g, V> = Collection<'g, V, Ordered>;

/// A key of a [`Map`] and its value, while the map's lock is held.
pub type Item<'r, 'g, V> = crate::Item<'r, Part<'g, Raw, V>>;

/// The protocol of [`Map`].
pub enum Ordered {}

impl Sealed for Ordered {}

impl Protocol for Ordered {
    type Root = MapRoot;
    type AtHand<'g, V: View<'g>> = ();
    type Walk<'g, V: View<'g>> = Range<'g, V>;

    const LOCK: Field<MapRoot, u64> = MapRoot::LOCK;
    const LEN: Field<MapRoot, u64> = MapRoot::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(_root: Part<'g, MapRoot, V>) {}

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, MapRoot, V>) -> Range<'g, V> {
        Range::new(root, Bounds::ALL)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, MapRoot, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        check::check(root, findings)
    }
}

impl Growing for Ordered {
    fn empty<M: Medium>(_tx: Tx<'_, M>, lock: u64) -> MapRoot {
        MapRoot {
            lock,
            len: 0,
            height: 0,
            top: Ref::NULL,
        }
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, MapRoot, Tx<'t, M>>) -> Result<(), Error> {
        remove::clear(root)
    }
}

impl Lookup for Ordered {
    type Key<'k> = &'k [u8];
    type Found<'g, V: View<'g>> = Part<'g, Raw, V>;

    #[inline]
    fn look_up<'g, V: View<'g>>(
        Part(root): Part<'g, MapRoot, V>,
        _at_hand: (),
        key: &[u8],
    ) -> Result<Option<Part<'g, Raw, V>>, Error> {
        Ok(search::entry(root, key)?.map(Part))
    }
}

impl Keyed for Ordered {
    fn insert<'t, M: Medium>(
        Part(root): Part<'t, MapRoot, Tx<'t, M>>,
        key: &[u8],
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        insert::insert(root, key, value, old)
    }

    fn remove<'t, M: Medium>(
        Part(root): Part<'t, MapRoot, Tx<'t, M>>,
        key: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        remove::remove(root, key, old)
    }
}

impl InOrder for Ordered {
    type OwnedEntry = OwnedEntry;

    fn first<'g, V: View<'g>>(
        Part(root): Part<'g, MapRoot, V>,
    ) -> Result<Option<OwnedEntry>, Error> {
        let first = Range::new(root, Bounds::ALL).go(true)?;
        first.map(entry::pair).transpose()
    }

    fn last<'g, V: View<'g>>(
        Part(root): Part<'g, MapRoot, V>,
    ) -> Result<Option<OwnedEntry>, Error> {
        let last = Range::new(root, Bounds::ALL).go(false)?;
        last.map(entry::pair).transpose()
    }
}

impl<'g, V: View<'g>> Map<'g, V> {
    /// How many nodes the map has and how full they are. Takes time linear in the number of entries.
    pub fn shape(&self) -> Result<Shape, Error> {
        let reader = self.read()?;
        Ok(check::shape(reader.root))
    }
}

impl<'g, V: View<'g>> Reader<'_, 'g, V, Ordered> {
    /// The entries whose keys lie within `bounds`, in order; none if these are reversed.
    pub fn range<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<K>) -> Iter<'_, Range<'g, V>> {
        self.range_of(Bounds {
            start: bounds.start_bound().map(AsRef::as_ref),
            end: bounds.end_bound().map(AsRef::as_ref),
        })
    }

    /// The entries within these bounds.
    pub(crate) fn range_of(&self, bounds: Bounds<'_>) -> Iter<'_, Range<'g, V>> {
        Iter::new(Range::new(self.root, bounds))
    }

    /// The entries whose keys begin with `prefix`, in order.
    pub fn prefix(&self, prefix: &[u8]) -> Iter<'_, Range<'g, V>> {
        let behind = behind_prefix(prefix);
        self.range_of(Bounds {
            start: Bound::Included(prefix),
            end: behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        })
    }
}
