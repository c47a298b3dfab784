//! An unordered map from byte strings to byte strings: a hash table that grows without pauses.
//!
//! ```text
//! bucket   nodes on media, chains          change   inserting and removing
//! hash     hashes, and which bucket        resize   one bucket more, one bucket less
//! read     reading                         check    whether every invariant holds
//! ```
//!
//! Linear hashing: the number of buckets follows the number of entries, one bucket at a time, so an insert rehashes at
//! most one bucket, and a removal joins at most two. The whole map never moves at once, and the work of operations
//! differs only by a constant. A bucket keeps 32 bits of each key's hash: these divide it without a look at its keys,
//! and let a search look at hardly any entry but the one it seeks.
//!
//! A key and its value are one object. An insert stores them, one place of a bucket, and the number of entries. The
//! collector can move everything except the root object, and no object of the map's own is larger than 2 KiB.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the map's lock, a writer has it alone until its transaction ends.
//! Source: Litwin, "Linear Hashing" (VLDB 1980), over a directory as in Larson, "Dynamic Hash Tables"
//! (CACM 1988); the hash is XXH3 with a seed of the map's own.

mod bucket;
mod change;
mod check;
#[allow(clippy::module_inception, reason = "the field's own word")]
mod hash;
mod read;
mod resize;

use firn_heap::{Error, Field, Ref, Refs, Stored, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::protocol::{Growing, Keyed, Lookup, Part, Protocol, sealed::Sealed};
use crate::reader::{Iter, Reader};
use read::Found;

pub use crate::map::{Item, MAX_KEY_BYTES, MAX_VALUE_BYTES, OwnedEntry};
pub use bucket::Bucket;
pub use check::Shape;
pub use read::{Buckets, Position};

/// The root object of a hash map.
#[derive(Stored)]
#[firn(name = "firn.hash")]
#[repr(C)]
pub struct HashRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of entries.
    pub(crate) len: u64,
    /// Seed of the hash.
    pub(crate) seed: u64,
    /// Number of buckets; zero before the first insert.
    pub(crate) buckets: u64,
    /// Levels of the directory.
    pub(crate) height: u64,
    /// The directory: a table of the buckets.
    pub(crate) directory: Ref<Refs<Bucket>>,
}

/// An unordered map from byte strings to byte strings.
///
/// A key has up to [`MAX_KEY_BYTES`], a value up to [`MAX_VALUE_BYTES`]; both may be empty. Every function takes
/// constant time unless it says otherwise. That is the expected time over the seed, which is random for each map, so
/// that no choice of keys makes all of them collide.
pub type HashMap<'g, V> = Collection<'g, V, Hashed>;

/// The protocol of [`HashMap`].
pub enum Hashed {}

impl Sealed for Hashed {}

impl Protocol for Hashed {
    type Root = HashRoot;
    type AtHand<'g, V: View<'g>> = ();
    type Walk<'g, V: View<'g>> = Buckets<'g, V>;

    const LOCK: Field<HashRoot, u64> = HashRoot::LOCK;
    const LEN: Field<HashRoot, u64> = HashRoot::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(_root: Part<'g, HashRoot, V>) {}

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, HashRoot, V>) -> Buckets<'g, V> {
        Buckets::new(root, Position::START)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, HashRoot, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        check::walk(root, findings, &mut Shape::default())
    }
}

impl Growing for Hashed {
    fn empty<M: Medium>(tx: Tx<'_, M>, lock: u64) -> HashRoot {
        HashRoot {
            lock,
            len: 0,
            seed: tx.medium().random_u64(),
            buckets: 0,
            height: 0,
            directory: Ref::NULL,
        }
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, HashRoot, Tx<'t, M>>) -> Result<(), Error> {
        change::clear(root)
    }
}

impl Lookup for Hashed {
    type Key<'k> = &'k [u8];
    type Found<'g, V: View<'g>> = Found<'g, V>;

    #[inline(always)]
    fn look_up<'g, V: View<'g>>(
        Part(root): Part<'g, HashRoot, V>,
        _at_hand: (),
        key: &[u8],
    ) -> Result<Option<Found<'g, V>>, Error> {
        read::find(root, key)
    }
}

impl Keyed for Hashed {
    #[inline]
    fn insert<'t, M: Medium>(
        Part(root): Part<'t, HashRoot, Tx<'t, M>>,
        key: &[u8],
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        change::insert(root, key, value, old)
    }

    #[inline]
    fn remove<'t, M: Medium>(
        Part(root): Part<'t, HashRoot, Tx<'t, M>>,
        key: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        change::remove(root, key, old)
    }

    /// Searches once for all that follows.
    fn update<'t, M: Medium>(
        Part(root): Part<'t, HashRoot, Tx<'t, M>>,
        key: &[u8],
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<bool, Error> {
        change::update(root, key, change)
    }
}

impl<'g, V: View<'g>> HashMap<'g, V> {
    /// How many buckets the map has and how full they are. Takes time linear in the number of entries.
    pub fn shape(&self) -> Result<Shape, Error> {
        let reader = self.read()?;
        Ok(check::shape(reader.root))
    }
}

impl<'g, V: View<'g>> Reader<'_, 'g, V, Hashed> {
    /// The position from which [`Reader::iter_from`] first yields `key`; `None` if it is not there.
    pub fn position_of(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        Ok(self.look_up(key)?.map(|found| found.at))
    }

    /// The entries from a position on, which [`Iter::position`] of this or an earlier reader returned. While the map
    /// does not change each entry comes once; a change in between may hide some or show some twice.
    pub fn iter_from(&self, position: Position) -> Iter<'_, Buckets<'g, V>> {
        Iter::new(Buckets::new(self.root, position))
    }
}

impl<'g, V: View<'g>> Iter<'_, Buckets<'g, V>> {
    /// The position of the iteration.
    pub fn position(&self) -> Position {
        self.walk.position()
    }
}
