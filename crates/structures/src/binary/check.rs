//! Whether every invariant of a binary tree holds.

use firn_heap::{Error, Obj, View};

use super::balance::Balance;
use super::node::{Node, NodeAt, Side, child, value};
use super::path::MAX_DEPTH;
use crate::tree::check::Check;
use crate::tree::damaged;

pub(crate) fn check<'g, V: View<'g>, B: Balance>(
    root: Obj<'g, B::TreeRoot, V>,
    check: &mut Check,
) -> Result<(), Error> {
    let tag = root.tag(B::ROOT_TOP);
    if tag != 0 {
        check.note("the link to the topmost node has a tag".into());
    }
    subtree::<V, B>(B::top(root)?, tag, 0, check).map(|_| ())
}

/// Checks a subtree in order and returns its measure. Goes no deeper than [`MAX_DEPTH`].
fn subtree<'g, V: View<'g>, B: Balance>(
    top: Option<NodeAt<'g, V>>,
    tag: u8,
    depth: usize,
    check: &mut Check,
) -> Result<u32, Error> {
    let Some(node) = top else { return Ok(0) };
    if depth >= MAX_DEPTH {
        return Err(damaged("a tree without balance", node));
    }
    let at = node.address().0;
    if !check.once("node", at) {
        return Ok(0);
    }
    let below = |side: Side, check: &mut Check| {
        let tag = node.tag(side.link());
        subtree::<V, B>(child(node, side)?, tag, depth + 1, check)
    };
    let left = below(Side::Left, check)?;
    check.entry(node.load(Node::KEY), at);
    let value = value(node)?;
    value.checked_len()?;
    check.once("value", value.address().0);
    let right = below(Side::Right, check)?;
    Ok(B::measure(node, tag, left, right, check))
}
