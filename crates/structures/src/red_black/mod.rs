//! An ordered map from numbers to byte strings: a red-black tree.
//!
//! A link is red or black, according to its tag; the colour also applies to the node to which it leads. No red link
//! follows another, and every path down has equally many black links. Because the colours are in the links, a change
//! that only recolours stores words of a node and of its parent, and reads neither the children nor their lines.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the tree's lock, a writer has it alone until its transaction ends.
//! Source: Guibas and Sedgewick, A dichromatic framework for balanced trees, FOCS 1978; Cormen et
//! al., Introduction to Algorithms, chapter 13.

mod mend;

use firn_heap::{Error, Field, Ref, Stored, Tx, View};
use firn_media::Medium;

use crate::binary::balance::Balance;
use crate::binary::node::{Node, NodeAt, Side};
use crate::binary::path::Path;
use crate::tree::Tree;
use crate::tree::check::Check;
use mend::{BLACK, RED};

/// An ordered map from numbers to byte strings. A value has up to [`crate::tree::MAX_VALUE_BYTES`].
///
/// Cost: an insert or removal dirties the lines of a few nodes, mostly at the lowest levels, besides those of the entry
/// and the length, and has one fence: the transaction's. The tree has at most twice as many levels as a perfectly
/// balanced one.
pub type RedBlackTree<'g, V> = Tree<'g, V, RedBlack>;

/// The kind of [`RedBlackTree`].
pub enum RedBlack {}

/// The root object of a [`RedBlackTree`].
#[derive(Stored)]
#[firn(name = "firn.red_black")]
#[repr(C)]
pub struct RedBlackRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of entries.
    pub(crate) len: u64,
    /// The topmost node.
    pub(crate) top: Ref<Node>,
}

impl Balance for RedBlack {
    type TreeRoot = RedBlackRoot;
    const ROOT_LOCK: Field<RedBlackRoot, u64> = RedBlackRoot::LOCK;
    const ROOT_LEN: Field<RedBlackRoot, u64> = RedBlackRoot::LEN;
    const ROOT_TOP: Field<RedBlackRoot, Ref<Node>> = RedBlackRoot::TOP;

    fn empty(lock: u64) -> RedBlackRoot {
        RedBlackRoot {
            lock,
            len: 0,
            top: Ref::NULL,
        }
    }

    fn link<'t, M: Medium>(
        path: &Path<'t, Tx<'t, M>, Self>,
        fresh: NodeAt<'t, Tx<'t, M>>,
    ) -> Result<(), Error> {
        let depth = path.depth();
        path.relink(depth, Some(fresh), if depth == 0 { BLACK } else { RED });
        mend::two_reds(path, depth)
    }

    fn unlink<'t, M: Medium>(
        path: Path<'t, Tx<'t, M>, Self>,
        rest: Option<NodeAt<'t, Tx<'t, M>>>,
    ) -> Result<(), Error> {
        let depth = path.depth();
        let was = path.tag(depth);
        path.relink(depth, rest, BLACK);
        // The only subtree of a node was red; turned black, it makes up for the node.
        if rest.is_some() || was == RED {
            return Ok(());
        }
        mend::missing_black(path, depth)
    }

    fn neighbour_side<'g, V: View<'g>>(node: NodeAt<'g, V>) -> Side {
        // A red subtree's neighbour is no deeper than the other one's.
        match node.tag(Node::LEFT) {
            RED => Side::Left,
            _ => Side::Right,
        }
    }

    fn measure<'g, V: View<'g>>(
        node: NodeAt<'g, V>,
        tag: u8,
        left: u32,
        right: u32,
        check: &mut Check,
    ) -> u32 {
        let at = node.address().0;
        if left != right {
            check.note(format!(
                "below the node at {at:#x} lie {left} black links on the left, {right} on the right"
            ));
        }
        for side in [Side::Left, Side::Right] {
            let below = node.tag(side.link());
            if below > RED || below == RED && node.follow(side.link()).is_none() {
                check.note(format!("a link of the node at {at:#x} has no colour"));
            }
            if below == RED && tag == RED {
                check.note(format!(
                    "the node at {at:#x} is red, and so is one below it"
                ));
            }
        }
        left + u32::from(tag == BLACK)
    }
}
