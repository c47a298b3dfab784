//! Iterating in order, in either direction.

use firn_heap::{Bytes, Error, View};

use super::balance::Balance;
use super::node::{Node, NodeAt, Side, child, value};
use super::path::MAX_DEPTH;
use crate::protocol::Part;
use crate::tree::damaged;
use crate::tree::kind::{Cursor, Direction};

/// Nodes to come, each before its subtree ahead; the next one is the last.
pub struct InOrder<'g, V: View<'g>> {
    ahead: Side,
    pending: Vec<NodeAt<'g, V>>,
}

impl<'g, V: View<'g>> InOrder<'g, V> {
    /// Pushes a node, unless the tree is deeper than any sound one.
    fn push(&mut self, node: NodeAt<'g, V>) -> Result<(), Error> {
        if self.pending.len() >= MAX_DEPTH {
            return Err(damaged("a tree without balance", node));
        }
        self.pending.push(node);
        Ok(())
    }
}

impl<'g, V: View<'g>, B: Balance> Cursor<'g, V, B> for InOrder<'g, V> {
    fn seek(
        Part(root): Part<'g, B::TreeRoot, V>,
        direction: Direction,
        key: u64,
    ) -> Result<Self, Error> {
        let mut cursor = Self {
            ahead: Side::ahead(direction),
            pending: Vec::new(),
        };
        let mut next = B::top(root)?;
        for _ in 0..=MAX_DEPTH {
            let Some(node) = next else { return Ok(cursor) };
            let here = node.load(Node::KEY);
            let reached = match direction {
                Direction::Up => here >= key,
                Direction::Down => here <= key,
            };
            if reached {
                cursor.push(node)?;
                next = child(node, cursor.ahead.other())?;
            } else {
                next = child(node, cursor.ahead)?;
            }
        }
        Err(damaged("a tree without balance", root))
    }

    fn step(&mut self) -> Result<Option<(u64, Part<'g, Bytes, V>)>, Error> {
        let Some(node) = self.pending.pop() else {
            return Ok(None);
        };
        let mut next = child(node, self.ahead)?;
        while let Some(below) = next {
            self.push(below)?;
            next = child(below, self.ahead.other())?;
        }
        Ok(Some((node.load(Node::KEY), Part(value(node)?))))
    }
}
