//! Removing, and giving back the space of sparse nodes.

use std::collections::HashSet;

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

use super::entry;
use super::merge::{Pair, Three};
use super::node::{MapRoot, Node, Visit};
use super::order::FANOUT;
use super::path::{Path, Step};
use super::search;
use crate::reclaim::free_unlinked;

/// A node with at most this many entries seeks neighbours to merge with.
const SPARSE: usize = 9;
/// Two nodes with at most this many entries together become one: some slots stay free, so that the next insert does not
/// split it again.
const MERGED: usize = 12;
/// Three nodes with at most this many entries become two. After random deletions nodes then hold ten entries on
/// average; if only two became one, they would hold eight.
const SPREAD: usize = 26;
const _: () = assert!(SPREAD.div_ceil(2) < FANOUT);
/// A node with fewer entries takes some from a neighbour that it cannot merge with.
const FEWEST: usize = 3;

/// Removes a key. Appends its value to `old`, if requested. Returns whether it was there. The caller holds the write
/// lock.
pub(crate) fn remove<'t, M: Medium>(
    root: Obj<'t, MapRoot, Tx<'t, M>>,
    key: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let tx = root.view();
    let (path, there) = Path::to(root, key)?;
    let (true, Some(&Step { visit, place })) = (there, path.steps.last()) else {
        return Ok(false);
    };
    visit.check_for_change()?;
    let gone = visit.entry(place)?;
    if let Some(old) = old {
        entry::value_into(gone, old)?;
    }
    free_unlinked(tx, gone)?;
    let mut leaf = visit;
    leaf.set_key(leaf.order.slot(place), None);
    leaf.set_order(leaf.order.with_removed(place));
    root.store(MapRoot::LEN, root.load(MapRoot::LEN).wrapping_sub(1));
    if leaf.count() > SPARSE {
        return Ok(true);
    }
    match tx.nested(|_| mend(root, &path, key)) {
        // Removal must work in a full pool: the leaf stays sparse until a later removal.
        Ok(()) | Err(Error::PoolFull { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Merges sparse nodes with their neighbours, from the leaf up.
fn mend<'t, M: Medium>(
    root: Obj<'t, MapRoot, Tx<'t, M>>,
    path: &Path<'t, Tx<'t, M>>,
    key: &[u8],
) -> Result<(), Error> {
    for depth in (1..path.steps.len()).rev() {
        // Read again: the merge on the level below has changed it.
        let visit = Visit::new(path.steps[depth].visit.node)?;
        if visit.count() > SPARSE {
            return Ok(());
        }
        let Some(pair) = Pair::choose(path, depth, key)? else {
            return Ok(());
        };
        if pair.total() <= MERGED {
            pair.merge()?;
        } else if let Some(three) = Three::around(path, depth, key)?
            && three.total() <= SPREAD
        {
            three.spread()?;
        } else {
            if visit.count() < FEWEST {
                pair.balance()?;
            }
            return Ok(());
        }
    }
    lower(root)
}

/// Removes levels from the top that have a single child.
fn lower<'t, M: Medium>(root: Obj<'t, MapRoot, Tx<'t, M>>) -> Result<(), Error> {
    let tx = root.view();
    for height in (1..=search::height(root)?).rev() {
        let top = search::top(root)?;
        top.check_level(height - 1)?;
        if top.count() > usize::from(height > 1) {
            break;
        }
        let below = match height {
            1 => None,
            _ => Some(top.descend(0, height - 2)?.node),
        };
        root.link(MapRoot::TOP, below);
        root.store(MapRoot::HEIGHT, height as u64 - 1);
        free_node(tx, &top)?;
    }
    Ok(())
}

/// Frees a node, but neither its entries nor its children.
pub(crate) fn free_node<'t, M: Medium>(
    tx: Tx<'t, M>,
    visit: &Visit<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    if let Some(children) = visit.node.follow(Node::CHILDREN) {
        free_unlinked(tx, children)?;
    }
    free_unlinked(tx, visit.node)
}

/// Removes everything and frees it.
pub(crate) fn clear<'t, M: Medium>(root: Obj<'t, MapRoot, Tx<'t, M>>) -> Result<(), Error> {
    let tx = root.view();
    let height = search::height(root)?;
    if height > 0 {
        let top = search::top(root)?;
        top.check_level(height - 1)?;
        let mut seen = HashSet::new();
        free_below(tx, &top, height - 1, &mut seen)?;
    }
    root.link::<Node>(MapRoot::TOP, None);
    root.store(MapRoot::HEIGHT, 0);
    root.store(MapRoot::LEN, 0);
    Ok(())
}

/// Frees a node `level` levels above the leaves, with everything to which it refers.
fn free_below<'t, M: Medium>(
    tx: Tx<'t, M>,
    visit: &Visit<'t, Tx<'t, M>>,
    level: usize,
    seen: &mut HashSet<u64>,
) -> Result<(), Error> {
    visit.check_for_change()?;
    if !seen.insert(visit.node.address().0) {
        return Err(visit.damaged("a map's node that is reached twice"));
    }
    for place in 0..visit.count() {
        if let Some(key) = visit.key(place) {
            free_unlinked(tx, key)?;
        }
        if level > 0 {
            free_below(tx, &visit.descend(place, level - 1)?, level - 1, seen)?;
        }
    }
    free_node(tx, visit)
}
