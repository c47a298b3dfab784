//! An inner node of the B+tree.
//!
//! Child `i + 1` holds the keys from key `i` on. A node whose children change is read, changed and
//! written as a whole, under one snapshot.

use crate::failure::Failure;
use crate::libpmemobj::declarations::Oid;
use crate::libpmemobj::nodes::Nodes;

/// Most children.
pub const FANOUT: usize = 16;
/// Fewest children, except for the root.
pub const LEAST_CHILDREN: usize = FANOUT / 2;

const LINK_BYTES: usize = size_of::<Oid>();
const COUNT: usize = 0;
const KEYS: usize = COUNT + 8;
const CHILDREN: usize = KEYS + (FANOUT - 1) * 8;
const INNER_BYTES: usize = CHILDREN + FANOUT * LINK_BYTES;

/// An inner node's content.
pub struct Inner {
    /// One less than there are children.
    pub keys: Vec<u64>,
    /// The children.
    pub children: Vec<Oid>,
}

/// Which child of a node holds a key.
#[inline]
pub fn child_of(nodes: &Nodes<'_>, node: Oid, searched: u64) -> usize {
    let keys = nodes.word(node, COUNT) as usize - 1;
    (0..keys)
        .find(|at| searched < key(nodes, node, *at))
        .unwrap_or(keys)
}

/// A child.
#[inline]
pub fn child(nodes: &Nodes<'_>, node: Oid, at: usize) -> Oid {
    nodes.link(node, CHILDREN + at * LINK_BYTES)
}

/// A key.
#[inline]
pub fn key(nodes: &Nodes<'_>, node: Oid, at: usize) -> u64 {
    nodes.word(node, KEYS + at * 8)
}

/// Changes a key alone.
pub fn set_key(nodes: &mut Nodes<'_>, node: Oid, at: usize, key: u64) -> Result<(), Failure> {
    nodes.change(node, KEYS + at * 8, 8)?;
    nodes.set_word(node, KEYS + at * 8, key);
    Ok(())
}

/// Frees a node.
pub fn free(nodes: &mut Nodes<'_>, node: Oid) -> Result<(), Failure> {
    nodes.free(node, INNER_BYTES)
}

impl Inner {
    /// Reads a node.
    pub fn load(nodes: &Nodes<'_>, node: Oid) -> Self {
        let count = nodes.word(node, COUNT) as usize;
        let mut all = Self {
            keys: Vec::with_capacity(2 * FANOUT),
            children: Vec::with_capacity(2 * FANOUT),
        };
        all.keys
            .extend((0..count - 1).map(|at| key(nodes, node, at)));
        all.children
            .extend((0..count).map(|at| child(nodes, node, at)));
        all
    }

    /// Writes a node.
    pub fn store(&self, nodes: &mut Nodes<'_>, node: Oid) -> Result<(), Failure> {
        nodes.change(node, COUNT, INNER_BYTES)?;
        self.write(nodes, node);
        Ok(())
    }

    /// Allocates a node.
    pub fn make(&self, nodes: &mut Nodes<'_>) -> Result<Oid, Failure> {
        let node = nodes.alloc(INNER_BYTES)?;
        self.write(nodes, node);
        Ok(node)
    }

    fn write(&self, nodes: &mut Nodes<'_>, node: Oid) {
        nodes.set_word(node, COUNT, self.children.len() as u64);
        for (at, key) in self.keys.iter().enumerate() {
            nodes.set_word(node, KEYS + at * 8, *key);
        }
        for (at, child) in self.children.iter().enumerate() {
            nodes.set_link(node, CHILDREN + at * LINK_BYTES, *child);
        }
    }

    /// Inserts a child that holds the keys from `bound` on.
    pub fn insert(&mut self, at: usize, bound: u64, child: Oid) {
        self.keys.insert(at - 1, bound);
        self.children.insert(at, child);
    }

    /// Removes a child that is not the first.
    pub fn remove(&mut self, at: usize) {
        self.keys.remove(at - 1);
        self.children.remove(at);
    }

    /// Splits off the upper half, and the key between both.
    pub fn split(&mut self) -> (u64, Self) {
        let half = self.children.len() / 2;
        let children = self.children.split_off(half);
        let keys = self.keys.split_off(half);
        let bound = self.keys.pop().expect("a key between two children");
        (bound, Self { keys, children })
    }

    /// Appends a right neighbour, whose keys are from `bound` on.
    pub fn join(&mut self, bound: u64, high: Self) {
        self.keys.push(bound);
        self.keys.extend(high.keys);
        self.children.extend(high.children);
    }
}
