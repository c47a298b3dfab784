//! The list's root object and its nodes on media.

use firn_heap::{Bytes, Error, Obj, Ref, Stored, TypeId, View};

/// The root object of a list.
#[derive(Stored)]
#[firn(name = "firn.list")]
#[repr(C)]
pub struct ListRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of elements.
    pub(crate) len: u64,
    /// The first node.
    pub(crate) first: Ref<Node>,
    /// The last node.
    pub(crate) last: Ref<Node>,
}

/// An element with its links.
#[derive(Stored)]
#[firn(name = "firn.list.node")]
#[repr(C)]
pub struct Node {
    /// The node behind this one.
    pub(crate) next: Ref<Node>,
    /// The node before this one.
    pub(crate) previous: Ref<Node>,
    /// The element's key.
    pub(crate) key: u64,
    /// The element's value.
    pub(crate) value: Ref<Bytes>,
}

/// A list's root object.
pub(crate) type Root<'g, V> = Obj<'g, ListRoot, V>;
/// A node.
pub(crate) type NodeAt<'g, V> = Obj<'g, Node, V>;

/// The direction of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Back,
}

/// The first node in this direction.
pub(crate) fn end<'g, V: View<'g>>(
    root: Root<'g, V>,
    direction: Direction,
) -> Result<Option<NodeAt<'g, V>>, Error> {
    let end = match direction {
        Direction::Forward => root.follow(ListRoot::FIRST),
        Direction::Back => root.follow(ListRoot::LAST),
    };
    end.map(Obj::check_type).transpose()
}

/// The next node in this direction.
#[inline]
pub(crate) fn step<'g, V: View<'g>>(
    node: NodeAt<'g, V>,
    direction: Direction,
) -> Result<Option<NodeAt<'g, V>>, Error> {
    let next = match direction {
        Direction::Forward => node.follow(Node::NEXT),
        Direction::Back => node.follow(Node::PREVIOUS),
    };
    next.map(Obj::check_type).transpose()
}

/// The value's object.
///
/// Errors: there is none, or it is no array of bytes.
#[inline]
pub(crate) fn value<'g, V: View<'g>>(node: NodeAt<'g, V>) -> Result<Obj<'g, Bytes, V>, Error> {
    let value = node.follow(Node::VALUE);
    value
        .filter(|v| v.header().type_id() == TypeId::BYTES)
        .ok_or_else(|| damaged("an element of a list without its value", node))
}

pub(crate) fn damaged<'g, T, V: View<'g>>(what: &'static str, object: Obj<'g, T, V>) -> Error {
    Error::Damaged {
        what,
        at: object.address().0,
    }
}
