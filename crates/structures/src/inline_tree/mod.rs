//! An ordered map from numbers to short byte strings: a B+tree whose leaves hold the values.
//!
//! ```text
//! leaf      entries, in place       insert, remove    changes
//! branch    separators              cursor            iterating
//! path      the way down            check             whether every invariant holds
//! ```
//! A leaf has room for [`LEAF_SLOTS`] entries of up to [`MAX_VALUE_BYTES`] each, unsorted: an insert into a free slot
//! dirties the line of the keys and those of the value. Branches are like the map's: a permutation word gives the order
//! of their slots.
//!
//! No leaf is empty, and no branch; beyond that nodes may be sparse. A leaf with one entry left, and a branch with few
//! children, are merged into a neighbour that has room.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the tree's lock, a writer has it alone until its transaction ends.
//! Source: the B+tree that FFCCD (Xu, Ye, Solihin, Shen, ISCA 2022) measures; permutation words of
//! Masstree (Mao, Kohler, Morris, EuroSys 2012).

mod branch;
mod check;
mod cursor;
mod insert;
mod leaf;
mod path;
mod remove;

use firn_heap::{Error, Field, Ref, Stored, Tx, View};
use firn_media::Medium;

use crate::protocol::{Part, sealed::Sealed};
use crate::tree::Tree;
use crate::tree::check::Check;
use crate::tree::kind::{Abreast, Kind};
use leaf::Spot;
use path::Landing;

pub use branch::Branch;
pub use leaf::{LEAF_SLOTS, Leaf};

/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 128;

/// An ordered map from numbers to byte strings of up to [`MAX_VALUE_BYTES`].
///
/// Cost: an insert that splits nothing dirties the line of a leaf's keys, those of the value and that of the length; a
/// removal that merges nothing dirties the first and the last of these. A leaf that splits keeps most of its entries in
/// place. Each has one fence: the transaction's.
pub type InlineTree<'g, V> = Tree<'g, V, Inline>;

/// The kind of [`InlineTree`].
pub enum Inline {}

/// The root object of an [`InlineTree`].
#[derive(Stored)]
#[firn(name = "firn.inline_tree")]
#[repr(C)]
pub struct InlineRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of entries.
    pub(crate) len: u64,
    /// Levels of branches; zero for an empty tree.
    pub(crate) height: u64,
    /// The topmost branch.
    pub(crate) top: Ref<Branch>,
}

impl Sealed for Inline {}

impl Kind for Inline {
    type Root = InlineRoot;
    type Spot<'g, V: View<'g>> = Spot<'g, V>;
    type Cursor<'g, V: View<'g>> = cursor::InOrder<'g, V>;

    const VALUE_LIMIT: u64 = MAX_VALUE_BYTES as u64;
    const LOCK: Field<InlineRoot, u64> = InlineRoot::LOCK;
    const LEN: Field<InlineRoot, u64> = InlineRoot::LEN;

    fn new_root(lock: u64) -> InlineRoot {
        InlineRoot {
            lock,
            len: 0,
            height: 0,
            top: Ref::NULL,
        }
    }

    #[inline]
    fn find<'g, V: View<'g>>(
        Part(root): Part<'g, InlineRoot, V>,
        key: u64,
    ) -> Result<Option<Spot<'g, V>>, Error> {
        let Some(Landing { leaf, .. }) = path::land(root, key)? else {
            return Ok(None);
        };
        Ok(leaf.find(key).map(|slot| Spot { leaf, slot }))
    }

    fn find_abreast<'g, V: View<'g>>(
        Part(root): Part<'g, InlineRoot, V>,
        keys: &[u64],
        found: &mut Abreast<Spot<'g, V>>,
    ) -> Result<(), Error> {
        let leaves = path::leaves(root, keys)?;
        for ((found, leaf), &key) in found.iter_mut().zip(leaves).zip(keys) {
            let Some(leaf) = leaf else { continue };
            *found = leaf.find(key).map(|slot| Spot { leaf, slot });
            if let Some(spot) = found {
                spot.leaf.expect_value(spot.slot);
            }
        }
        Ok(())
    }

    fn insert<'t, M: Medium>(
        Part(root): Part<'t, InlineRoot, Tx<'t, M>>,
        key: u64,
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        insert::insert(root, key, value, old)
    }

    fn remove<'t, M: Medium>(
        Part(root): Part<'t, InlineRoot, Tx<'t, M>>,
        key: u64,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        remove::remove(root, key, old)
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, InlineRoot, Tx<'t, M>>) -> Result<(), Error> {
        remove::clear(root)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, InlineRoot, V>,
        check: &mut Check,
    ) -> Result<(), Error> {
        check::check(root, check)
    }
}
