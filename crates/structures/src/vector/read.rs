//! Reading under a lock that is held.

use core::marker::PhantomData;
use core::ops::Range;
use std::collections::HashSet;

use firn_heap::{Error, Obj, ReadLock, View};

use super::{Root, VectorRoot, at, table};

/// Findings after which a check ends.
const MAX_FINDINGS: usize = 100;

/// A vector that no writer changes while this lives. See [`super::Vector::read`].
pub struct VectorReader<'l, 'g, V: View<'g>> {
    root: Root<'g, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the vector through the value that this was made of.
    of: PhantomData<&'l ()>,
}

impl<'g, V: View<'g>> VectorReader<'_, 'g, V> {
    #[inline]
    pub(crate) fn new(root: Root<'g, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> u64 {
        self.root.load(VectorRoot::LEN)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`; `None` beyond the end.
    pub fn get(&self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        Ok(self.get_into(index, &mut bytes)?.then_some(bytes))
    }

    /// Appends the element at `index` to `into`, without another allocation if it has room. Returns
    /// whether there is one.
    #[inline]
    pub fn get_into(&self, index: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        if index >= self.len() {
            return Ok(false);
        }
        at(self.root, index)?.read_into(into)?;
        Ok(true)
    }

    /// All elements in order, from either end.
    pub fn iter(&self) -> Iter<'_, 'g, V> {
        Iter {
            root: self.root,
            rest: 0..self.len(),
            of: PhantomData,
        }
    }
}

/// Elements of a vector. After an error there are no further ones.
pub struct Iter<'r, 'g, V: View<'g>> {
    root: Root<'g, V>,
    rest: Range<u64>,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Iter<'_, 'g, V> {
    fn copy(&mut self, index: u64) -> Result<Vec<u8>, Error> {
        let copied = at(self.root, index).and_then(Obj::to_vec);
        if copied.is_err() {
            self.rest = 0..0;
        }
        copied
    }
}

impl<'g, V: View<'g>> Iterator for Iter<'_, 'g, V> {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.rest.next()?;
        Some(self.copy(index))
    }
}

impl<'g, V: View<'g>> DoubleEndedIterator for Iter<'_, 'g, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let index = self.rest.next_back()?;
        Some(self.copy(index))
    }
}

impl<'g, V: View<'g>> core::iter::FusedIterator for Iter<'_, 'g, V> {}

/// Looks at every element; the caller holds the lock. Ends at the first finding behind which the
/// rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>>(root: Root<'g, V>) -> Vec<String> {
    let mut findings = Vec::new();
    if let Err(error) = walk(root, &mut findings) {
        findings.push(error.to_string());
    }
    findings
}

fn walk<'g, V: View<'g>>(root: Root<'g, V>, findings: &mut Vec<String>) -> Result<(), Error> {
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
