//! The nodes of a binary tree on media.

use firn_heap::{Bytes, Error, Field, Obj, Ref, Stored, TypeId, View};

use crate::tree::damaged;
use crate::tree::kind::Direction;

/// A key and its place in a tree. The tags of the links are the tree's own.
#[derive(Stored)]
#[firn(name = "firn.tree.node")]
#[repr(C)]
pub struct Node {
    /// The key.
    pub(crate) key: u64,
    /// The subtree of the lesser keys.
    pub(crate) left: Ref<Node>,
    /// The subtree of the greater keys.
    pub(crate) right: Ref<Node>,
    /// The value.
    pub(crate) value: Ref<Bytes>,
}

/// A node.
pub type NodeAt<'g, V> = Obj<'g, Node, V>;

/// One of a node's two subtrees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Lesser keys.
    Left,
    /// Greater keys.
    Right,
}

impl Side {
    /// The side of greater keys or of lesser ones.
    #[inline(always)]
    pub fn of(greater: bool) -> Self {
        if greater { Self::Right } else { Self::Left }
    }

    /// The other one.
    #[inline(always)]
    pub fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// The link.
    #[inline(always)]
    pub fn link(self) -> Field<Node, Ref<Node>> {
        match self {
            Self::Left => Node::LEFT,
            Self::Right => Node::RIGHT,
        }
    }

    /// The side towards which a direction leads.
    pub fn ahead(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Right,
            Direction::Down => Self::Left,
        }
    }
}

/// Bytes of a node's object up to the end of its links.
pub(crate) const NODE_BYTES: u64 = 32;

/// A node's links, in the order of their sides.
pub(crate) const LINKS: [Field<Node, Ref<Node>>; 2] = [Node::LEFT, Node::RIGHT];

/// The node's subtree on one side.
#[inline(always)]
pub(crate) fn child<'g, V: View<'g>>(
    node: NodeAt<'g, V>,
    side: Side,
) -> Result<Option<NodeAt<'g, V>>, Error> {
    match node.follow(side.link()) {
        Some(child) => child.check_type().map(Some),
        None => Ok(None),
    }
}

/// The node's subtree on one side, which exists according to the balance.
pub(crate) fn promised<'g, V: View<'g>>(
    node: NodeAt<'g, V>,
    side: Side,
) -> Result<NodeAt<'g, V>, Error> {
    child(node, side)?.ok_or_else(|| damaged("a missing subtree of a balanced node", node))
}

/// The value's object.
///
/// Errors: there is none, or it is no array of bytes.
#[inline]
pub(crate) fn value<'g, V: View<'g>>(node: NodeAt<'g, V>) -> Result<Obj<'g, Bytes, V>, Error> {
    let value = node.follow(Node::VALUE);
    value
        .filter(|v| v.header().type_id() == TypeId::BYTES)
        .ok_or_else(|| damaged("a key of a tree without its value", node))
}
