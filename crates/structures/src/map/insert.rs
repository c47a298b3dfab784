//! Inserting: into a free slot, or by splitting nodes on the way back to the top.

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

use super::entry::{self, Entry};
use super::fence::{Fences, prefix_of};
use super::key::word_at;
use super::node::{MAX_HEIGHT, MapRoot, Node, Visit};
use super::order::FANOUT;
use super::path::{Path, Step};
use super::rebuild::{InnerItem, LeafItem, LeafItems, Separator, store_inner, take_inner};
use crate::reclaim::free_unlinked;

/// Entries that stay in the left node when an inner node is split at the map's end.
const LEFT_AT_END: usize = FANOUT - 1;

/// One insert: its place and its content.
struct Insert<'k, 't, M: Medium> {
    tx: Tx<'t, M>,
    root: Obj<'t, MapRoot, Tx<'t, M>>,
    path: Path<'t, Tx<'t, M>>,
    key: &'k [u8],
}

/// Inserts or replaces. Appends the replaced value to `old`, if requested. Returns whether there was one. The caller
/// holds the write lock.
pub(crate) fn insert<'t, M: Medium>(
    root: Obj<'t, MapRoot, Tx<'t, M>>,
    key: &[u8],
    value: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    entry::check_key(key)?;
    let tx = root.view();
    let (path, there) = Path::to(root, key)?;
    if let (true, Some(&Step { visit, place })) = (there, path.steps.last()) {
        replace(tx, &visit, place, key, value, old)?;
        return Ok(true);
    }
    let insert = Insert {
        tx,
        root,
        path,
        key,
    };
    match insert.path.steps.last() {
        Some(&Step { visit, place }) if visit.count() < FANOUT => {
            visit.check_for_change()?;
            // The only step that may fail for lack of space, before anything is changed.
            let fresh = entry::alloc(tx, key, value)?;
            let mut leaf = visit;
            leaf.set_slot(
                leaf.order.slot(leaf.count()),
                word_at(key, leaf.skip),
                Some(fresh),
            );
            leaf.set_order(leaf.order.with_inserted(place));
        }
        Some(_) => tx.nested(|_| insert.split_leaf(value))?,
        None => tx.nested(|_| insert.first_leaf(value))?,
    }
    root.store(MapRoot::LEN, root.load(MapRoot::LEN).wrapping_add(1));
    Ok(false)
}

/// Replaces the value of the entry at `place` of `leaf`.
fn replace<'t, M: Medium>(
    tx: Tx<'t, M>,
    leaf: &Visit<'t, Tx<'t, M>>,
    place: usize,
    key: &[u8],
    value: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<(), Error> {
    let present = leaf.entry(place)?;
    if let Some(old) = old {
        entry::value_into(present, old)?;
    }
    if entry::overwrite(present, value)? {
        return Ok(());
    }
    let fresh = entry::alloc(tx, key, value)?;
    leaf.set_key(leaf.order.slot(place), Some(fresh));
    free_unlinked(tx, present)
}

impl<'t, M: Medium> Insert<'_, 't, M> {
    fn first_leaf(&self, value: &[u8]) -> Result<(), Error> {
        let mut leaf = Visit::new_leaf(self.tx)?;
        let entry = entry::alloc(self.tx, self.key, value)?;
        let item = LeafItem {
            word: word_at(self.key, 0),
            entry,
        };
        let items = LeafItems {
            skip: 0,
            items: vec![item],
        };
        items.store(&mut leaf, 0)?;
        self.root.link(MapRoot::TOP, Some(leaf.node));
        self.root.store(MapRoot::HEIGHT, 1);
        Ok(())
    }

    fn split_leaf(&self, value: &[u8]) -> Result<(), Error> {
        let depth = self.path.steps.len() - 1;
        let Step {
            visit: mut left,
            place,
        } = self.path.steps[depth];
        let entry: Entry<'t, Tx<'t, M>> = entry::alloc(self.tx, self.key, value)?;
        let mut items = LeafItems::take(&left)?;
        let word = word_at(self.key, left.skip);
        items.items.insert(place, LeafItem { word, entry });

        // Ascending and descending inserts leave full nodes behind.
        let total = items.items.len();
        let above = &self.path.steps[..depth];
        let at = if place + 1 == total && above.iter().all(|s| s.place + 1 == s.visit.count()) {
            total - 1
        } else if place == 0 && above.iter().all(|s| s.place == 0) {
            1
        } else {
            total / 2
        };
        let separator = items.separator(at)?;
        let fences = Fences::of(&self.path, depth, self.key)?;
        let mut right = Visit::new_leaf(self.tx)?;
        let (low, high) = (fences.low.as_deref(), fences.high.as_deref());
        items
            .split_off(at)
            .store(&mut right, Fences::common(Some(&separator), high))?;
        items.store(&mut left, Fences::common(low, Some(&separator)))?;
        let separator = Separator {
            key: separator,
            object: None,
        };
        self.add_child(depth, separator, right.node)
    }

    /// Inserts `child` behind the node at `depth` of the path.
    fn add_child(
        &self,
        depth: usize,
        separator: Separator<'t, M>,
        child: Obj<'t, Node, Tx<'t, M>>,
    ) -> Result<(), Error> {
        let item = InnerItem { separator, child };
        let Some(above) = depth.checked_sub(1) else {
            return self.grow(item);
        };
        let Step {
            visit: mut parent,
            place,
        } = self.path.steps[above];
        if parent.count() == FANOUT {
            return self.split_inner(above, item);
        }
        parent.check_for_change()?;
        let slot = parent.order.slot(parent.count());
        let (word, object) = item.separator.express(self.tx, parent.skip)?;
        parent.set_slot(slot, word, object);
        parent.children()?.set(slot, Some(item.child))?;
        parent.set_order(parent.order.with_inserted(place + 1));
        Ok(())
    }

    fn split_inner(&self, depth: usize, item: InnerItem<'t, M>) -> Result<(), Error> {
        let Step {
            visit: mut left,
            place,
        } = self.path.steps[depth];
        let mut items = take_inner(&left, prefix_of(&left, self.key)?)?;
        items.insert(place + 1, item);
        let at_end = self.path.steps[..=depth]
            .iter()
            .all(|s| s.place + 1 == s.visit.count());
        let at = if at_end { LEFT_AT_END } else { items.len() / 2 };
        let mut moved = items.split_off(at);
        let up = core::mem::replace(&mut moved[0].separator, Separator::NONE);
        let fences = Fences::of(&self.path, depth, self.key)?;
        let mut right = Visit::new_inner(self.tx)?;
        let (low, high) = (fences.low.as_deref(), fences.high.as_deref());
        let common = Fences::common(Some(&up.key), high);
        store_inner(self.tx, &mut right, moved, common)?;
        let common = Fences::common(low, Some(&up.key));
        store_inner(self.tx, &mut left, items, common)?;
        self.add_child(depth, up, right.node)
    }

    /// Adds a level on top, with the old topmost node and `item`.
    fn grow(&self, item: InnerItem<'t, M>) -> Result<(), Error> {
        let height = self.path.steps.len();
        if height == MAX_HEIGHT {
            return Err(Error::Damaged {
                what: "the height of a map",
                at: self.root.address().0,
            });
        }
        let mut top = Visit::new_inner(self.tx)?;
        let first = InnerItem {
            separator: Separator::NONE,
            child: self.path.steps[0].visit.node,
        };
        store_inner(self.tx, &mut top, vec![first, item], 0)?;
        self.root.link(MapRoot::TOP, Some(top.node));
        self.root.store(MapRoot::HEIGHT, height as u64 + 1);
        Ok(())
    }
}
