//! Iterating over the entries between two bounds, from either end.

use core::marker::PhantomData;
use core::ops::Bound;

use firn_heap::{Error, Obj, View};

use super::node::MapRoot;
use super::path::{Path, Step};
use super::{OwnedEntry, entry};

/// Leaves without entries that an iteration puts up with. They are rare: only a removal in a full
/// pool leaves one.
const EMPTY_LEAVES: u64 = 1 << 20;

/// Two ends of a range of keys.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'k> {
    pub(crate) start: Bound<&'k [u8]>,
    pub(crate) end: Bound<&'k [u8]>,
}

impl Bounds<'_> {
    pub(crate) const ALL: Self = Self {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };

    fn are_reversed(&self) -> bool {
        match (self.start, self.end) {
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Included(end) | Bound::Excluded(end),
            ) => start > end,
            _ => false,
        }
    }
}

/// A key and its value, while the map's lock is held.
pub struct Entry<'r, 'g, V: View<'g>> {
    object: entry::Entry<'g, V>,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Entry<'_, 'g, V> {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Error> {
        entry::key(self.object)
    }

    /// The value.
    pub fn value(&self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.value_into(&mut value)?;
        Ok(value)
    }

    /// Appends the key to `into`.
    pub fn key_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        entry::key_into(self.object, into)
    }

    /// Appends the value to `into`.
    pub fn value_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        entry::value_into(self.object, into)
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> Result<usize, Error> {
        Ok(entry::parts(self.object)?.value_len)
    }

    /// Key and value.
    pub fn to_pair(&self) -> Result<OwnedEntry, Error> {
        Ok((self.key()?, self.value()?))
    }
}

/// Entries in the order of their keys, and back from the other end.
///
/// Each step takes constant time on average. After an error there are no further entries.
pub struct Range<'r, 'g, V: View<'g>> {
    /// In front of the next entry, behind the last one; `None` when there is nothing left.
    ends: Option<(Path<'g, V>, Path<'g, V>)>,
    /// Leaves that may still be visited: damaged nodes cannot lead in a circle.
    leaves_left: u64,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Range<'_, 'g, V> {
    pub(crate) fn new(root: Obj<'g, MapRoot, V>, bounds: Bounds<'_>) -> Result<Self, Error> {
        let ends = if bounds.are_reversed() {
            None
        } else {
            let front = match bounds.start {
                Bound::Unbounded => Path::first(root)?,
                Bound::Included(key) => Path::to(root, key)?.0,
                Bound::Excluded(key) => behind(root, key)?,
            };
            let back = match bounds.end {
                Bound::Unbounded => Path::end(root)?,
                Bound::Included(key) => behind(root, key)?,
                Bound::Excluded(key) => Path::to(root, key)?.0,
            };
            Some((front, back))
        };
        Ok(Self {
            ends,
            leaves_left: crate::plausible_len(root.view(), root.load(MapRoot::LEN)) + EMPTY_LEAVES,
            of: PhantomData,
        })
    }

    fn step(&mut self, forward: bool) -> Result<Option<entry::Entry<'g, V>>, Error> {
        let Some((front, back)) = &mut self.ends else {
            return Ok(None);
        };
        loop {
            let (Some(first), Some(last)) = (front.steps.last_mut(), back.steps.last_mut()) else {
                return Ok(None);
            };
            if first.visit.node == last.visit.node && first.place >= last.place {
                return Ok(None);
            }
            if forward && first.place < first.visit.count() {
                first.place += 1;
                return first.visit.entry(first.place - 1).map(Some);
            }
            if !forward && last.place > 0 {
                last.place -= 1;
                return last.visit.entry(last.place).map(Some);
            }
            self.leaves_left = self
                .leaves_left
                .checked_sub(1)
                .ok_or_else(|| first.visit.damaged("leaves of a map that do not end"))?;
            let more = if forward {
                front.next_leaf()?
            } else {
                back.previous_leaf()?
            };
            if !more {
                return Ok(None);
            }
        }
    }

    fn step_or_end(&mut self, forward: bool) -> Option<Result<Entry<'static, 'g, V>, Error>> {
        let found = self.step(forward);
        if !matches!(found, Ok(Some(_))) {
            self.ends = None;
        }
        let entry = |object| Entry {
            object,
            of: PhantomData,
        };
        found.map(|found| found.map(entry)).transpose()
    }
}

/// The path behind `key`.
fn behind<'g, V: View<'g>>(root: Obj<'g, MapRoot, V>, key: &[u8]) -> Result<Path<'g, V>, Error> {
    let (mut path, there) = Path::to(root, key)?;
    if let (true, Some(Step { place, .. })) = (there, path.steps.last_mut()) {
        *place += 1;
    }
    Ok(path)
}

impl<'r, 'g, V: View<'g>> Iterator for Range<'r, 'g, V> {
    type Item = Result<Entry<'r, 'g, V>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step_or_end(true)
    }
}

impl<'g, V: View<'g>> DoubleEndedIterator for Range<'_, 'g, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step_or_end(false)
    }
}

impl<'g, V: View<'g>> core::iter::FusedIterator for Range<'_, 'g, V> {}
