//! Reading under a lock that is held.

use core::marker::PhantomData;

use firn_heap::{Error, ReadLock, View};

use super::node::{Direction, ListRoot, Node, NodeAt, Root, damaged, end, step, value};

/// A list that no writer changes while this lives. See [`super::List::read`].
pub struct ListReader<'l, 'g, V: View<'g>> {
    root: Root<'g, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the list through the value that this was made of.
    of: PhantomData<&'l ()>,
}

impl<'g, V: View<'g>> ListReader<'_, 'g, V> {
    pub(crate) fn new(root: Root<'g, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.root.load(ListRoot::LEN)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All elements, from either end.
    pub fn iter(&self) -> Iter<'_, 'g, V> {
        Iter {
            root: self.root,
            front: None,
            back: None,
            left: crate::plausible_len(self.root.view(), self.len()),
            of: PhantomData,
        }
    }

    /// The first element with this key, in linear time.
    pub fn find(&self, key: u64) -> Result<Option<Element<'_, 'g, V>>, Error> {
        for element in self.iter() {
            let element = element?;
            if element.key() == key {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }
}

/// An element, while the list's lock is held.
pub struct Element<'r, 'g, V: View<'g>> {
    node: NodeAt<'g, V>,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Element<'_, 'g, V> {
    /// The key.
    #[inline]
    pub fn key(&self) -> u64 {
        self.node.load(Node::KEY)
    }

    /// The value.
    pub fn value(&self) -> Result<Vec<u8>, Error> {
        value(self.node)?.to_vec()
    }

    /// Appends the value to `into`.
    pub fn value_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        value(self.node)?.read_into(into)
    }
}

/// Elements of a list, from either end. After an error there are no further ones.
pub struct Iter<'r, 'g, V: View<'g>> {
    root: Root<'g, V>,
    /// The last node handed out from the front, and from the back.
    front: Option<NodeAt<'g, V>>,
    back: Option<NodeAt<'g, V>>,
    /// Elements to come, as the length says: damaged links cannot lead in a circle.
    left: u64,
    of: PhantomData<&'r ()>,
}

impl<'r, 'g, V: View<'g>> Iter<'r, 'g, V> {
    fn advance(&mut self, direction: Direction) -> Option<Result<Element<'r, 'g, V>, Error>> {
        self.left = self.left.checked_sub(1)?;
        let from = match direction {
            Direction::Forward => self.front,
            Direction::Back => self.back,
        };
        let found = match from {
            Some(node) => step(node, direction),
            None => end(self.root, direction),
        };
        let node = match found {
            Ok(Some(node)) => node,
            Ok(None) => {
                self.left = 0;
                return Some(Err(damaged("links of a list that end early", self.root)));
            }
            Err(error) => {
                self.left = 0;
                return Some(Err(error));
            }
        };
        match direction {
            Direction::Forward => self.front = Some(node),
            Direction::Back => self.back = Some(node),
        }
        Some(Ok(Element {
            node,
            of: PhantomData,
        }))
    }
}

impl<'r, 'g, V: View<'g>> Iterator for Iter<'r, 'g, V> {
    type Item = Result<Element<'r, 'g, V>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.advance(Direction::Forward)
    }
}

impl<'g, V: View<'g>> DoubleEndedIterator for Iter<'_, 'g, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.advance(Direction::Back)
    }
}

impl<'g, V: View<'g>> core::iter::FusedIterator for Iter<'_, 'g, V> {}
