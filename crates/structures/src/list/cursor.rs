//! A position in a list, and changes there.

use std::collections::HashSet;

use firn_heap::{Error, Ref, Tx};
use firn_media::Medium;

use super::node::{Direction, ListRoot, Node, NodeAt, Root, damaged, end, step, value};
use crate::reclaim::free_unlinked;

/// Bytes of an object that are prefetched when only its header's line is wanted.
const A_HEADER: u64 = 8;

/// Values up to this size are replaced in place if the length stays.
const IN_PLACE_BYTES: usize = 512;

/// A position in a list that is being changed: at an element, or at the gap before the first and behind the last
/// element, which is called beside them.
pub struct Cursor<'l, 't, M: Medium> {
    root: Root<'t, Tx<'t, M>>,
    node: Option<NodeAt<'t, Tx<'t, M>>>,
    /// Excludes a second cursor, which could remove the first one's element.
    of: core::marker::PhantomData<&'l mut ()>,
}

impl<'t, M: Medium> Cursor<'_, 't, M> {
    pub(crate) fn new(root: Root<'t, Tx<'t, M>>) -> Self {
        Self {
            root,
            node: None,
            of: core::marker::PhantomData,
        }
    }

    /// The element's key; `None` beside the elements.
    pub fn key(&self) -> Option<u64> {
        self.node.map(|node| node.load(Node::KEY))
    }

    /// The element's value; `None` beside the elements.
    pub fn value(&self) -> Result<Option<Vec<u8>>, Error> {
        self.node.map(|node| value(node)?.to_vec()).transpose()
    }

    /// Moves to the next element: from beside the elements to the first, from the last to beside them. Returns whether
    /// it is at an element.
    pub fn move_next(&mut self) -> Result<bool, Error> {
        self.go(Direction::Forward)
    }

    /// Moves to the previous element: from beside the elements to the last, from the first to beside them. Returns
    /// whether it is at an element.
    pub fn move_previous(&mut self) -> Result<bool, Error> {
        self.go(Direction::Back)
    }

    fn go(&mut self, direction: Direction) -> Result<bool, Error> {
        self.node = self.neighbour(direction)?;
        Ok(self.node.is_some())
    }

    /// Moves forward to the next element with this key, in linear time, or beside the elements if there is none.
    /// Returns whether there is one.
    pub fn find(&mut self, key: u64) -> Result<bool, Error> {
        let len = crate::plausible_len(self.root.view(), self.root.load(ListRoot::LEN));
        for _ in 0..=len {
            if !self.move_next()? {
                return Ok(false);
            }
            if self.key() == Some(key) {
                return Ok(true);
            }
        }
        Err(damaged("links of a list that do not end", self.root))
    }

    /// Inserts an element behind this position, or before all others if it is beside the elements. The position stays.
    ///
    /// Errors: the value is too large, the pool is full; the list is unchanged.
    pub fn insert_after(&mut self, key: u64, value: &[u8]) -> Result<(), Error> {
        let next = self.neighbour(Direction::Forward)?;
        self.check_link(self.node, next)?;
        self.insert(self.node, next, key, value)
    }

    /// Inserts an element before this position, or behind all others if it is beside the elements. The position stays.
    ///
    /// Errors: as [`Cursor::insert_after`].
    pub fn insert_before(&mut self, key: u64, value: &[u8]) -> Result<(), Error> {
        let previous = self.neighbour(Direction::Back)?;
        self.check_link(previous, self.node)?;
        self.insert(previous, self.node, key, value)
    }

    /// Replaces the element's value. Returns whether there is an element.
    ///
    /// Errors: as [`Cursor::insert_after`].
    pub fn set_value(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let Some(node) = self.node else {
            return Ok(false);
        };
        let old = value(node)?;
        if old.checked_len()? == bytes.len() && bytes.len() <= IN_PLACE_BYTES {
            old.overwrite(0, bytes)?;
        } else {
            let tx = self.root.view();
            node.link(Node::VALUE, Some(tx.alloc_bytes(bytes)?));
            free_unlinked(tx, old)?;
        }
        Ok(true)
    }

    /// Removes the element and moves to the next one. Returns whether there was an element.
    pub fn remove(&mut self) -> Result<bool, Error> {
        let Some(node) = self.node else {
            return Ok(false);
        };
        let tx = self.root.view();
        // Prefetches distant lines together.
        tx.expect_free(node);
        if let Some(old) = node.follow(Node::VALUE) {
            tx.expect_free(old);
            old.expect(A_HEADER);
        }
        if let Some(next) = node.follow(Node::NEXT) {
            next.expect(A_HEADER);
        }
        let previous = step(node, Direction::Back)?;
        let next = step(node, Direction::Forward)?;
        self.check_link(previous, Some(node))?;
        self.check_link(Some(node), next)?;
        let old = value(node)?;
        self.join(previous, next);
        self.count(u64::wrapping_sub);
        free_unlinked(tx, old)?;
        free_unlinked(tx, node)?;
        self.node = next;
        Ok(true)
    }

    /// Removes the element, moves to the next one and returns the removed key and value.
    pub fn take(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let taken = self.key().zip(self.value()?);
        self.remove()?;
        Ok(taken)
    }

    fn neighbour(&self, direction: Direction) -> Result<Option<NodeAt<'t, Tx<'t, M>>>, Error> {
        match self.node {
            Some(node) => step(node, direction),
            None => end(self.root, direction),
        }
    }

    /// Refuses neighbours that do not refer to each other: they are damaged, or this cursor's element was removed
    /// through another value of the same list.
    fn check_link(
        &self,
        left: Option<NodeAt<'t, Tx<'t, M>>>,
        right: Option<NodeAt<'t, Tx<'t, M>>>,
    ) -> Result<(), Error> {
        let behind_left = match left {
            Some(left) => left.follow(Node::NEXT),
            None => self.root.follow(ListRoot::FIRST),
        };
        let before_right = match right {
            Some(right) => right.follow(Node::PREVIOUS),
            None => self.root.follow(ListRoot::LAST),
        };
        if behind_left == right && before_right == left {
            return Ok(());
        }
        let what = "links of a list that disagree";
        Err(match left.or(right) {
            Some(node) => damaged(what, node),
            None => damaged(what, self.root),
        })
    }

    fn insert(
        &self,
        left: Option<NodeAt<'t, Tx<'t, M>>>,
        right: Option<NodeAt<'t, Tx<'t, M>>>,
        key: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let limit = crate::map::MAX_VALUE_BYTES;
        if bytes.len() as u64 > limit {
            let bytes = bytes.len() as u64;
            return Err(Error::ObjectTooLarge { bytes, limit });
        }
        let tx = self.root.view();
        let value = tx.alloc_bytes(bytes)?;
        let node = Node {
            next: Ref::NULL,
            previous: Ref::NULL,
            key,
            value: Ref::NULL,
        };
        let fresh = match tx.alloc(node) {
            Ok(node) => node,
            Err(error) => {
                // Nothing is linked yet: the list is unchanged even if the caller goes on.
                free_unlinked(tx, value)?;
                return Err(error);
            }
        };
        fresh.link(Node::VALUE, Some(value));
        self.join(left, Some(fresh));
        self.join(Some(fresh), right);
        self.count(u64::wrapping_add);
        Ok(())
    }

    /// Makes two nodes neighbours; `None` is the list's end.
    fn join(&self, left: Option<NodeAt<'t, Tx<'t, M>>>, right: Option<NodeAt<'t, Tx<'t, M>>>) {
        match left {
            Some(left) => left.link(Node::NEXT, right),
            None => self.root.link(ListRoot::FIRST, right),
        }
        match right {
            Some(right) => right.link(Node::PREVIOUS, left),
            None => self.root.link(ListRoot::LAST, left),
        }
    }

    fn count(&self, change: impl Fn(u64, u64) -> u64) {
        let len = self.root.load(ListRoot::LEN);
        self.root.store(ListRoot::LEN, change(len, 1));
    }
}

/// Unlinks and frees every element.
pub(crate) fn clear<'t, M: Medium>(root: Root<'t, Tx<'t, M>>) -> Result<(), Error> {
    let tx = root.view();
    let mut seen = HashSet::new();
    let mut next = end(root, Direction::Forward)?;
    while let Some(node) = next {
        if !seen.insert(node.address().0) {
            return Err(damaged("an element that is reached twice", node));
        }
        next = step(node, Direction::Forward)?;
        free_unlinked(tx, value(node)?)?;
        free_unlinked(tx, node)?;
    }
    root.link::<Node>(ListRoot::FIRST, None);
    root.link::<Node>(ListRoot::LAST, None);
    root.store(ListRoot::LEN, 0);
    Ok(())
}
