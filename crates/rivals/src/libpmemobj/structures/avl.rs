//! An AVL tree: the two subtrees of a node differ in height by one at most.
//!
//! A node's mark is its balance: the height of the subtree on its higher side less that of the other. With heights
//! themselves, every step up would have to look at a sibling.

use super::Pack;
use super::binary::{Binary, Side};
use crate::clock::Times;
use crate::failure::Failure;
use crate::libpmemobj::declarations::Oid;
use crate::libpmemobj::nodes::Nodes;
use crate::phases::{Occupied, Structure, Value};

/// The tree.
pub struct Avl<'p>(Binary<'p>);

const LEVEL: i64 = 0;

/// The balance of a node that leans to a side.
fn towards(side: Side) -> i64 {
    if side == 1 { 1 } else { -1 }
}

impl<'p> Avl<'p> {
    /// An empty tree.
    pub fn new(nodes: Nodes<'p>) -> Result<Self, Failure> {
        Binary::new(nodes).map(Self)
    }

    fn balance(&self, node: Oid) -> i64 {
        self.0.mark(node).cast_signed()
    }

    fn set_balance(&mut self, node: Oid, balance: i64) -> Result<(), Failure> {
        self.0.set_mark(node, balance.cast_unsigned())
    }

    /// The subtree at the end of the way has become one higher.
    fn grown(&mut self) -> Result<(), Failure> {
        for step in (1..self.0.way.len()).rev() {
            let (node, side) = self.0.way[step];
            match self.balance(node) {
                LEVEL => self.set_balance(node, towards(side))?,
                leans if leans == towards(side) => return self.rotate(step, side).map(|_| ()),
                _ => return self.set_balance(node, LEVEL),
            }
        }
        Ok(())
    }

    /// The subtree at the end of the way has become one lower.
    fn shrunk(&mut self) -> Result<(), Failure> {
        for step in (1..self.0.way.len()).rev() {
            let (node, side) = self.0.way[step];
            let other = 1 - side;
            match self.balance(node) {
                LEVEL => return self.set_balance(node, towards(other)),
                leans if leans == towards(side) => self.set_balance(node, LEVEL)?,
                _ => {
                    if !self.rotate(step, other)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Rotates the node of a step, whose subtree on `heavy` is two higher than the other one.
    ///
    /// Returns whether the whole is now one lower than before with that subtree.
    fn rotate(&mut self, step: usize, heavy: Side) -> Result<bool, Failure> {
        let (node, light) = (self.0.way[step].0, 1 - heavy);
        let child = self.0.child(node, heavy);
        let leans = self.balance(child);
        if leans == towards(light) {
            return self.rotate_twice(step, heavy).map(|()| true);
        }
        self.0.set_child(node, heavy, self.0.child(child, light))?;
        self.0.set_child(child, light, node)?;
        let lower = leans != LEVEL;
        let (of_node, of_child) = if lower {
            (LEVEL, LEVEL)
        } else {
            (towards(heavy), towards(light))
        };
        self.set_balance(node, of_node)?;
        self.set_balance(child, of_child)?;
        self.0.hang(step - 1, child)?;
        Ok(lower)
    }

    fn rotate_twice(&mut self, step: usize, heavy: Side) -> Result<(), Failure> {
        let (node, light) = (self.0.way[step].0, 1 - heavy);
        let child = self.0.child(node, heavy);
        let middle = self.0.child(child, light);
        let leans = self.balance(middle);
        self.0
            .set_child(child, light, self.0.child(middle, heavy))?;
        self.0.set_child(node, heavy, self.0.child(middle, light))?;
        self.0.set_child(middle, heavy, child)?;
        self.0.set_child(middle, light, node)?;
        let of = |side: Side| {
            if leans == towards(side) {
                towards(1 - side)
            } else {
                LEVEL
            }
        };
        self.set_balance(node, of(heavy))?;
        self.set_balance(child, of(light))?;
        self.set_balance(middle, LEVEL)?;
        self.0.hang(step - 1, middle)
    }

    /// Keys in order, after checking the balance rule.
    #[cfg(test)]
    pub fn keys(&self) -> Vec<u64> {
        fn height(tree: &Avl<'_>, node: Oid, keys: &mut Vec<u64>) -> i64 {
            if node.is_null() {
                return 0;
            }
            let low = height(tree, tree.0.child(node, 0), keys);
            keys.push(tree.0.key(node));
            let high = height(tree, tree.0.child(node, 1), keys);
            assert_eq!(tree.balance(node), high - low);
            assert!((high - low).abs() <= 1);
            1 + low.max(high)
        }
        let mut keys = Vec::new();
        height(self, self.0.root(), &mut keys);
        keys
    }
}

impl Pack for Avl<'_> {
    fn pack(&mut self) -> Result<(Times, usize), Failure> {
        self.0.pack()
    }
}

impl Structure for Avl<'_> {
    fn name(&self) -> &'static str {
        "avl"
    }

    fn insert(&mut self, _: u32, key: u64, value: &Value) -> Result<(), Failure> {
        self.0.nodes.begin().transaction(|_| {
            self.0.put(key, LEVEL.cast_unsigned(), value)?;
            self.grown()
        })
    }

    fn delete(&mut self, _: u32, key: u64) -> Result<(), Failure> {
        self.0.nodes.begin().transaction(|_| {
            self.0.take(key)?;
            self.shrunk()
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
