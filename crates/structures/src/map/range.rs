//! Iterating over the entries between two bounds, from either end.

use core::ops::Bound;

use firn_heap::{Error, Obj, Raw, View};

use super::entry;
use super::node::MapRoot;
use super::path::{Path, Step};
use crate::protocol::{Part, Walk, WalkBack};
use crate::reader::Item;

/// Leaves without entries that an iteration accepts. They are rare: only a removal in a full pool leaves one.
const EMPTY_LEAVES: u64 = 1 << 20;

/// The two ends of a range of keys.
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

/// The rest of a range.
enum Left<'g, V: View<'g>> {
    /// Before the next entry, and behind the last one.
    Between(Path<'g, V>, Path<'g, V>),
    /// Nothing, because an end could not be found.
    Failed(Error),
    Nothing,
}

/// Entries in the order of their keys, from either end.
///
/// Each step takes constant time on average.
pub struct Range<'g, V: View<'g>> {
    left: Left<'g, V>,
    /// Leaves that may still be visited: damaged nodes cannot lead in a circle.
    leaves_left: u64,
}

impl<'g, V: View<'g>> Range<'g, V> {
    /// The entries within these bounds. If damage hides an end, the first step returns the error.
    pub(crate) fn new(root: Obj<'g, MapRoot, V>, bounds: Bounds<'_>) -> Self {
        let left = match bounds.are_reversed() {
            true => Ok(Left::Nothing),
            false => ends(root, bounds).map(|(front, back)| Left::Between(front, back)),
        };
        Self {
            left: left.unwrap_or_else(Left::Failed),
            leaves_left: crate::plausible_len(root.view(), root.load(MapRoot::LEN)) + EMPTY_LEAVES,
        }
    }

    /// Moves to the next entry, forward or backward from the end.
    #[inline]
    pub(crate) fn go(&mut self, forward: bool) -> Result<Option<entry::Entry<'g, V>>, Error> {
        let Left::Between(front, back) = &mut self.left else {
            return self.failure();
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

    #[cold]
    fn failure<T>(&mut self) -> Result<Option<T>, Error> {
        match core::mem::replace(&mut self.left, Left::Nothing) {
            Left::Failed(error) => Err(error),
            _ => Ok(None),
        }
    }
}

impl<'g, V: View<'g>> Walk for Range<'g, V> {
    type Found = Part<'g, Raw, V>;
    type Item<'r> = Item<'r, Self::Found>;

    #[inline]
    fn step(&mut self) -> Result<Option<Self::Found>, Error> {
        Ok(self.go(true)?.map(Part))
    }

    fn end(&mut self) {
        self.left = Left::Nothing;
    }

    #[inline]
    fn item<'r>(found: Self::Found) -> Self::Item<'r> {
        Item::new(found)
    }
}

impl<'g, V: View<'g>> WalkBack for Range<'g, V> {
    fn step_back(&mut self) -> Result<Option<Self::Found>, Error> {
        Ok(self.go(false)?.map(Part))
    }
}

/// The paths before the first entry within these bounds, and behind the last.
fn ends<'g, V: View<'g>>(
    root: Obj<'g, MapRoot, V>,
    bounds: Bounds<'_>,
) -> Result<(Path<'g, V>, Path<'g, V>), Error> {
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
    Ok((front, back))
}

/// The path behind `key`.
fn behind<'g, V: View<'g>>(root: Obj<'g, MapRoot, V>, key: &[u8]) -> Result<Path<'g, V>, Error> {
    let (mut path, there) = Path::to(root, key)?;
    if let (true, Some(Step { place, .. })) = (there, path.steps.last_mut()) {
        *place += 1;
    }
    Ok(path)
}

/// The least string above all with the prefix `prefix`; `None` if there is none.
pub(crate) fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}
