//! Two neighbours under one parent: merging them, or making them equally full.

use firn_heap::{Error, Tx};
use firn_media::Medium;

use super::fence::{Fences, prefix_of, separator_at};
use super::node::Visit;
use super::path::Path;
use super::rebuild::{InnerItem, LeafItems, Separator, store_inner, take_inner};
use super::remove::free_node;
use crate::reclaim::free_unlinked;

/// Neighbours, with their outer fences and the separator between them.
pub(crate) struct Pair<'t, M: Medium> {
    tx: Tx<'t, M>,
    parent: Visit<'t, Tx<'t, M>>,
    /// Place of the right one in the parent.
    place: usize,
    left: Visit<'t, Tx<'t, M>>,
    right: Visit<'t, Tx<'t, M>>,
    low: Option<Vec<u8>>,
    middle: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl<'t, M: Medium> Pair<'t, M> {
    /// The node at `depth` of the path to `key`, and the emptier of its neighbours. `None` if it is
    /// an only child.
    pub(crate) fn choose(
        path: &Path<'t, Tx<'t, M>>,
        depth: usize,
        key: &[u8],
    ) -> Result<Option<Self>, Error> {
        let level = path.steps.len() - 1 - depth;
        let parent = Visit::new(path.steps[depth - 1].visit.node)?;
        let place = path.steps[depth - 1].place;
        let visit_at = |place: usize| parent.descend(place, level);
        let before = place.checked_sub(1).map(visit_at).transpose()?;
        let behind = Some(place + 1).filter(|&p| p < parent.count());
        let behind = behind.map(visit_at).transpose()?;
        let right = match (before, behind) {
            (Some(before), Some(behind)) if before.count() > behind.count() => place + 1,
            (Some(_), _) => place,
            (None, Some(_)) => place + 1,
            (None, None) => return Ok(None),
        };
        Self::at(path, depth, key, right).map(Some)
    }

    /// The children at places `right - 1` and `right` of the node above `depth` of the path to `key`.
    fn at(
        path: &Path<'t, Tx<'t, M>>,
        depth: usize,
        key: &[u8],
        right: usize,
    ) -> Result<Self, Error> {
        let level = path.steps.len() - 1 - depth;
        let parent = Visit::new(path.steps[depth - 1].visit.node)?;
        let place = right;
        let left = parent.descend(place - 1, level)?;
        let right = parent.descend(place, level)?;
        let prefix = prefix_of(&parent, key)?;
        let around = Fences::of(path, depth - 1, key)?;
        let low = match place {
            1 => around.low,
            _ => Some(separator_at(&parent, place - 1, prefix)?),
        };
        let high = if place + 1 == parent.count() {
            around.high
        } else {
            Some(separator_at(&parent, place + 1, prefix)?)
        };
        Ok(Self {
            tx: parent.node.view(),
            place,
            left,
            right,
            low,
            middle: separator_at(&parent, place, prefix)?,
            high,
            parent,
        })
    }

    /// Entries of both.
    pub(crate) fn total(&self) -> usize {
        self.left.count() + self.right.count()
    }

    /// Moves everything to the left node and frees the right one.
    pub(crate) fn merge(mut self) -> Result<(), Error> {
        self.parent.check_for_change()?;
        let slot = self.parent.order.slot(self.place);
        let common = Fences::common(self.low.as_deref(), self.high.as_deref());
        let object = self.parent.key(self.place);
        if self.left.is_leaf() {
            let mut items = LeafItems::take(&self.left)?;
            items.append(LeafItems::take(&self.right)?)?;
            items.store(&mut self.left, common)?;
            if let Some(object) = object {
                free_unlinked(self.tx, object)?;
            }
        } else {
            let items = self.take_both()?;
            store_inner(self.tx, &mut self.left, items, common)?;
        }
        self.parent.set_key(slot, None);
        self.parent.children()?.set(slot, None)?;
        self.parent
            .set_order(self.parent.order.with_removed(self.place));
        free_node(self.tx, &self.right)
    }

    /// Distributes the entries evenly.
    pub(crate) fn balance(self) -> Result<(), Error> {
        let half = self.total() / 2;
        self.distribute(half)
    }

    /// Leaves `at` entries in the left node and puts the others into the right one.
    fn distribute(mut self, at: usize) -> Result<(), Error> {
        self.parent.check_for_change()?;
        let slot = self.parent.order.slot(self.place);
        let (low, high) = (self.low.take(), self.high.take());
        let separator = if self.left.is_leaf() {
            let mut items = LeafItems::take(&self.left)?;
            items.append(LeafItems::take(&self.right)?)?;
            let separator = items.separator(at)?;
            let common = Fences::common(Some(&separator), high.as_deref());
            items.split_off(at).store(&mut self.right, common)?;
            let common = Fences::common(low.as_deref(), Some(&separator));
            items.store(&mut self.left, common)?;
            if let Some(object) = self.parent.key(self.place) {
                free_unlinked(self.tx, object)?;
            }
            Separator {
                key: separator,
                object: None,
            }
        } else {
            self.low = low.clone();
            let mut items = self.take_both()?;
            let mut moved = items.split_off(at);
            let up = core::mem::replace(&mut moved[0].separator, Separator::NONE);
            let common = Fences::common(Some(&up.key), high.as_deref());
            store_inner(self.tx, &mut self.right, moved, common)?;
            let common = Fences::common(low.as_deref(), Some(&up.key));
            store_inner(self.tx, &mut self.left, items, common)?;
            up
        };
        let (word, object) = separator.express(self.tx, self.parent.skip)?;
        self.parent.set_slot(slot, word, object);
        Ok(())
    }

    /// The children of two inner nodes; the parent's separator comes down between them, with its object.
    fn take_both(&self) -> Result<Vec<InnerItem<'t, M>>, Error> {
        let low = self.low.as_deref().unwrap_or(&[]);
        let mut items = take_inner(&self.left, prefix_of(&self.left, low)?)?;
        let mut behind = take_inner(&self.right, prefix_of(&self.right, &self.middle)?)?;
        if let Some(first) = behind.first_mut() {
            first.separator = Separator {
                key: self.middle.clone(),
                object: self.parent.key(self.place),
            };
        }
        items.append(&mut behind);
        Ok(items)
    }
}

/// A node with both of its neighbours.
pub(crate) struct Three<'p, 'k, 't, M: Medium> {
    path: &'p Path<'t, Tx<'t, M>>,
    depth: usize,
    key: &'k [u8],
    /// Place of the right one in the parent.
    last: usize,
    total: usize,
}

impl<'p, 'k, 't, M: Medium> Three<'p, 'k, 't, M> {
    /// The node at `depth` of the path to `key`, and its neighbours. `None` unless it has both.
    pub(crate) fn around(
        path: &'p Path<'t, Tx<'t, M>>,
        depth: usize,
        key: &'k [u8],
    ) -> Result<Option<Self>, Error> {
        let level = path.steps.len() - 1 - depth;
        let parent = Visit::new(path.steps[depth - 1].visit.node)?;
        let last = path.steps[depth - 1].place + 1;
        if last < 2 || last >= parent.count() {
            return Ok(None);
        }
        let mut total = 0;
        for place in last - 2..=last {
            total += parent.descend(place, level)?.count();
        }
        Ok(Some(Self {
            path,
            depth,
            key,
            last,
            total,
        }))
    }

    /// Entries of all three.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Distributes everything evenly over two of them, and frees one. Half of the entries fit into a node.
    pub(crate) fn spread(self) -> Result<(), Error> {
        let pair = |right| Pair::at(self.path, self.depth, self.key, right);
        let (first, half) = (pair(self.last - 1)?, self.total / 2);
        if first.total() <= half {
            return first.merge();
        }
        first.distribute(half)?;
        pair(self.last)?.merge()
    }
}
