//! A B+tree: values lie in leaves, four to a leaf, beside their keys.
//!
//! A leaf's slots are in no order; a word says which are in use. An entry is written into a slot that was not in use
//! before the transaction, so the slot needs no snapshot. The entry appears with the leaf's first bytes, which get one.
//! Inner nodes are in order, and snapshotted as a whole. A leaf or an inner node that falls below half joins its
//! neighbour if both fit into one, and otherwise shares with it.

use super::inner::{self, FANOUT, Inner, LEAST_CHILDREN};
use crate::failure::Failure;
use crate::libpmemobj::declarations::{OID_NULL, Oid};
use crate::libpmemobj::nodes::Nodes;
use crate::phases::{Occupied, Structure, VALUE_BYTES, Value};

const LINK_BYTES: usize = size_of::<Oid>();

/// Entries of a leaf.
const SLOTS: usize = 4;
const LEAST_ENTRIES: u32 = SLOTS as u32 / 2;
/// Bits of the slots in use.
const USED: usize = 0;
const NEXT: usize = USED + 8;
const KEYS: usize = NEXT + LINK_BYTES;
const VALUES: usize = KEYS + SLOTS * 8;
const LEAF_BYTES: usize = VALUES + SLOTS * VALUE_BYTES;
/// All of a leaf except its values.
const FIRST_BYTES: usize = VALUES;
const ALL_SLOTS: u64 = (1 << SLOTS) - 1;

const HEIGHT: usize = 0;
const ROOT: usize = 8;
const HEAD_BYTES: usize = ROOT + LINK_BYTES;

/// The tree.
pub struct BPlus<'p> {
    nodes: Nodes<'p>,
    head: Oid,
    /// Inner nodes on the way down, each with the child that was taken.
    way: Vec<(Oid, usize)>,
}

/// A leaf that is being changed in this transaction.
#[derive(Clone, Copy)]
struct Leaf {
    oid: Oid,
    /// Slots that were in use before the transaction.
    used_before: u64,
    /// Whether the transaction made it, so that it needs no snapshots.
    new: bool,
}

impl<'p> BPlus<'p> {
    /// An empty tree.
    pub fn new(mut nodes: Nodes<'p>) -> Result<Self, Failure> {
        let head = nodes.zalloc(HEAD_BYTES)?;
        nodes.transaction(|nodes| {
            let root = nodes.alloc(LEAF_BYTES)?;
            empty_leaf(nodes, root);
            nodes.change(head, 0, HEAD_BYTES)?;
            nodes.set_link(head, ROOT, root);
            Ok(())
        })?;
        Ok(Self {
            nodes,
            head,
            way: Vec::with_capacity(32),
        })
    }

    /// The leaf where a key is or would be.
    fn walk(&mut self, key: u64) -> Oid {
        self.way.clear();
        let mut node = self.nodes.link(self.head, ROOT);
        for _ in 0..self.nodes.word(self.head, HEIGHT) {
            let child = inner::child_of(&self.nodes, node, key);
            self.way.push((node, child));
            node = inner::child(&self.nodes, node, child);
        }
        node
    }

    /// The leaf where a key is or would be, without recording the way to it.
    fn find(&self, key: u64) -> Oid {
        let mut node = self.nodes.link(self.head, ROOT);
        for _ in 0..self.nodes.word(self.head, HEIGHT) {
            let child = inner::child_of(&self.nodes, node, key);
            node = inner::child(&self.nodes, node, child);
        }
        node
    }

    fn slot(&self, leaf: Oid, key: u64) -> Option<usize> {
        slots(self.nodes.word(leaf, USED)).find(|slot| self.key(leaf, *slot) == key)
    }

    fn key(&self, leaf: Oid, slot: usize) -> u64 {
        self.nodes.word(leaf, KEYS + slot * 8)
    }

    fn open(&mut self, oid: Oid) -> Result<Leaf, Failure> {
        let used_before = self.nodes.word(oid, USED);
        self.nodes.change(oid, USED, FIRST_BYTES)?;
        Ok(Leaf {
            oid,
            used_before,
            new: false,
        })
    }

    fn count(&self, leaf: Oid) -> u32 {
        self.nodes.word(leaf, USED).count_ones()
    }

    /// Puts an entry into an open leaf that has room. A slot that was in use before the transaction is snapshotted,
    /// since an abort would need its value.
    fn put(&mut self, leaf: Leaf, key: u64, value: &Value) -> Result<(), Failure> {
        let used = self.nodes.word(leaf.oid, USED);
        let unused = !(used | leaf.used_before) & ALL_SLOTS;
        let free = if unused == 0 { !used } else { unused };
        let slot = free.trailing_zeros() as usize;
        let at = VALUES + slot * VALUE_BYTES;
        if unused == 0 {
            self.nodes.change(leaf.oid, at, VALUE_BYTES)?;
        } else if !leaf.new {
            self.nodes.fill_unused(leaf.oid, at, VALUE_BYTES)?;
        }
        self.nodes.set_value(leaf.oid, at, value);
        self.nodes.set_word(leaf.oid, KEYS + slot * 8, key);
        self.nodes.set_word(leaf.oid, USED, used | 1 << slot);
        Ok(())
    }

    /// Removes an entry from an open leaf.
    fn clear(&mut self, leaf: Leaf, slot: usize) {
        let used = self.nodes.word(leaf.oid, USED);
        self.nodes.set_word(leaf.oid, USED, used & !(1 << slot));
    }

    /// Copies a leaf's entry into an open leaf.
    fn copy(&mut self, from: Oid, slot: usize, to: Leaf) -> Result<(), Failure> {
        let (key, mut value) = (self.key(from, slot), [0; VALUE_BYTES]);
        let at = VALUES + slot * VALUE_BYTES;
        self.nodes.value(from, at, &mut value);
        self.put(to, key, &value)
    }

    /// Slots in use, by ascending keys.
    fn in_order(&self, leaf: Oid) -> Vec<usize> {
        let mut order = Vec::with_capacity(SLOTS);
        order.extend(slots(self.nodes.word(leaf, USED)));
        order.sort_unstable_by_key(|slot| self.key(leaf, *slot));
        order
    }

    /// Splits a full open leaf, and puts an entry where it belongs.
    fn split(&mut self, low: Leaf, key: u64, value: &Value) -> Result<(), Failure> {
        let oid = self.nodes.alloc(LEAF_BYTES)?;
        self.nodes.is_new(oid, USED);
        empty_leaf(&mut self.nodes, oid);
        let high = Leaf {
            oid,
            used_before: 0,
            new: true,
        };
        let order = self.in_order(low.oid);
        let bound = self.key(low.oid, order[SLOTS / 2]);
        for slot in &order[SLOTS / 2..] {
            self.copy(low.oid, *slot, high)?;
            self.clear(low, *slot);
        }
        let after = self.nodes.link(low.oid, NEXT);
        self.nodes.set_link(high.oid, NEXT, after);
        self.nodes.set_link(low.oid, NEXT, high.oid);
        self.put(if key < bound { low } else { high }, key, value)?;
        self.add_child(bound, high.oid)
    }

    /// Adds a child to the right of the way's last one, splitting inner nodes up to the root.
    fn add_child(&mut self, bound: u64, child: Oid) -> Result<(), Failure> {
        let (mut bound, mut child) = (bound, child);
        while let Some((node, at)) = self.way.pop() {
            let mut all = Inner::load(&self.nodes, node);
            all.insert(at + 1, bound, child);
            if all.children.len() <= FANOUT {
                return all.store(&mut self.nodes, node);
            }
            let (middle, high) = all.split();
            all.store(&mut self.nodes, node)?;
            (bound, child) = (middle, high.make(&mut self.nodes)?);
        }
        let root = Inner {
            keys: vec![bound],
            children: vec![self.nodes.link(self.head, ROOT), child],
        };
        let root = root.make(&mut self.nodes)?;
        self.set_root(root, self.nodes.word(self.head, HEIGHT) + 1)
    }

    fn set_root(&mut self, root: Oid, height: u64) -> Result<(), Failure> {
        self.nodes.change(self.head, 0, HEAD_BYTES)?;
        self.nodes.set_link(self.head, ROOT, root);
        self.nodes.set_word(self.head, HEIGHT, height);
        Ok(())
    }

    /// Removes an entry from a leaf, the way's last child, which thereby falls below half.
    fn delete_and_refill(&mut self, leaf: Oid, slot: usize) -> Result<(), Failure> {
        let &(parent, at) = self.way.last().expect("not the root");
        let left = at.saturating_sub(1);
        let neighbour = inner::child(&self.nodes, parent, if at > 0 { left } else { 1 });
        let (low, high) = if at > 0 {
            (neighbour, leaf)
        } else {
            (leaf, neighbour)
        };
        let joined = self.count(leaf) + self.count(neighbour) - 1;
        if joined as usize <= SLOTS {
            self.join(low, high, (leaf, slot))?;
            return self.remove_child(left + 1);
        }
        let leaf = self.open(leaf)?;
        self.clear(leaf, slot);
        let neighbour = self.open(neighbour)?;
        let order = self.in_order(neighbour.oid);
        let slot = if at > 0 {
            order[order.len() - 1]
        } else {
            order[0]
        };
        self.copy(neighbour.oid, slot, leaf)?;
        self.clear(neighbour, slot);
        let bound = self.key(high, self.in_order(high)[0]);
        inner::set_key(&mut self.nodes, parent, left, bound)
    }

    /// Moves all but one entry of a leaf into its left neighbour, and frees it as it is.
    fn join(&mut self, low: Oid, high: Oid, less: (Oid, usize)) -> Result<(), Failure> {
        let low = self.open(low)?;
        if less.0 == low.oid {
            self.clear(low, less.1);
        }
        for slot in slots(self.nodes.word(high, USED)) {
            if (high, slot) != less {
                self.copy(high, slot, low)?;
            }
        }
        let after = self.nodes.link(high, NEXT);
        self.nodes.set_link(low.oid, NEXT, after);
        self.nodes.free(high, LEAF_BYTES)
    }

    /// Removes a child of the way's last node, and joins inner nodes up to the root.
    fn remove_child(&mut self, child: usize) -> Result<(), Failure> {
        let mut child = child;
        while let Some((node, _)) = self.way.pop() {
            let mut all = Inner::load(&self.nodes, node);
            all.remove(child);
            let Some(&(parent, at)) = self.way.last() else {
                if let [only] = all.children[..] {
                    inner::free(&mut self.nodes, node)?;
                    return self.set_root(only, self.nodes.word(self.head, HEIGHT) - 1);
                }
                return all.store(&mut self.nodes, node);
            };
            if all.children.len() >= LEAST_CHILDREN {
                return all.store(&mut self.nodes, node);
            }
            let left = at.saturating_sub(1);
            let other = inner::child(&self.nodes, parent, if at > 0 { left } else { 1 });
            let neighbour = Inner::load(&self.nodes, other);
            let bound = inner::key(&self.nodes, parent, left);
            let (low_oid, mut low, high_oid, high) = if at > 0 {
                (other, neighbour, node, all)
            } else {
                (node, all, other, neighbour)
            };
            low.join(bound, high);
            if low.children.len() > FANOUT {
                let (bound, high) = low.split();
                low.store(&mut self.nodes, low_oid)?;
                high.store(&mut self.nodes, high_oid)?;
                return inner::set_key(&mut self.nodes, parent, left, bound);
            }
            low.store(&mut self.nodes, low_oid)?;
            inner::free(&mut self.nodes, high_oid)?;
            child = left + 1;
        }
        Ok(())
    }

    /// Keys in order along the leaves, each looked up from the root, after checking how full nodes are.
    #[cfg(test)]
    pub fn keys(&self) -> Vec<u64> {
        let mut leaf = self.nodes.link(self.head, ROOT);
        for level in (0..self.nodes.word(self.head, HEIGHT)).rev() {
            let children = Inner::load(&self.nodes, leaf).children;
            let top = level + 1 == self.nodes.word(self.head, HEIGHT);
            assert!(children.len() >= if top { 2 } else { LEAST_CHILDREN });
            leaf = children[0];
        }
        let single = self.nodes.word(self.head, HEIGHT) == 0;
        let mut keys = Vec::new();
        while !leaf.is_null() {
            assert!(single || self.count(leaf) >= LEAST_ENTRIES);
            for slot in self.in_order(leaf) {
                keys.push(self.key(leaf, slot));
                assert_eq!(self.find(self.key(leaf, slot)), leaf);
            }
            leaf = self.nodes.link(leaf, NEXT);
        }
        keys
    }
}

fn slots(used: u64) -> impl Iterator<Item = usize> {
    (0..SLOTS).filter(move |slot| used >> slot & 1 == 1)
}

fn empty_leaf(nodes: &mut Nodes<'_>, leaf: Oid) {
    nodes.set_word(leaf, USED, 0);
    nodes.set_link(leaf, NEXT, OID_NULL);
}

impl Structure for BPlus<'_> {
    fn name(&self) -> &'static str {
        "btree"
    }

    fn insert(&mut self, _: u32, key: u64, value: &Value) -> Result<(), Failure> {
        self.nodes.begin().transaction(|_| {
            let leaf = self.walk(key);
            let leaf = self.open(leaf)?;
            if leaf.used_before == ALL_SLOTS {
                self.split(leaf, key, value)
            } else {
                self.put(leaf, key, value)
            }
        })
    }

    fn delete(&mut self, _: u32, key: u64) -> Result<(), Failure> {
        self.nodes.begin().transaction(|_| {
            let leaf = self.walk(key);
            let Some(slot) = self.slot(leaf, key) else {
                return Err(Failure::absent("btree"));
            };
            if self.count(leaf) == LEAST_ENTRIES && !self.way.is_empty() {
                return self.delete_and_refill(leaf, slot);
            }
            let leaf = self.open(leaf)?;
            self.clear(leaf, slot);
            Ok(())
        })
    }

    fn get(&mut self, _: u32, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let leaf = self.find(key);
        let slot = self.slot(leaf, key);
        if let Some(slot) = slot {
            self.nodes.value(leaf, VALUES + slot * VALUE_BYTES, into);
        }
        Ok(slot.is_some())
    }

    fn occupied(&mut self) -> Option<Occupied> {
        Some(self.nodes.occupied())
    }

    fn file_bytes(&mut self) -> Result<u64, Failure> {
        Ok(self.nodes.reach())
    }
}
