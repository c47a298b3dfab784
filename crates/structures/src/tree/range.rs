//! Iterating over the entries between two bounds, from either end.

use core::ops::{Bound, RangeBounds};

use firn_heap::{Error, Obj, View};

use super::damaged;
use super::kind::{Cursor, Direction, Found, Kind};
use crate::protocol::{Part, Walk, WalkBack};
use crate::reader::Item;

/// Entries in the order of their keys, from either end.
///
/// Each step takes constant time on average.
pub struct Range<'g, V: View<'g>, K: Kind> {
    root: Obj<'g, <K as Kind>::Root, V>,
    /// Least and greatest key to come; `None` when there is nothing left. Each step narrows it, so
    /// damaged links cannot lead in a circle, and the two ends need not know each other.
    left: Option<(u64, u64)>,
    up: Option<K::Cursor<'g, V>>,
    down: Option<K::Cursor<'g, V>>,
}

impl<'g, V: View<'g>, K: Kind> Range<'g, V, K> {
    pub(crate) fn new(root: Obj<'g, <K as Kind>::Root, V>, bounds: &impl RangeBounds<u64>) -> Self {
        let low = match bounds.start_bound() {
            Bound::Unbounded => Some(0),
            Bound::Included(&key) => Some(key),
            Bound::Excluded(&key) => key.checked_add(1),
        };
        let high = match bounds.end_bound() {
            Bound::Unbounded => Some(u64::MAX),
            Bound::Included(&key) => Some(key),
            Bound::Excluded(&key) => key.checked_sub(1),
        };
        Self {
            root,
            left: low.zip(high).filter(|(low, high)| low <= high),
            up: None,
            down: None,
        }
    }

    #[inline]
    pub(crate) fn go(&mut self, direction: Direction) -> Result<Option<Found<'g, V, K>>, Error> {
        let Some((low, high)) = self.left.take() else {
            return Ok(None);
        };
        let (cursor, from) = match direction {
            Direction::Up => (&mut self.up, low),
            Direction::Down => (&mut self.down, high),
        };
        let cursor = match cursor {
            Some(cursor) => cursor,
            none => none.insert(K::Cursor::seek(Part(self.root), direction, from)?),
        };
        let Some((key, spot)) = cursor.step()? else {
            return Ok(None);
        };
        let (behind, beyond) = match direction {
            Direction::Up => (key < low, key > high),
            Direction::Down => (key > high, key < low),
        };
        if behind {
            return Err(damaged("keys of a tree that are out of order", self.root));
        }
        if beyond {
            return Ok(None);
        }
        self.left = match direction {
            Direction::Up => key.checked_add(1).map(|low| (low, high)),
            Direction::Down => key.checked_sub(1).map(|high| (low, high)),
        };
        self.left = self.left.filter(|(low, high)| low <= high);
        Ok(Some((key, spot)))
    }
}

impl<'g, V: View<'g>, K: Kind> Walk for Range<'g, V, K> {
    type Found = Found<'g, V, K>;
    type Item<'r> = Item<'r, Found<'g, V, K>>;

    #[inline]
    fn step(&mut self) -> Result<Option<Self::Found>, Error> {
        self.go(Direction::Up)
    }

    #[inline]
    fn end(&mut self) {
        self.left = None;
    }

    #[inline]
    fn item<'r>(found: Self::Found) -> Self::Item<'r> {
        Item::new(found)
    }
}

impl<'g, V: View<'g>, K: Kind> WalkBack for Range<'g, V, K> {
    fn step_back(&mut self) -> Result<Option<Self::Found>, Error> {
        self.go(Direction::Down)
    }
}
