//! An ordered map from numbers to byte strings: an AVL tree.
//!
//! The subtrees of a node differ by at most one level. The tag of the node's left link says which one is higher, so all
//! changes of an operation in a node lie in one line. An insert without a rotation stores one word per level up to the
//! first node whose heights it evens out, besides the new node, its value and the length.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the tree's lock, a writer has it alone until its transaction ends.
//! Source: Adelson-Velsky and Landis, 1962; Knuth, The Art of Computer Programming 3, 6.2.3.

mod rotate;

use firn_heap::{Error, Field, Ref, Stored, Tx, View};
use firn_media::Medium;

use crate::binary::balance::Balance;
use crate::binary::node::{Node, NodeAt, Side};
use crate::binary::path::{Path, Step};
use crate::tree::Tree;
use crate::tree::check::Check;
use rotate::{higher, replace, rotate, set_higher};

/// An ordered map from numbers to byte strings. A value has up to [`crate::tree::MAX_VALUE_BYTES`].
///
/// Cost: an insert or removal dirties the lines of a few nodes, mostly at the lowest levels, besides those of the entry
/// and the length, and has one fence: the transaction's. The tree has at most half as many levels again as a perfectly
/// balanced one.
pub type AvlTree<'g, V> = Tree<'g, V, Avl>;

/// The kind of [`AvlTree`].
pub enum Avl {}

/// The root object of an [`AvlTree`].
#[derive(Stored)]
#[firn(name = "firn.avl")]
#[repr(C)]
pub struct AvlRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of entries.
    pub(crate) len: u64,
    /// The topmost node.
    pub(crate) top: Ref<Node>,
}

impl Balance for Avl {
    type TreeRoot = AvlRoot;
    const ROOT_LOCK: Field<AvlRoot, u64> = AvlRoot::LOCK;
    const ROOT_LEN: Field<AvlRoot, u64> = AvlRoot::LEN;
    const ROOT_TOP: Field<AvlRoot, Ref<Node>> = AvlRoot::TOP;

    fn empty(lock: u64) -> AvlRoot {
        AvlRoot {
            lock,
            len: 0,
            top: Ref::NULL,
        }
    }

    fn link<'t, M: Medium>(
        path: &Path<'t, Tx<'t, M>, Self>,
        fresh: NodeAt<'t, Tx<'t, M>>,
    ) -> Result<(), Error> {
        replace(path, path.depth(), Some(fresh));
        for (depth, &Step { node, side }) in path.steps.iter().enumerate().rev() {
            match higher(node)? {
                None => set_higher(node, Some(side)),
                Some(high) if high != side => {
                    set_higher(node, None);
                    return Ok(());
                }
                Some(_) => return rotate(path, depth, side).map(|_| ()),
            }
        }
        Ok(())
    }

    fn unlink<'t, M: Medium>(
        path: Path<'t, Tx<'t, M>, Self>,
        rest: Option<NodeAt<'t, Tx<'t, M>>>,
    ) -> Result<(), Error> {
        replace(&path, path.depth(), rest);
        for (depth, &Step { node, side }) in path.steps.iter().enumerate().rev() {
            match higher(node)? {
                None => {
                    set_higher(node, Some(side.other()));
                    return Ok(());
                }
                Some(high) if high == side => set_higher(node, None),
                Some(high) => {
                    if !rotate(&path, depth, high)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn neighbour_side<'g, V: View<'g>>(node: NodeAt<'g, V>) -> Side {
        // From the higher subtree, which then needs less rebalancing.
        match higher(node) {
            Ok(Some(high)) => high,
            _ => Side::Right,
        }
    }

    fn measure<'g, V: View<'g>>(
        node: NodeAt<'g, V>,
        _tag: u8,
        left: u32,
        right: u32,
        check: &mut Check,
    ) -> u32 {
        let at = node.address().0;
        let expected = match left.cmp(&right) {
            core::cmp::Ordering::Less => Some(Side::Right),
            core::cmp::Ordering::Equal => None,
            core::cmp::Ordering::Greater => Some(Side::Left),
        };
        if left.abs_diff(right) > 1 {
            check.note(format!(
                "the subtrees of the node at {at:#x} have {left} and {right} levels"
            ));
        }
        if !matches!(higher(node), Ok(found) if found == expected) || node.tag(Node::RIGHT) != 0 {
            check.note(format!(
                "the node at {at:#x} says another balance than {left} and {right} levels"
            ));
        }
        left.max(right) + 1
    }
}
