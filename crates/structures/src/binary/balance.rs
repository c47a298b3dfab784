//! The parts of a balanced binary tree that depend on its kind of balance.

use firn_heap::{Error, Field, Obj, Ref, Stored, Tx, View};
use firn_media::Medium;

use super::node::{Node, NodeAt, Side};
use super::path::Path;
use crate::tree::check::Check;

/// A way to keep a binary tree balanced.
pub trait Balance: Sized + 'static {
    /// The root object of a tree.
    type TreeRoot: Stored;
    /// Id of the lock.
    const ROOT_LOCK: Field<Self::TreeRoot, u64>;
    /// Number of entries.
    const ROOT_LEN: Field<Self::TreeRoot, u64>;
    /// The topmost node.
    const ROOT_TOP: Field<Self::TreeRoot, Ref<Node>>;

    /// The root of an empty tree.
    fn empty(lock: u64) -> Self::TreeRoot;

    /// Links `fresh`, a node without subtrees, at the free end of `path`.
    fn link<'t, M: Medium>(
        path: &Path<'t, Tx<'t, M>, Self>,
        fresh: NodeAt<'t, Tx<'t, M>>,
    ) -> Result<(), Error>;

    /// Links `rest`, or nothing, at the end of `path` in place of a node with no other subtree.
    fn unlink<'t, M: Medium>(
        path: Path<'t, Tx<'t, M>, Self>,
        rest: Option<NodeAt<'t, Tx<'t, M>>>,
    ) -> Result<(), Error>;

    /// The side from which a node with two subtrees takes the neighbour that is unlinked in its place.
    fn neighbour_side<'g, V: View<'g>>(node: NodeAt<'g, V>) -> Side;

    /// Checks a node that was reached by a link with the tag `tag`, and whose subtrees measure `left` and `right`;
    /// returns its own measure.
    fn measure<'g, V: View<'g>>(
        node: NodeAt<'g, V>,
        tag: u8,
        left: u32,
        right: u32,
        check: &mut Check,
    ) -> u32;

    /// The topmost node.
    #[inline]
    fn top<'g, V: View<'g>>(
        root: Obj<'g, Self::TreeRoot, V>,
    ) -> Result<Option<NodeAt<'g, V>>, Error> {
        root.follow(Self::ROOT_TOP).map(Obj::check_type).transpose()
    }
}
