//! A red-black tree: no red node has a red child, and every way down passes equally many black nodes.
//!
//! A node's mark is its colour. Source: Cormen et al., Introduction to Algorithms, the chapter on red-black trees,
//! without links to parents.

use super::binary::{Binary, Side};
use crate::failure::Failure;
use crate::libpmemobj::declarations::Oid;
use crate::libpmemobj::nodes::Nodes;
use crate::phases::{Occupied, Structure, Value};

const BLACK: u64 = 0;
const RED: u64 = 1;

/// The tree.
pub struct RedBlack<'p>(Binary<'p>);

impl<'p> RedBlack<'p> {
    /// An empty tree.
    pub fn new(nodes: Nodes<'p>) -> Result<Self, Failure> {
        Binary::new(nodes).map(Self)
    }

    fn is_red(&self, node: Oid) -> bool {
        !node.is_null() && self.0.mark(node) == RED
    }

    /// Rotates the child of `node` on `side` up into its place, to which step `step` of the way leads.
    fn lift(&mut self, step: usize, node: Oid, side: Side) -> Result<Oid, Failure> {
        let child = self.0.child(node, side);
        self.0
            .set_child(node, side, self.0.child(child, 1 - side))?;
        self.0.set_child(child, 1 - side, node)?;
        self.0.hang(step, child)?;
        Ok(child)
    }

    /// Restores the rules after a red node was hung at the end of the way.
    fn reddened(&mut self, node: Oid) -> Result<(), Failure> {
        let mut node = node;
        // Number of steps that lead to `node`: the last is from its parent.
        let mut steps = self.0.way.len();
        loop {
            let (parent, side) = self.0.way[steps - 1];
            if steps == 1 {
                // It is the root.
                return self.0.set_mark(node, BLACK);
            }
            if !self.is_red(parent) {
                return Ok(());
            }
            // A red parent is not the root: there is a node above it.
            let (above, parent_side) = self.0.way[steps - 2];
            let uncle = self.0.child(above, 1 - parent_side);
            if !self.is_red(uncle) {
                let top = if side == parent_side {
                    parent
                } else {
                    self.lift(steps - 2, parent, side)?
                };
                self.lift(steps - 3, above, parent_side)?;
                self.0.set_mark(top, BLACK)?;
                return self.0.set_mark(above, RED);
            }
            self.0.set_mark(parent, BLACK)?;
            self.0.set_mark(uncle, BLACK)?;
            self.0.set_mark(above, RED)?;
            node = above;
            steps -= 2;
        }
    }

    /// Restores the rules after the ways through the end of the way have lost a black node.
    fn lightened(&mut self, risen: Oid) -> Result<(), Failure> {
        if self.is_red(risen) {
            return self.0.set_mark(risen, BLACK);
        }
        let mut step = self.0.way.len() - 1;
        while step > 0 {
            let (node, side) = self.0.way[step];
            let other = 1 - side;
            let mut sibling = self.0.child(node, other);
            if self.is_red(sibling) {
                self.lift(step - 1, node, other)?;
                self.0.set_mark(sibling, BLACK)?;
                self.0.set_mark(node, RED)?;
                self.0.way[step].0 = sibling;
                self.0.way.truncate(step + 1);
                self.0.way.push((node, side));
                step += 1;
                sibling = self.0.child(node, other);
            }
            let (near, far) = (self.0.child(sibling, side), self.0.child(sibling, other));
            if self.is_red(near) || self.is_red(far) {
                return self.borrow(step, sibling);
            }
            self.0.set_mark(sibling, RED)?;
            if self.is_red(node) {
                return self.0.set_mark(node, BLACK);
            }
            step -= 1;
        }
        Ok(())
    }

    /// Takes over a red node from the sibling's children: the last rotation of `lightened`.
    fn borrow(&mut self, step: usize, sibling: Oid) -> Result<(), Failure> {
        let (node, side) = self.0.way[step];
        let other = 1 - side;
        let far = self.0.child(sibling, other);
        let colour = self.0.mark(node);
        if self.is_red(far) {
            self.0.set_mark(far, BLACK)?;
        } else {
            // The step below leads to the sibling only during this rotation.
            self.0.way.truncate(step);
            self.0.way.push((node, other));
            self.lift(step, sibling, side)?;
        }
        let top = self.lift(step - 1, node, other)?;
        self.0.set_mark(top, colour)?;
        self.0.set_mark(node, BLACK)
    }

    /// Keys in order, after checking the rules.
    #[cfg(test)]
    pub fn keys(&self) -> Vec<u64> {
        fn blacks(tree: &RedBlack<'_>, node: Oid, keys: &mut Vec<u64>) -> u32 {
            if node.is_null() {
                return 0;
            }
            let (low, high) = (tree.0.child(node, 0), tree.0.child(node, 1));
            let red = tree.is_red(node);
            assert!(!(red && (tree.is_red(low) || tree.is_red(high))));
            let below = blacks(tree, low, keys);
            keys.push(tree.0.key(node));
            assert_eq!(below, blacks(tree, high, keys));
            below + u32::from(!red)
        }
        let mut keys = Vec::new();
        assert!(!self.is_red(self.0.root()));
        blacks(self, self.0.root(), &mut keys);
        keys
    }
}

impl Structure for RedBlack<'_> {
    fn name(&self) -> &'static str {
        "red_black"
    }

    fn insert(&mut self, _: u32, key: u64, value: &Value) -> Result<(), Failure> {
        self.0.nodes.begin().transaction(|_| {
            let node = self.0.put(key, RED, value)?;
            self.reddened(node)
        })
    }

    fn delete(&mut self, _: u32, key: u64) -> Result<(), Failure> {
        self.0.nodes.begin().transaction(|_| {
            let taken = self.0.take(key)?;
            if taken.mark == BLACK {
                self.lightened(taken.risen)?;
            }
            Ok(())
        })
    }

    fn get(&mut self, _: u32, key: u64, into: &mut Value) -> Result<bool, Failure> {
        Ok(self.0.get(key, into))
    }

    fn occupied(&mut self) -> Option<Occupied> {
        Some(self.0.nodes.occupied())
    }

    fn file_bytes(&mut self) -> Result<u64, Failure> {
        Ok(self.0.nodes.reach())
    }
}
