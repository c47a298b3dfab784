//! An array of strings that are allocated one by one, two of which can be swapped.

use super::Pack;
use crate::clock::Times;
use crate::failure::Failure;
use crate::libpmemobj::declarations::{OID_NULL, Oid};
use crate::libpmemobj::nodes::Nodes;
use crate::phases::{Occupied, Structure, Swap, VALUE_BYTES, Value};

const LINK_BYTES: usize = size_of::<Oid>();

/// The array.
pub struct StringSwap<'p> {
    nodes: Nodes<'p>,
    array: Oid,
    n: u32,
}

impl<'p> StringSwap<'p> {
    /// An array of `n` empty places.
    pub fn new(mut nodes: Nodes<'p>, n: u32) -> Result<Self, Failure> {
        let array = nodes.zalloc(n as usize * LINK_BYTES)?;
        Ok(Self { nodes, array, n })
    }

    fn set(nodes: &mut Nodes<'p>, array: Oid, number: u32, link: Oid) -> Result<(), Failure> {
        let at = place(number);
        nodes.change(array, at, LINK_BYTES)?;
        nodes.set_link(array, at, link);
        Ok(())
    }

    fn exchange(&mut self, one: u32, other: u32) -> Result<(), Failure> {
        let array = self.array;
        self.nodes.transaction(|nodes| {
            let links = (
                nodes.link(array, place(one)),
                nodes.link(array, place(other)),
            );
            Self::set(nodes, array, one, links.1)?;
            Self::set(nodes, array, other, links.0)
        })
    }
}

fn place(number: u32) -> usize {
    number as usize * LINK_BYTES
}

impl Pack for StringSwap<'_> {
    #[allow(unsafe_code)]
    fn pack(&mut self) -> Result<(Times, usize), Failure> {
        let (array, n) = (self.array, self.n);
        let links = |nodes: &Nodes<'_>| {
            let links = (0..n).map(|number| (array, place(number)));
            links
                .filter(|&(oid, at)| !nodes.link(oid, at).is_null())
                .collect()
        };
        // SAFETY: one place of the array names a string, and nothing else does.
        unsafe { self.nodes.pack(links, VALUE_BYTES) }
    }
}

impl Structure for StringSwap<'_> {
    fn name(&self) -> &'static str {
        "string_swap"
    }

    fn insert(&mut self, number: u32, _: u64, value: &Value) -> Result<(), Failure> {
        let array = self.array;
        self.nodes.transaction(|nodes| {
            let string = nodes.alloc(VALUE_BYTES)?;
            nodes.set_value(string, 0, value);
            Self::set(nodes, array, number, string)
        })
    }

    fn delete(&mut self, number: u32, _: u64) -> Result<(), Failure> {
        let array = self.array;
        self.nodes.transaction(|nodes| {
            let string = nodes.link(array, place(number));
            if string.is_null() {
                return Err(Failure::absent("string_swap"));
            }
            Self::set(nodes, array, number, OID_NULL)?;
            nodes.free(string, VALUE_BYTES)
        })
    }

    fn get(&mut self, number: u32, _: u64, into: &mut Value) -> Result<bool, Failure> {
        let string = self.nodes.link(self.array, place(number));
        if !string.is_null() {
            self.nodes.value(string, 0, into);
        }
        Ok(!string.is_null())
    }

    fn swap(&self) -> Option<Swap<Self>> {
        Some(Self::exchange)
    }

    fn occupied(&mut self) -> Option<Occupied> {
        Some(self.nodes.occupied())
    }

    fn file_bytes(&mut self) -> Result<u64, Failure> {
        Ok(self.nodes.reach())
    }
}
