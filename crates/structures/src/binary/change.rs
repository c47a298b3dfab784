//! Insert, remove and clear: the parts that do not depend on the tree's kind of balance.

use std::collections::HashSet;

use firn_heap::{Error, Obj, Ref, Tx};
use firn_media::Medium;

use super::balance::Balance;
use super::node::{Node, NodeAt, Side, child, value};
use super::path::Path;
use crate::reclaim::free_unlinked;
use crate::tree::damaged;

/// Values up to this size are replaced in place if the length stays.
const IN_PLACE_BYTES: usize = 512;

pub(crate) fn insert<'t, M: Medium, B: Balance>(
    root: Obj<'t, B::TreeRoot, Tx<'t, M>>,
    key: u64,
    bytes: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let tx = root.view();
    let (path, there) = Path::<_, B>::to(root, key)?;
    if let Some(node) = there {
        replace(node, bytes, old)?;
        return Ok(true);
    }
    let value = tx.alloc_bytes(bytes)?;
    let fresh = tx.alloc(Node {
        key,
        left: Ref::NULL,
        right: Ref::NULL,
        value: Ref::NULL,
    });
    let fresh = match fresh {
        Ok(fresh) => fresh,
        Err(error) => {
            // Nothing is linked yet: the tree is unchanged even if the caller goes on.
            free_unlinked(tx, value)?;
            return Err(error);
        }
    };
    fresh.link(Node::VALUE, Some(value));
    B::link(&path, fresh)?;
    Ok(false)
}

/// Gives a node another value.
fn replace<'t, M: Medium>(
    node: NodeAt<'t, Tx<'t, M>>,
    bytes: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<(), Error> {
    let present = value(node)?;
    if let Some(old) = old {
        present.read_into(old)?;
    }
    if present.checked_len()? == bytes.len() && bytes.len() <= IN_PLACE_BYTES {
        return present.overwrite(0, bytes);
    }
    let tx = node.view();
    node.link(Node::VALUE, Some(tx.alloc_bytes(bytes)?));
    free_unlinked(tx, present)
}

pub(crate) fn remove<'t, M: Medium, B: Balance>(
    root: Obj<'t, B::TreeRoot, Tx<'t, M>>,
    key: u64,
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let (mut path, there) = Path::<_, B>::to(root, key)?;
    let Some(node) = there else { return Ok(false) };
    // Prefetches the freed objects before the search for the neighbour, which waits for lines of its own.
    if let Some(value) = node.follow(Node::VALUE) {
        root.view().expect_free(value);
    }
    let dropped = value(node)?;
    if let Some(old) = old {
        dropped.read_into(old)?;
    }
    // Checked without touching the subtrees, whose lines are not needed yet.
    let has = |side: Side| node.follow(side.link()).is_some();
    let gone = if has(Side::Left) && has(Side::Right) {
        // The neighbour's entry replaces this one, and the neighbour's node goes: this changes two words of one node
        // instead of the links of three.
        let (neighbour, rest) = neighbour(&mut path, node)?;
        root.view().expect_free(neighbour);
        let (key, kept) = (neighbour.load(Node::KEY), value(neighbour)?);
        B::unlink(path, rest)?;
        node.store(Node::KEY, key);
        node.link(Node::VALUE, Some(kept));
        neighbour
    } else {
        root.view().expect_free(node);
        let rest = node.follow(Node::LEFT).or_else(|| node.follow(Node::RIGHT));
        B::unlink(path, rest)?;
        node
    };
    free_unlinked(root.view(), dropped)?;
    free_unlinked(root.view(), gone)?;
    Ok(true)
}

/// The node that may take the place of `node`, and the subtree below it.
type Neighbour<'t, M> = (NodeAt<'t, Tx<'t, M>>, Option<NodeAt<'t, Tx<'t, M>>>);

/// Extends the path from `node`, which has two subtrees, to its neighbour in order.
fn neighbour<'t, M: Medium, B: Balance>(
    path: &mut Path<'t, Tx<'t, M>, B>,
    node: NodeAt<'t, Tx<'t, M>>,
) -> Result<Neighbour<'t, M>, Error> {
    let side = B::neighbour_side(node);
    let mut found = path.descend(node, side)?;
    while let Some(next) = found {
        match child(next, side.other())? {
            Some(_) => found = path.descend(next, side.other())?,
            None => return Ok((next, next.follow(side.link()))),
        }
    }
    Err(damaged("a missing subtree of a tree's node", node))
}

/// Frees every node and value.
pub(crate) fn clear<'t, M: Medium, B: Balance>(
    root: Obj<'t, B::TreeRoot, Tx<'t, M>>,
) -> Result<(), Error> {
    let tx = root.view();
    let mut seen = HashSet::new();
    let mut left: Vec<_> = B::top(root)?.into_iter().collect();
    while let Some(node) = left.pop() {
        if !seen.insert(node.address().0) {
            return Err(damaged("a node of a tree that is reached twice", node));
        }
        left.extend(child(node, Side::Left)?);
        left.extend(child(node, Side::Right)?);
        free_unlinked(tx, value(node)?)?;
        free_unlinked(tx, node)?;
    }
    root.link::<Node>(B::ROOT_TOP, None);
    Ok(())
}
