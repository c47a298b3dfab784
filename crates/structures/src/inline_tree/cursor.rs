//! Iterating in order, in either direction.

use firn_heap::{Error, View};

use super::leaf::{LEAF_SLOTS, LeafAt, Spot};
use super::path::Path;
use super::{Inline, InlineRoot};
use crate::protocol::Part;
use crate::tree::kind::{Cursor, Direction};

/// Slots of a leaf that are still to come.
struct Pending<'g, V: View<'g>> {
    leaf: LeafAt<'g, V>,
    sorted: [usize; LEAF_SLOTS],
    /// Places of `sorted`: the first, and the end.
    places: core::ops::Range<usize>,
}

impl<'g, V: View<'g>> Pending<'g, V> {
    fn all(leaf: LeafAt<'g, V>) -> Self {
        let (sorted, count) = leaf.sorted();
        Self {
            leaf,
            sorted,
            places: 0..count,
        }
    }
}

/// The path to a leaf, and the leaf's slots to come.
pub struct InOrder<'g, V: View<'g>> {
    direction: Direction,
    path: Path<'g, V>,
    pending: Option<Pending<'g, V>>,
}

impl<'g, V: View<'g>> InOrder<'g, V> {
    /// Goes on to the next leaf.
    #[inline]
    fn turn(&mut self) -> Result<Option<Pending<'g, V>>, Error> {
        let direction = self.direction;
        let steps = &mut self.path.steps;
        let next = |place: usize, count: usize| match direction {
            Direction::Up => Some(place + 1).filter(|&next| next < count),
            Direction::Down => place.checked_sub(1),
        };
        let may = steps
            .iter()
            .rposition(|step| next(step.place, step.branch.count()).is_some());
        let Some(turn) = may else { return Ok(None) };
        let step = &mut steps[turn];
        step.place = next(step.place, step.branch.count()).unwrap_or(step.place);
        for below in turn + 1..steps.len() {
            let branch = steps[below - 1].branch.branch(steps[below - 1].place)?;
            steps[below].place = match direction {
                Direction::Up => 0,
                Direction::Down => branch.count() - 1,
            };
            steps[below].branch = branch;
        }
        Ok(self.path.leaf()?.map(Pending::all))
    }
}

impl<'g, V: View<'g>> Cursor<'g, V, Inline> for InOrder<'g, V> {
    fn seek(
        Part(root): Part<'g, InlineRoot, V>,
        direction: Direction,
        key: u64,
    ) -> Result<Self, Error> {
        let path = Path::to(root, key)?;
        let mut pending = path.leaf()?.map(Pending::all);
        if let Some(Pending {
            leaf,
            sorted,
            places,
        }) = &mut pending
        {
            let keys = sorted[places.clone()].iter().map(|&slot| leaf.key(slot));
            match direction {
                Direction::Up => places.start = keys.filter(|&k| k < key).count(),
                Direction::Down => places.end = keys.filter(|&k| k <= key).count(),
            }
        }
        Ok(Self {
            direction,
            path,
            pending,
        })
    }

    #[inline]
    fn step(&mut self) -> Result<Option<(u64, Spot<'g, V>)>, Error> {
        while let Some(pending) = &mut self.pending {
            let place = match self.direction {
                Direction::Up => pending.places.next(),
                Direction::Down => pending.places.next_back(),
            };
            if let Some(place) = place {
                let (leaf, slot) = (pending.leaf, pending.sorted[place]);
                return Ok(Some((leaf.key(slot), Spot { leaf, slot })));
            }
            // No leaf is empty, so this returns here with an entry, or ends.
            self.pending = self.turn()?;
        }
        Ok(None)
    }
}
