//! Inserting: into a free slot, or by splitting nodes on the way back to the top.

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

use super::InlineRoot;
use super::branch::{BranchAt, Child};
use super::leaf::{Item, LEAF_SLOTS, Leaf};
use super::path::{self, Landing, MAX_HEIGHT, Path, Root, Step};
use crate::map::order::FANOUT;
use crate::reclaim::free_unlinked;
use crate::tree::damaged;

pub(crate) fn insert<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: u64,
    value: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let Some(mut landing) = path::land(root, key)? else {
        return first_leaf(root, (key, value)).map(|()| false);
    };
    let leaf = &mut landing.leaf;
    if let Some(slot) = leaf.find(key) {
        if let Some(old) = old {
            leaf.value_into(slot, old);
        }
        leaf.set_value(slot, value);
        return Ok(true);
    }
    match leaf.slots.free() {
        Some(slot) => {
            leaf.expect_value(slot);
            leaf.fill(slot, key, value);
        }
        None => split_leaf(root, landing, (key, value))?,
    }
    Ok(false)
}

fn first_leaf<'t, M: Medium>(root: Root<'t, Tx<'t, M>>, item: Item<'_>) -> Result<(), Error> {
    root.view().nested(|tx| {
        let mut leaf = Leaf::EMPTY;
        leaf.put(0, item);
        let leaf = tx.alloc_front(leaf, Leaf::front_bytes(1))?;
        let top = BranchAt::alloc(tx, Child::Leaf(leaf))?;
        root.link(InlineRoot::TOP, Some(top.object));
        root.store(InlineRoot::HEIGHT, 1);
        Ok(())
    })
}

/// Moves entries of a full leaf to a new one, and inserts.
///
/// Moves as few as possible so that one leaf has three entries and the other two, or none where keys ascend: the other
/// leaf's entries stay in their places, and in most cases only its slots word changes.
fn split_leaf<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    landing: Landing<'t, Tx<'t, M>>,
    item: Item<'_>,
) -> Result<(), Error> {
    let Landing {
        mut leaf,
        mut parent,
        place,
        is_last,
    } = landing;
    let tx = root.view();
    let (sorted, _) = leaf.sorted();
    let below = |&&slot: &&usize| leaf.key(slot) < item.0;
    let rank = sorted.iter().filter(below).count();
    // The new leaf comes before the other, or behind it.
    let in_front = rank < LEAF_SLOTS / 2 && parent.count() < FANOUT;
    let moved = match rank {
        LEAF_SLOTS if is_last => &[][..],
        _ if in_front => &sorted[..1],
        3.. => &sorted[3..],
        _ => &sorted[2..],
    };
    let takes_item = in_front || rank >= 3;

    let mut new = Leaf::EMPTY;
    for (slot, &from) in moved.iter().enumerate() {
        new.put_from(slot, &leaf, from);
    }
    if takes_item {
        new.put(moved.len(), item);
    }
    // The steps that may fail for lack of space come before any change.
    let entries = moved.len() + usize::from(takes_item);
    let new = tx.alloc_front(new, Leaf::front_bytes(entries))?;
    let linked = if in_front {
        parent.check_for_change().map(|()| {
            parent.add_in_front(place, leaf.key(sorted[1]), Child::Leaf(new));
        })
    } else {
        let first = moved.first().map_or(item.0, |&slot| leaf.key(slot));
        let separator = if takes_item { first.min(item.0) } else { first };
        add_behind(root, (parent, place), item.0, separator, new)
    };
    if let Err(error) = linked {
        free_unlinked(tx, new)?;
        return Err(error);
    }
    if let Some(&free) = moved.first() {
        let slots = moved.iter().fold(leaf.slots, |s, &slot| s.with(slot, None));
        if !takes_item {
            leaf.slots = slots;
            leaf.fill(free, item.0, item.1);
        } else {
            leaf.set_slots(slots);
        }
    }
    Ok(())
}

/// Inserts a leaf behind the one at a place of a branch, to which `key` leads. If that fails, nothing is changed.
fn add_behind<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    (mut parent, place): (BranchAt<'t, Tx<'t, M>>, usize),
    key: u64,
    separator: u64,
    leaf: Obj<'t, Leaf, Tx<'t, M>>,
) -> Result<(), Error> {
    if parent.count() < FANOUT {
        parent.check_for_change()?;
        parent.add(place + 1, separator, Child::Leaf(leaf));
        return Ok(());
    }
    root.view().nested(|_| {
        let path = Path::to(root, key)?;
        split_branches(root, &path, separator, Child::Leaf(leaf))
    })
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
            // Only the new child; its separator goes up.
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

/// Moves the upper half of a full branch to a new one, and returns that with its separator.
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
        left.drop_child(place);
    }
    Ok((right, up))
}

/// Adds a level on top, with the old topmost branch and `child`.
fn grow<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    key: u64,
    child: Child<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    let height = path.steps.len();
    let Some(old) = path.steps.first().filter(|_| height < MAX_HEIGHT) else {
        return Err(damaged("the height of a tree", root));
    };
    let old = Child::Branch(old.branch.object);
    let mut top = BranchAt::alloc(root.view(), old)?;
    top.add(1, key, child);
    root.link(InlineRoot::TOP, Some(top.object));
    root.store(InlineRoot::HEIGHT, height as u64 + 1);
    Ok(())
}
