//! The common parts of the AVL tree and the red-black tree.
//!
//! ```text
//! node       the nodes on media        path     the way down, remembered
//! balance    the parts of each         change   insert, remove, clear
//! cursor     iterating                 check    whether every invariant holds
//! ```
//! A node is one object, its value another. A tree keeps its balance in the tags of the references, so a node costs
//! five words, and all changes of a node are in one line: three nodes of four have key and links in one line.
//!
//! No reference leads up. A change remembers the way down instead, which costs no line.

pub(crate) mod balance;
mod change;
mod check;
mod cursor;
pub(crate) mod node;
pub(crate) mod path;

use firn_heap::{Bytes, Error, Field, Tx, View};
use firn_media::Medium;

use crate::protocol::{Part, sealed::Sealed};
use crate::tree::check::Check;
use crate::tree::kind::{Abreast, Kind};
use balance::Balance;
use node::value;

impl<B: Balance> Sealed for B {}

impl<B: Balance> Kind for B {
    type Root = B::TreeRoot;
    type Spot<'g, V: View<'g>> = Part<'g, Bytes, V>;
    type Cursor<'g, V: View<'g>> = cursor::InOrder<'g, V>;

    const VALUE_LIMIT: u64 = crate::tree::MAX_VALUE_BYTES;
    const LOCK: Field<Self::Root, u64> = B::ROOT_LOCK;
    const LEN: Field<Self::Root, u64> = B::ROOT_LEN;

    fn new_root(lock: u64) -> Self::Root {
        B::empty(lock)
    }

    #[inline]
    fn find<'g, V: View<'g>>(
        Part(root): Part<'g, Self::Root, V>,
        key: u64,
    ) -> Result<Option<Self::Spot<'g, V>>, Error> {
        let found = path::find::<V, B>(root, key)?.map(value).transpose()?;
        Ok(found.map(Part))
    }

    #[inline]
    fn find_abreast<'g, V: View<'g>>(
        Part(root): Part<'g, Self::Root, V>,
        keys: &[u64],
        found: &mut Abreast<Self::Spot<'g, V>>,
    ) -> Result<(), Error> {
        let nodes = path::find_abreast::<V, B>(root, keys)?;
        for (found, node) in found.iter_mut().zip(nodes) {
            *found = node.map(value).transpose()?.map(Part);
        }
        Ok(())
    }

    fn insert<'t, M: Medium>(
        Part(root): Part<'t, Self::Root, Tx<'t, M>>,
        key: u64,
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        change::insert::<M, B>(root, key, value, old)
    }

    fn remove<'t, M: Medium>(
        Part(root): Part<'t, Self::Root, Tx<'t, M>>,
        key: u64,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        change::remove::<M, B>(root, key, old)
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, Self::Root, Tx<'t, M>>) -> Result<(), Error> {
        change::clear::<M, B>(root)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, Self::Root, V>,
        check: &mut Check,
    ) -> Result<(), Error> {
        check::check::<V, B>(root, check)
    }
}
