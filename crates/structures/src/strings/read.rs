//! Reading many strings, iterating over all, and checking them.

use core::ops::Range;
use std::collections::HashSet;

use firn_heap::{Error, Obj, View};

use super::{Fixed, Root, StringsRoot, string, strings};
use crate::element;
use crate::protocol::{MAX_FINDINGS, Part, Walk, WalkBack};
use crate::reader::Reader;
use crate::tree::kind::ABREAST;

/// Bytes of a string that are prefetched before its length is known.
const EXPECTED_BYTES: u64 = 128;

impl<'g, V: View<'g>> Reader<'_, 'g, V, Fixed> {
    /// Passes each of the strings at `indices` to `each`, in their order, with the position of its index in `indices`;
    /// `None` for a string that is clear, or beyond the array.
    ///
    /// While one string is fetched from memory others are requested. That takes a fraction of the time of as many calls
    /// of [`Reader::get_into`] where the array is larger than the processor's caches.
    ///
    /// Errors: the array is damaged; some or all strings before the failing index were passed on.
    pub fn get_each(
        &self,
        indices: &[u64],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let (mut bytes, mut place) = (Vec::new(), 0);
        for indices in indices.chunks(ABREAST) {
            let mut found = [None; ABREAST];
            for (found, &index) in found.iter_mut().zip(indices) {
                let string = match (self.at_hand, usize::try_from(index)) {
                    (Some(Part(strings)), Ok(index)) => strings.get(index),
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
}

/// Elements of an array, from either end; `None` for one that is clear.
pub struct Strings<'g, V: View<'g>> {
    root: Root<'g, V>,
    rest: Range<u64>,
}

impl<'g, V: View<'g>> Strings<'g, V> {
    pub(crate) fn new(root: Root<'g, V>) -> Self {
        let rest = 0..root.load(StringsRoot::LEN);
        Self { root, rest }
    }

    #[inline]
    fn copy(&self, index: Option<u64>) -> Result<Option<Option<Vec<u8>>>, Error> {
        let copied = index.map(|index| string(self.root, index)?.map(Obj::to_vec).transpose());
        copied.transpose()
    }
}

impl<'g, V: View<'g>> Walk for Strings<'g, V> {
    type Found = Option<Vec<u8>>;
    type Item<'r> = Option<Vec<u8>>;

    #[inline]
    fn step(&mut self) -> Result<Option<Self::Found>, Error> {
        let index = self.rest.next();
        self.copy(index)
    }

    fn end(&mut self) {
        self.rest = 0..0;
    }

    #[inline]
    fn item<'r>(found: Self::Found) -> Self::Item<'r> {
        found
    }
}

impl<'g, V: View<'g>> WalkBack for Strings<'g, V> {
    fn step_back(&mut self) -> Result<Option<Self::Found>, Error> {
        let index = self.rest.next_back();
        self.copy(index)
    }
}

/// Checks every element; the caller holds the lock. Ends at the first finding after which the rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>>(
    root: Root<'g, V>,
    findings: &mut Vec<String>,
) -> Result<(), Error> {
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
