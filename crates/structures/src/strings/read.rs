//! Reading under a lock that is held.

use core::marker::PhantomData;
use core::ops::Range;
use std::collections::HashSet;

use firn_heap::{Bytes, Error, Obj, ReadLock, Refs, View};

use super::{Root, StringsRoot, string, strings};
use crate::element::{self, Element};
use crate::tree::kind::ABREAST;

/// Bytes of a string that are on their way before its length is known.
const EXPECTED_BYTES: u64 = 128;
/// Findings after which a check ends.
const MAX_FINDINGS: usize = 100;

/// An array that no writer changes while this lives. See [`super::StringArray::read`].
pub struct StringsReader<'l, 'g, V: View<'g>> {
    root: Root<'g, V>,
    /// The strings, which stay what they are; `None` if they are not sound, or there are none.
    strings: Option<Obj<'g, Refs<Bytes>, V>>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the array through the value that this was made of.
    of: PhantomData<&'l ()>,
}

impl<'g, V: View<'g>> StringsReader<'_, 'g, V> {
    #[inline]
    pub(crate) fn new(root: Root<'g, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            strings: strings(root).ok(),
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of elements, clear ones included.
    pub fn len(&self) -> u64 {
        self.root.load(StringsRoot::LEN)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn string(&self, index: u64) -> Result<Option<Element<'g, V>>, Error> {
        match (self.strings, usize::try_from(index)) {
            (Some(strings), Ok(index)) => strings.get(index).map(element::sound).transpose(),
            _ => string(self.root, index),
        }
    }

    /// The string at `index`; `None` if it is clear, or beyond the array.
    pub fn get(&self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        self.string(index)?.map(Obj::to_vec).transpose()
    }

    /// Appends the string at `index` to `into`, without another allocation if it has room. Returns
    /// whether there is one.
    #[inline]
    pub fn get_into(&self, index: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        match self.string(index)? {
            Some(string) => string.read_into(into).map(|()| true),
            None => Ok(false),
        }
    }

    /// Hands each of the strings at `indices` to `each`, with the place of its index among them, in their
    /// order; `None` for one that is clear, or beyond the array.
    ///
    /// While one string is on its way from memory others are asked for. That takes a fraction of the time of
    /// as many calls of [`StringsReader::get_into`] where the array is larger than the processor's caches.
    ///
    /// Errors: the array is damaged; the strings before the index that found it were handed over, perhaps
    /// not all.
    pub fn get_each(
        &self,
        indices: &[u64],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let (mut bytes, mut place) = (Vec::new(), 0);
        for indices in indices.chunks(ABREAST) {
            let mut found = [None; ABREAST];
            for (found, &index) in found.iter_mut().zip(indices) {
                let string = match (self.strings, usize::try_from(index)) {
                    (Some(strings), Ok(index)) => strings.get(index),
                    _ => string(self.root, index)?,
                };
                if let Some(string) = string {
                    string.expect(EXPECTED_BYTES);
                }
                *found = string;
            }
            for string in &found[..indices.len()] {
                bytes.clear();
                if let Some(string) = string {
                    element::sound(*string)?.read_into(&mut bytes)?;
                }
                each(place, string.is_some().then_some(&bytes));
                place += 1;
            }
        }
        Ok(())
    }

    /// All elements in order, from either end; `None` for one that is clear.
    pub fn iter(&self) -> Iter<'_, 'g, V> {
        Iter {
            root: self.root,
            rest: 0..self.len(),
            of: PhantomData,
        }
    }
}

/// Elements of an array. After an error there are no further ones.
pub struct Iter<'r, 'g, V: View<'g>> {
    root: Root<'g, V>,
    rest: Range<u64>,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Iter<'_, 'g, V> {
    fn copy(&mut self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        let copied = string(self.root, index).and_then(|s| s.map(Obj::to_vec).transpose());
        if copied.is_err() {
            self.rest = 0..0;
        }
        copied
    }
}

impl<'g, V: View<'g>> Iterator for Iter<'_, 'g, V> {
    type Item = Result<Option<Vec<u8>>, Error>;

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
    if root.load(StringsRoot::LEN) == 0 {
        return Ok(());
    }
    let strings = strings(root)?;
    let mut seen = HashSet::new();
    for index in 0..crate::plausible_len(root.view(), strings.len() as u64) {
        let Some(string) = strings.get(index as usize) else {
            continue;
        };
        element::sound(string)?.checked_len()?;
        if !seen.insert(string.address().0) {
            findings.push(format!("the string at {index} is another's too"));
        }
        if findings.len() >= MAX_FINDINGS {
            break;
        }
    }
    Ok(())
}
