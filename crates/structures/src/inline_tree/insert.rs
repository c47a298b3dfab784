//! Inserting: into a free slot, or by splitting nodes on the way back to the top.

use firn_heap::{Error, Tx};
use firn_media::Medium;

use super::branch::{BranchAt, Child};
use super::leaf::{Item, LEAF_SLOTS, Leaf, LeafAt};
use super::path::{MAX_HEIGHT, Path, Root, Step};
use super::{InlineRoot, MAX_VALUE_BYTES};
use crate::map::order::FANOUT;
use crate::reclaim::free_unlinked;
use crate::tree::damaged;

pub(crate) fn insert<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: u64,
    value: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let path = Path::to(root, key)?;
    let Some(mut leaf) = path.leaf()? else {
        return first_leaf(root, key, value).map(|()| false);
    };
    if let Some(slot) = leaf.find(key) {
        if let Some(old) = old {
            leaf.value_into(slot, old);
        }
        leaf.set_value(slot, value);
        return Ok(true);
    }
    match leaf.slots.free() {
        Some(slot) => leaf.fill(slot, key, value),
        None => split_leaf(root, &path, leaf, (key, value))?,
    }
    Ok(false)
}

fn first_leaf<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: u64,
    value: &[u8],
) -> Result<(), Error> {
    root.view().nested(|tx| {
        let leaf = tx.alloc(Leaf::of([(key, value)].into_iter()))?;
        let top = BranchAt::alloc(tx, Child::Leaf(leaf))?;
        root.link(InlineRoot::TOP, Some(top.object));
        root.store(InlineRoot::HEIGHT, 1);
        Ok(())
    })
}

/// Moves the greater entries of a full leaf to a new one, and inserts.
///
/// The new one is written whole, so it takes what it can: the other keeps its entries in their
/// places, and where it does not take the new one only its slots change.
fn split_leaf<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    mut left: LeafAt<'t, Tx<'t, M>>,
    item: Item<'_>,
) -> Result<(), Error> {
    let tx = root.view();
    let (sorted, _) = left.sorted();
    let place = sorted
        .iter()
        .filter(|&&slot| left.key(slot) < item.0)
        .count();
    // In ascending order full leaves are left behind.
    let at_end = place == LEAF_SLOTS && path.is_last(path.steps.len() - 1);
    let stay = if at_end { LEAF_SLOTS } else { LEAF_SLOTS / 2 };
    let in_right = place >= stay;

    let mut values = Vec::with_capacity(LEAF_SLOTS * MAX_VALUE_BYTES);
    let moved: Vec<_> = sorted[stay..]
        .iter()
        .map(|&slot| {
            let start = values.len();
            left.value_into(slot, &mut values);
            (left.key(slot), start..values.len())
        })
        .collect();
    let mut items: Vec<Item<'_>> = moved
        .iter()
        .map(|(key, bytes)| (*key, &values[bytes.clone()]))
        .collect();
    if in_right {
        items.insert(place - stay, item);
    }
    let separator = items[0].0;
    // What may fail for want of space comes before any change.
    let right = tx.alloc(Leaf::of(items.into_iter()))?;
    if let Err(error) = add_child(root, path, separator, Child::Leaf(right)) {
        free_unlinked(tx, right)?;
        return Err(error);
    }
    let slots = sorted[stay..]
        .iter()
        .fold(left.slots, |slots, &slot| slots.with(slot, None));
    if slots != left.slots {
        left.set_slots(slots);
    }
    if !in_right {
        left.fill(sorted[stay], item.0, item.1);
    }
    Ok(())
}

/// Puts a leaf behind the one that the path leads to. Nothing is changed if that fails.
fn add_child<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    key: u64,
    child: Child<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    match path.steps.last() {
        Some(&Step { mut branch, place }) if branch.count() < FANOUT => {
            branch.check_for_change()?;
            branch.add(place + 1, key, child);
            Ok(())
        }
        _ => root
            .view()
            .nested(|_| split_branches(root, path, key, child)),
    }
}

/// Splits the full branches of the path, from the lowest up.
fn split_branches<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    mut key: u64,
    mut child: Child<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    let tx = root.view();
    for depth in (0..path.steps.len()).rev() {
        let Step { mut branch, place } = path.steps[depth];
        branch.check_for_change()?;
        if branch.count() < FANOUT {
            branch.add(place + 1, key, child);
            return Ok(());
        }
        let right = if path.is_last(depth) {
            // The new child alone; its separator goes up.
            BranchAt::alloc(tx, child)?
        } else {
            let (mut right, up) = split_branch(&mut branch, path.level(depth))?;
            match place.checked_sub(branch.count()) {
                Some(beyond) => right.add(beyond + 1, key, child),
                None => branch.add(place + 1, key, child),
            }
            key = up;
            right
        };
        child = Child::Branch(right.object);
    }
    grow(root, path, key, child)
}

/// Moves the upper half of a full branch to a new one, which comes with its separator.
fn split_branch<'t, M: Medium>(
    left: &mut BranchAt<'t, Tx<'t, M>>,
    level: usize,
) -> Result<(BranchAt<'t, Tx<'t, M>>, u64), Error> {
    let tx = left.object.view();
    let at = FANOUT / 2;
    let up = left.key(at);
    let mut right = BranchAt::alloc(tx, left.child(at, level)?)?;
    for place in at + 1..FANOUT {
        right.add(place - at, left.key(place), left.child(place, level)?);
    }
    for place in (at..FANOUT).rev() {
        left.drop_child(place, level);
    }
    Ok((right, up))
}

/// Puts a new level on top, of the old topmost branch and `child`.
fn grow<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    key: u64,
    child: Child<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    let height = path.steps.len();
    if height >= MAX_HEIGHT {
        return Err(damaged("the height of a tree", root));
    }
    let old = Child::Branch(path.steps[0].branch.object);
    let mut top = BranchAt::alloc(root.view(), old)?;
    top.add(1, key, child);
    root.link(InlineRoot::TOP, Some(top.object));
    root.store(InlineRoot::HEIGHT, height as u64 + 1);
    Ok(())
}
