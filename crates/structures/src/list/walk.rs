//! Iterating over the elements, from either end.

use firn_heap::{Error, View};

use super::node::{Direction, ListRoot, Node, NodeAt, Root, damaged, end, step, value};
use crate::protocol::{NumberedSpot, Part, Spot, Walk, WalkBack};
use crate::reader::Item;

impl<'g, V: View<'g>> Spot for Part<'g, Node, V> {
    #[inline(always)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        value(self.0)?.read_into(into)
    }

    fn value_len(self) -> Result<usize, Error> {
        value(self.0)?.checked_len()
    }
}

impl<'g, V: View<'g>> NumberedSpot for Part<'g, Node, V> {
    #[inline]
    fn key(self) -> u64 {
        self.0.load(Node::KEY)
    }
}

/// Elements of a list, from either end.
pub struct Links<'g, V: View<'g>> {
    root: Root<'g, V>,
    /// The last node handed out from the front, and from the back.
    front: Option<NodeAt<'g, V>>,
    back: Option<NodeAt<'g, V>>,
    /// Elements to come, according to the length: damaged links cannot lead in a circle.
    left: u64,
}

impl<'g, V: View<'g>> Links<'g, V> {
    pub(crate) fn new(root: Root<'g, V>) -> Self {
        Self {
            root,
            front: None,
            back: None,
            left: crate::plausible_len(root.view(), root.load(ListRoot::LEN)),
        }
    }

    /// The next element with this key.
    pub(crate) fn find(mut self, key: u64) -> Result<Option<NodeAt<'g, V>>, Error> {
        while let Some(node) = self.go(Direction::Forward)? {
            if node.load(Node::KEY) == key {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    #[inline]
    fn go(&mut self, direction: Direction) -> Result<Option<NodeAt<'g, V>>, Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let from = match direction {
            Direction::Forward => self.front,
            Direction::Back => self.back,
        };
        let found = match from {
            Some(node) => step(node, direction)?,
            None => end(self.root, direction)?,
        };
        let node = found.ok_or_else(|| damaged("links of a list that end early", self.root))?;
        match direction {
            Direction::Forward => self.front = Some(node),
            Direction::Back => self.back = Some(node),
        }
        Ok(Some(node))
    }
}

impl<'g, V: View<'g>> Walk for Links<'g, V> {
    type Found = Part<'g, Node, V>;
    type Item<'r> = Item<'r, Self::Found>;

    #[inline]
    fn step(&mut self) -> Result<Option<Self::Found>, Error> {
        Ok(self.go(Direction::Forward)?.map(Part))
    }

    #[inline]
    fn end(&mut self) {
        self.left = 0;
    }

    #[inline]
    fn item<'r>(found: Self::Found) -> Self::Item<'r> {
        Item::new(found)
    }
}

impl<'g, V: View<'g>> WalkBack for Links<'g, V> {
    #[inline]
    fn step_back(&mut self) -> Result<Option<Self::Found>, Error> {
        Ok(self.go(Direction::Back)?.map(Part))
    }
}
