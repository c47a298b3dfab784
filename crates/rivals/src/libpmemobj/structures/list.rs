//! A doubly linked list, circular through a head, with a volatile array of each number's place.

use crate::failure::Failure;
use crate::libpmemobj::declarations::{OID_NULL, Oid};
use crate::libpmemobj::nodes::Nodes;
use crate::phases::{Occupied, Structure, VALUE_BYTES, Value};

const LINK_BYTES: usize = size_of::<Oid>();
const KEY: usize = 0;
const PREVIOUS: usize = KEY + 8;
const NEXT: usize = PREVIOUS + LINK_BYTES;
const HEAD_BYTES: usize = NEXT + LINK_BYTES;
const VALUE: usize = HEAD_BYTES;
const NODE_BYTES: usize = VALUE + VALUE_BYTES;

/// The list.
pub struct List<'p> {
    nodes: Nodes<'p>,
    head: Oid,
    places: Vec<Oid>,
}

impl<'p> List<'p> {
    /// An empty list for numbers below `n`.
    pub fn new(mut nodes: Nodes<'p>, n: u32) -> Result<Self, Failure> {
        let head = nodes.zalloc(HEAD_BYTES)?;
        nodes.transaction(|nodes| {
            nodes.change(head, 0, HEAD_BYTES)?;
            nodes.set_link(head, PREVIOUS, head);
            nodes.set_link(head, NEXT, head);
            Ok(())
        })?;
        Ok(Self {
            nodes,
            head,
            places: vec![OID_NULL; n as usize],
        })
    }

    /// Keys from front to back, after checking each node's links.
    #[cfg(test)]
    pub fn keys(&self) -> Vec<u64> {
        let (mut keys, mut at) = (Vec::new(), self.head);
        loop {
            let next = self.nodes.link(at, NEXT);
            assert_eq!(self.nodes.link(next, PREVIOUS), at);
            if next == self.head {
                return keys;
            }
            keys.push(self.nodes.word(next, KEY));
            at = next;
        }
    }
}

impl Structure for List<'_> {
    fn name(&self) -> &'static str {
        "list"
    }

    fn insert(&mut self, number: u32, key: u64, value: &Value) -> Result<(), Failure> {
        let head = self.head;
        self.places[number as usize] = self.nodes.transaction(|nodes| {
            let node = nodes.alloc(NODE_BYTES)?;
            let last = nodes.link(head, PREVIOUS);
            nodes.set_word(node, KEY, key);
            nodes.set_link(node, PREVIOUS, last);
            nodes.set_link(node, NEXT, head);
            nodes.set_value(node, VALUE, value);
            nodes.change(last, NEXT, LINK_BYTES)?;
            nodes.set_link(last, NEXT, node);
            nodes.change(head, PREVIOUS, LINK_BYTES)?;
            nodes.set_link(head, PREVIOUS, node);
            Ok(node)
        })?;
        Ok(())
    }

    fn delete(&mut self, number: u32, _: u64) -> Result<(), Failure> {
        let node = self.places[number as usize];
        if node.is_null() {
            return Err(Failure::absent(self.name()));
        }
        self.nodes.transaction(|nodes| {
            let (previous, next) = (nodes.link(node, PREVIOUS), nodes.link(node, NEXT));
            nodes.change(previous, NEXT, LINK_BYTES)?;
            nodes.set_link(previous, NEXT, next);
            nodes.change(next, PREVIOUS, LINK_BYTES)?;
            nodes.set_link(next, PREVIOUS, previous);
            nodes.free(node, NODE_BYTES)
        })?;
        self.places[number as usize] = OID_NULL;
        Ok(())
    }

    fn get(&mut self, number: u32, _: u64, into: &mut Value) -> Result<bool, Failure> {
        let node = self.places[number as usize];
        if !node.is_null() {
            self.nodes.value(node, VALUE, into);
        }
        Ok(!node.is_null())
    }

    fn occupied(&mut self) -> Option<Occupied> {
        Some(self.nodes.occupied())
    }

    fn file_bytes(&mut self) -> Result<u64, Failure> {
        Ok(self.nodes.reach())
    }
}
