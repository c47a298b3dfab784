//! Iterating over the elements, and checking them.

use core::ops::Range;
use std::collections::HashSet;

use firn_heap::{Error, Obj, View};

use super::{Root, VectorRoot, at, table};
use crate::protocol::{MAX_FINDINGS, Walk, WalkBack};

/// Elements of a vector, from either end.
pub struct Places<'g, V: View<'g>> {
    root: Root<'g, V>,
    rest: Range<u64>,
}

impl<'g, V: View<'g>> Places<'g, V> {
    pub(crate) fn new(root: Root<'g, V>) -> Self {
        let rest = 0..root.load(VectorRoot::LEN);
        Self { root, rest }
    }

    #[inline]
    fn copy(&self, index: Option<u64>) -> Result<Option<Vec<u8>>, Error> {
        let copied = index.map(|index| at(self.root, index).and_then(Obj::to_vec));
        copied.transpose()
    }
}

impl<'g, V: View<'g>> Walk for Places<'g, V> {
    type Found = Vec<u8>;
    type Item<'r> = Vec<u8>;

    #[inline]
    fn step(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let index = self.rest.next();
        self.copy(index)
    }

    fn end(&mut self) {
        self.rest = 0..0;
    }

    #[inline]
    fn item<'r>(found: Vec<u8>) -> Self::Item<'r> {
        found
    }
}

impl<'g, V: View<'g>> WalkBack for Places<'g, V> {
    fn step_back(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let index = self.rest.next_back();
        self.copy(index)
    }
}

/// Checks every element; the caller holds the lock. Ends at the first finding after which the rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>>(
    root: Root<'g, V>,
    findings: &mut Vec<String>,
) -> Result<(), Error> {
    let len = root.load(VectorRoot::LEN);
    table(root).check(len, findings)?;
    let mut seen = HashSet::new();
    for index in 0..len {
        let element = at(root, index)?;
        element.checked_len()?;
        if !seen.insert(element.address().0) {
            findings.push(format!("the element at {index} is another's too"));
        }
        if findings.len() >= MAX_FINDINGS {
            return Ok(());
        }
    }
    let mut found = 0;
    table(root).visit(&mut |array, level| {
        if level == 0 {
            found += (0..array.len()).filter(|&p| array.get(p).is_some()).count() as u64;
        }
        Ok(())
    })?;
    if found != len {
        findings.push(format!("the vector says {len} elements, there are {found}"));
    }
    Ok(())
}
