//! Removing, and giving back the space of sparse nodes. Allocates nothing.

use std::collections::HashSet;

use firn_heap::{Error, Tx};
use firn_media::Medium;

use super::InlineRoot;
use super::branch::{Branch, BranchAt};
use super::leaf::{LEAF_SLOTS, LeafAt, Slots};
use super::path::{self, LEAF_BYTES, Landing, Path, Root, Step};
use crate::map::order::FANOUT;
use crate::reclaim::free_unlinked;
use crate::tree::damaged;

/// A leaf with this many entries is merged into a neighbour that then still has a free slot.
const SPARSE_LEAF: usize = 1;
/// A branch with at most this many children seeks a neighbour to merge with.
const SPARSE_BRANCH: usize = FANOUT / 4;
/// Two branches with at most this many children together become one: some slots stay free, so that the next insert does
/// not split it again.
const MERGED: usize = FANOUT * 3 / 4;

pub(crate) fn remove<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: u64,
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let Some(mut landing) = path::land(root, key)? else {
        return Ok(false);
    };
    let leaf = &mut landing.leaf;
    if leaf.slots.count() <= SPARSE_LEAF + 1 {
        expect_neighbours(&landing.parent, landing.place)?;
        // The remaining entry may move there.
        leaf.slots.used().for_each(|slot| leaf.expect_value(slot));
    }
    let Some(slot) = leaf.find(key) else {
        return Ok(false);
    };
    if let Some(old) = old {
        leaf.value_into(slot, old);
    }
    let slots = leaf.slots.with(slot, None);
    match slots.count() {
        0 => drop_leaf(root, landing, key)?,
        SPARSE_LEAF => {
            if merge_leaf(&landing, slots)? {
                drop_leaf(root, landing, key)?;
            } else {
                landing.leaf.set_slots(slots);
            }
        }
        _ => leaf.set_slots(slots),
    }
    Ok(true)
}

/// The places of a child's neighbours in a branch.
fn beside(place: usize, count: usize) -> impl Iterator<Item = usize> {
    let before = place.checked_sub(1);
    let behind = Some(place + 1).filter(|&p| p < count);
    before.into_iter().chain(behind)
}

/// Prefetches the neighbours of a leaf: both are fetched before either is needed.
fn expect_neighbours<'t, M: Medium>(
    parent: &BranchAt<'t, Tx<'t, M>>,
    place: usize,
) -> Result<(), Error> {
    for at in beside(place, parent.count()) {
        parent.leaf(at)?.expect(LEAF_BYTES);
    }
    Ok(())
}

/// Moves the only entry of a leaf, in `slots`, to a neighbour that has room for it and one more. Returns whether it
/// did.
fn merge_leaf<'t, M: Medium>(
    landing: &Landing<'t, Tx<'t, M>>,
    slots: Slots,
) -> Result<bool, Error> {
    let Landing {
        leaf,
        parent,
        place,
        ..
    } = landing;
    for at in beside(*place, parent.count()) {
        let mut neighbour = LeafAt::new(parent.leaf(at)?)?;
        let slot = slots.used().next().zip(neighbour.slots.free());
        let Some((from, to)) = slot.filter(|_| neighbour.slots.count() + 1 < LEAF_SLOTS) else {
            continue;
        };
        neighbour.fill_from(to, leaf, from);
        if at > *place && *place > 0 {
            // The neighbour takes over the range too.
            parent.set_key(at, parent.key(*place));
        }
        return Ok(true);
    }
    Ok(false)
}

/// Removes the leaf to which `key` leads from the tree, with the branches that become empty.
fn drop_leaf<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    landing: Landing<'t, Tx<'t, M>>,
    key: u64,
) -> Result<(), Error> {
    let Landing {
        leaf,
        mut parent,
        place,
        ..
    } = landing;
    if parent.count() <= SPARSE_BRANCH + 1 {
        let mut path = Path::to(root, key)?;
        if let Some(lowest) = path.steps.last_mut() {
            // Where a neighbour has taken over the leaf's range, the key leads there.
            lowest.place = place;
        }
        free_unlinked(root.view(), leaf.object)?;
        return drop_last(root, path);
    }
    free_unlinked(root.view(), leaf.object)?;
    parent.check_for_change()?;
    parent.drop_child(place);
    Ok(())
}

/// Removes the node at the end of the path from the tree, with the branches that become empty, and merges those that
/// become sparse.
fn drop_last<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    mut path: Path<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    let tx = root.view();
    for depth in (0..path.steps.len()).rev() {
        let Step { branch, place } = &mut path.steps[depth];
        branch.check_for_change()?;
        if branch.count() > 1 {
            branch.drop_child(*place);
            return mend(root, &path, depth);
        }
        free_unlinked(tx, branch.object)?;
    }
    empty(root);
    Ok(())
}

fn empty<'t, M: Medium>(root: Root<'t, Tx<'t, M>>) {
    root.link::<Branch>(InlineRoot::TOP, None);
    root.store(InlineRoot::HEIGHT, 0);
}

/// Merges sparse branches with their neighbours, from `depth` of the path up.
fn mend<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    depth: usize,
) -> Result<(), Error> {
    for depth in (1..=depth).rev() {
        // Read again: the merge on the level below has changed it.
        let branch = BranchAt::new(path.steps[depth].branch.object)?;
        if branch.count() > SPARSE_BRANCH {
            return Ok(());
        }
        let Step {
            branch: mut above,
            place,
        } = path.steps[depth - 1];
        above.check_for_change()?;
        let level = path.level(depth);
        let before = place.checked_sub(1);
        let behind = Some(place).filter(|&p| p + 1 < above.count());
        let mut merged = false;
        for first in [before, behind].into_iter().flatten() {
            if merge_branches(&mut above, first, level)? {
                merged = true;
                break;
            }
        }
        if !merged {
            return Ok(());
        }
    }
    lower(root)
}

/// Merges the branch at `first` and the next one, if they fit into one with room to spare. Returns whether it did. They
/// are `level` levels above the lowest.
fn merge_branches<'t, M: Medium>(
    above: &mut BranchAt<'t, Tx<'t, M>>,
    first: usize,
    level: usize,
) -> Result<bool, Error> {
    let (mut left, right) = (above.branch(first)?, above.branch(first + 1)?);
    if left.count() + right.count() > MERGED {
        return Ok(false);
    }
    if left.object == right.object {
        return Err(damaged(
            "two places of a branch with one child",
            above.object,
        ));
    }
    left.check_for_change()?;
    for place in 0..right.count() {
        let key = match place {
            0 => above.key(first + 1),
            _ => right.key(place),
        };
        left.add(left.count(), key, right.child(place, level)?);
    }
    above.drop_child(first + 1);
    free_unlinked(above.object.view(), right.object)?;
    Ok(true)
}

/// Removes levels from the top that have a single child.
fn lower<'t, M: Medium>(root: Root<'t, Tx<'t, M>>) -> Result<(), Error> {
    for height in (2..=path::height(root)?).rev() {
        let top = path::top(root)?;
        if top.count() > 1 {
            break;
        }
        root.link(InlineRoot::TOP, Some(top.branch(0)?.object));
        root.store(InlineRoot::HEIGHT, height as u64 - 1);
        free_unlinked(root.view(), top.object)?;
    }
    Ok(())
}

/// Frees every node.
pub(crate) fn clear<'t, M: Medium>(root: Root<'t, Tx<'t, M>>) -> Result<(), Error> {
    let tx = root.view();
    let height = path::height(root)?;
    let mut left = Vec::new();
    if height > 0 {
        left.push((path::top(root)?, height - 1));
    }
    let mut seen = HashSet::new();
    while let Some((branch, level)) = left.pop() {
        branch.check_for_change()?;
        if !seen.insert(branch.object.address().0) {
            return Err(damaged("a branch that is reached twice", branch.object));
        }
        for place in 0..branch.count() {
            if level > 0 {
                left.push((branch.branch(place)?, level - 1));
            } else {
                free_unlinked(tx, LeafAt::new(branch.leaf(place)?)?.object)?;
            }
        }
        free_unlinked(tx, branch.object)?;
    }
    empty(root);
    Ok(())
}
