//! The common part of the two binary search trees: nodes, the way down, and removing a node.
//!
//! A node has no link to its parent: volatile memory holds the way down during an operation, so a rotation changes
//! fewer nodes. The tree hangs from a head that is laid out like a node, as its child on side 0. All fields of a node
//! that ever change are one range, which is snapshotted as a whole.

use crate::clock::Times;
use crate::failure::Failure;
use crate::libpmemobj::declarations::{OID_NULL, Oid};
use crate::libpmemobj::nodes::Nodes;
use crate::phases::{VALUE_BYTES, Value};

const LINK_BYTES: usize = size_of::<Oid>();
const KEY: usize = 0;
const MARK: usize = KEY + 8;
const CHILDREN: usize = MARK + 8;
const VALUE: usize = CHILDREN + 2 * LINK_BYTES;
const NODE_BYTES: usize = VALUE + VALUE_BYTES;
const CHANGING_BYTES: usize = VALUE - MARK;

/// Steps of the longest way down in a tree that memory can hold.
const LONGEST_WAY: usize = 96;

/// Which child: 0 holds lower keys, 1 higher ones.
pub type Side = usize;

/// A tree without a rule of balance.
pub struct Binary<'p> {
    pub nodes: Nodes<'p>,
    pub head: Oid,
    /// Nodes on the way down, each with the side that was taken; the head first.
    pub way: Vec<(Oid, Side)>,
}

/// A node that was removed.
pub struct Taken {
    /// The mark that its place in the tree lost.
    pub mark: u64,
    /// The node that moved up into that place; the way ends above it.
    pub risen: Oid,
}

impl<'p> Binary<'p> {
    /// An empty tree.
    pub fn new(mut nodes: Nodes<'p>) -> Result<Self, Failure> {
        let head = nodes.zalloc(VALUE)?;
        Ok(Self {
            nodes,
            head,
            way: Vec::with_capacity(LONGEST_WAY),
        })
    }

    /// The tree's highest node.
    #[cfg(test)]
    pub fn root(&self) -> Oid {
        self.child(self.head, 0)
    }

    #[cfg(test)]
    pub fn key(&self, node: Oid) -> u64 {
        self.nodes.word(node, KEY)
    }

    #[inline]
    pub fn child(&self, node: Oid, side: Side) -> Oid {
        self.nodes.link(node, CHILDREN + side * LINK_BYTES)
    }

    /// The balance or the colour.
    #[inline]
    pub fn mark(&self, node: Oid) -> u64 {
        self.nodes.word(node, MARK)
    }

    /// Changes a child, in a transaction.
    #[inline]
    pub fn set_child(&mut self, node: Oid, side: Side, child: Oid) -> Result<(), Failure> {
        self.nodes.change(node, MARK, CHANGING_BYTES)?;
        let at = CHILDREN + side * LINK_BYTES;
        self.nodes.set_link(node, at, child);
        Ok(())
    }

    /// Changes the balance or the colour, in a transaction.
    #[inline]
    pub fn set_mark(&mut self, node: Oid, mark: u64) -> Result<(), Failure> {
        self.nodes.change(node, MARK, CHANGING_BYTES)?;
        self.nodes.set_word(node, MARK, mark);
        Ok(())
    }

    /// Hangs `node` at the place to which step `step` of the way leads.
    #[inline]
    pub fn hang(&mut self, step: usize, node: Oid) -> Result<(), Failure> {
        let (above, side) = self.way[step];
        self.set_child(above, side, node)
    }

    /// Copies a value out. Returns whether the key is there.
    #[inline]
    pub fn get(&self, key: u64, into: &mut Value) -> bool {
        let mut node = self.child(self.head, 0);
        while !node.is_null() {
            let here = self.nodes.word(node, KEY);
            if here == key {
                self.nodes.value(node, VALUE, into);
                return true;
            }
            node = self.child(node, usize::from(key > here));
        }
        false
    }

    /// Walks to a key, or to where it would hang. Returns the node there.
    fn walk(&mut self, key: u64) -> Oid {
        self.way.clear();
        self.way.push((self.head, 0));
        let mut node = self.child(self.head, 0);
        while !node.is_null() {
            let here = self.nodes.word(node, KEY);
            if here == key {
                break;
            }
            let side = usize::from(key > here);
            self.way.push((node, side));
            node = self.child(node, side);
        }
        node
    }

    /// Packs the nodes. The way down is invalid afterwards.
    #[allow(unsafe_code)]
    pub fn pack(&mut self) -> Result<(Times, usize), Failure> {
        let head = self.head;
        // SAFETY: a node is named by its parent's link, the root by the head's, and by nothing else; the walk passes
        // each link once.
        unsafe { self.nodes.pack(|nodes| links(nodes, head), NODE_BYTES) }
    }

    /// Hangs a new node at the end of the way to it, in a transaction.
    pub fn put(&mut self, key: u64, mark: u64, value: &Value) -> Result<Oid, Failure> {
        self.walk(key);
        let node = self.nodes.alloc(NODE_BYTES)?;
        self.nodes.is_new(node, MARK);
        self.nodes.set_word(node, KEY, key);
        self.nodes.set_word(node, MARK, mark);
        self.nodes.set_link(node, CHILDREN, OID_NULL);
        self.nodes.set_link(node, CHILDREN + LINK_BYTES, OID_NULL);
        self.nodes.set_value(node, VALUE, value);
        self.hang(self.way.len() - 1, node)?;
        Ok(node)
    }

    /// Removes the node of a key that is there, in a transaction. A node with two children is replaced by its
    /// successor, which is relinked, not copied.
    pub fn take(&mut self, key: u64) -> Result<Taken, Failure> {
        let node = self.walk(key);
        if node.is_null() {
            return Err(Failure::absent("tree"));
        }
        let step = self.way.len() - 1;
        let (low, high) = (self.child(node, 0), self.child(node, 1));
        let taken = if low.is_null() || high.is_null() {
            let risen = if low.is_null() { high } else { low };
            self.hang(step, risen)?;
            Taken {
                mark: self.mark(node),
                risen,
            }
        } else {
            self.way.push((node, 1));
            let mut successor = high;
            loop {
                let lower = self.child(successor, 0);
                if lower.is_null() {
                    break;
                }
                self.way.push((successor, 0));
                successor = lower;
            }
            let (mark, risen) = (self.mark(successor), self.child(successor, 1));
            if successor != high {
                self.hang(self.way.len() - 1, risen)?;
                self.set_child(successor, 1, high)?;
            }
            self.set_child(successor, 0, low)?;
            self.set_mark(successor, self.mark(node))?;
            self.hang(step, successor)?;
            self.way[step + 1].0 = successor;
            Taken { mark, risen }
        };
        self.nodes.free(node, NODE_BYTES)?;
        Ok(taken)
    }
}

/// Every link of the tree that is not null: its object, and its offset there.
fn links(nodes: &Nodes<'_>, head: Oid) -> Vec<(Oid, usize)> {
    let mut found = Vec::new();
    let mut open = vec![head];
    while let Some(node) = open.pop() {
        for at in [CHILDREN, CHILDREN + LINK_BYTES] {
            let child = nodes.link(node, at);
            if !child.is_null() {
                found.push((node, at));
                open.push(child);
            }
        }
    }
    found
}
