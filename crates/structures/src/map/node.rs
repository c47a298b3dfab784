//! Nodes of the tree, and their objects on media.
//!
//! A node has [`FANOUT`] slots. In a leaf a slot holds a key's word and its entry. Above the leaves it holds a
//! separator and a child: every key of the child's range is at or above the separator and below the next one. The
//! separator at place 0 is ignored: word zero, no object. A separator has an object only where its word does not decide
//! alone, see [`super::key::decides`].
//!
//! Free slots hold null references, so they do not keep dropped objects alive.

use firn_heap::{Error, Obj, Raw, Ref, Refs, Stored, Tx, View};
use firn_media::Medium;

use super::entry::Entry;
use super::order::{FANOUT, Order};

/// The most levels of a tree: with at least three entries per node, far more than any pool can hold.
pub(crate) const MAX_HEIGHT: usize = 24;

/// The root object of a map.
#[derive(Stored)]
#[firn(name = "firn.map")]
#[repr(C)]
pub struct MapRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of entries.
    pub(crate) len: u64,
    /// Number of levels; zero for an empty map.
    pub(crate) height: u64,
    /// The topmost node.
    pub(crate) top: Ref<Node>,
}

/// A leaf, or a node above the leaves.
#[derive(Stored)]
#[firn(name = "firn.map.node")]
#[repr(C)]
pub struct Node {
    /// Which slots are in use, and in which order.
    pub(crate) order: u64,
    /// Length of the prefix that all keys of the node's range share and its words leave out.
    pub(crate) skip: u64,
    /// The children; null in a leaf.
    pub(crate) children: Ref<Refs<Node>>,
    /// Words of the keys, or of the separators.
    pub(crate) words: [u64; FANOUT],
    /// The entries; or the separators whose words do not decide alone.
    pub(crate) keys: [Ref<Raw>; FANOUT],
}

const LINE_BYTES: usize = 64;
const HEADER_BYTES: usize = 8;
const _: () = assert!((size_of::<Node>() + HEADER_BYTES).is_multiple_of(LINE_BYTES));

/// A node that passed the checks, with the words that every visit needs.
pub(crate) struct Visit<'g, V: View<'g>> {
    pub(crate) node: Obj<'g, Node, V>,
    pub(crate) order: Order,
    pub(crate) skip: usize,
}

impl<'g, V: View<'g>> Clone for Visit<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Visit<'g, V> {}

impl<'g, V: View<'g>> Visit<'g, V> {
    /// Checks type, count and slots of a node.
    #[inline]
    pub(crate) fn new(node: Obj<'g, Node, V>) -> Result<Self, Error> {
        let node = node.check_type()?;
        let Some(order) = Order::from_word(node.load(Node::ORDER)) else {
            return Err(Error::Damaged {
                what: "the order word of a map's node",
                at: node.address().0,
            });
        };
        let skip = node.load(Node::SKIP) as usize;
        if skip > super::MAX_KEY_BYTES {
            return Err(Error::Damaged {
                what: "the common length of a map's node",
                at: node.address().0,
            });
        }
        Ok(Self { node, order, skip })
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.order.count()
    }

    pub(crate) fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged {
            what,
            at: self.node.address().0,
        }
    }

    #[inline(always)]
    pub(crate) fn word(&self, place: usize) -> u64 {
        self.node.load(Node::WORDS.at(self.order.slot(place)))
    }

    /// The separator's object at `place`, if it has one; or the entry in a leaf.
    #[inline(always)]
    pub(crate) fn key(&self, place: usize) -> Option<Entry<'g, V>> {
        self.node.follow(Node::KEYS.at(self.order.slot(place)))
    }

    /// The entry at `place` of a leaf.
    #[inline(always)]
    pub(crate) fn entry(&self, place: usize) -> Result<Entry<'g, V>, Error> {
        self.key(place)
            .ok_or_else(|| self.damaged("a missing entry of a map's leaf"))
    }

    /// The children's array of a node above the leaves.
    #[inline]
    pub(crate) fn children(&self) -> Result<Obj<'g, Refs<Node>, V>, Error> {
        let children = self.node.follow(Node::CHILDREN);
        let sound = |c: &Obj<'g, Refs<Node>, V>| {
            c.header().type_id() == firn_heap::TypeId::REFS && c.len() == FANOUT
        };
        children
            .filter(sound)
            .ok_or_else(|| self.damaged("a map's node without children"))
    }

    /// The child at `place` of a node above the leaves.
    #[inline]
    pub(crate) fn child(&self, place: usize) -> Result<Obj<'g, Node, V>, Error> {
        self.children()?
            .get(self.order.slot(place))
            .ok_or_else(|| self.damaged("a missing child of a map's node"))
    }

    /// Refuses a node whose order word names a slot twice: storing into it would lose an entry.
    pub(crate) fn check_for_change(&self) -> Result<(), Error> {
        if self.order.is_permutation() {
            return Ok(());
        }
        Err(self.damaged("the order word of a map's node"))
    }

    /// Whether the node has no children.
    #[inline]
    pub(crate) fn is_leaf(&self) -> bool {
        self.node.follow(Node::CHILDREN).is_none()
    }
}

impl<'t, M: Medium> Visit<'t, Tx<'t, M>> {
    /// An empty leaf.
    pub(crate) fn new_leaf(tx: Tx<'t, M>) -> Result<Self, Error> {
        let node = tx.alloc(Node {
            order: Order::identity(0).word(),
            skip: 0,
            children: Ref::NULL,
            words: [0; FANOUT],
            keys: [const { Ref::NULL }; FANOUT],
        })?;
        Self::new(node)
    }

    /// A node above the leaves, without entries.
    pub(crate) fn new_inner(tx: Tx<'t, M>) -> Result<Self, Error> {
        let leaf = Self::new_leaf(tx)?;
        leaf.node
            .link(Node::CHILDREN, Some(tx.alloc_refs::<Node>(FANOUT)?));
        Ok(leaf)
    }

    /// Changes the order word.
    pub(crate) fn set_order(&mut self, order: Order) {
        self.node.store(Node::ORDER, order.word());
        self.order = order;
    }

    /// Changes the common prefix's length, if it differs.
    pub(crate) fn set_skip(&mut self, skip: usize) {
        if self.skip != skip {
            self.node.store(Node::SKIP, skip as u64);
            self.skip = skip;
        }
    }

    /// Fills a slot, storing only words that differ: fewer lines to log.
    pub(crate) fn set_slot(&self, slot: usize, word: u64, key: Option<Entry<'t, Tx<'t, M>>>) {
        if self.node.load(Node::WORDS.at(slot)) != word {
            self.node.store(Node::WORDS.at(slot), word);
        }
        self.set_key(slot, key);
    }

    /// Changes the reference of a slot, if it differs.
    pub(crate) fn set_key(&self, slot: usize, key: Option<Entry<'t, Tx<'t, M>>>) {
        let field = Node::KEYS.at(slot);
        if self.node.follow(field) != key {
            self.node.link(field, key);
        }
    }
}
