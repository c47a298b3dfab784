//! The balance of a node, and rotations.

use firn_heap::{Error, Tx, View};
use firn_media::Medium;

use super::Avl;
use crate::binary::node::{Node, NodeAt, Side, promised};
use crate::binary::path::Path;
use crate::tree::damaged;

/// Tags of the left link: which subtree is higher.
const EVEN: u8 = 0;
const LEFT_HIGHER: u8 = 1;
const RIGHT_HIGHER: u8 = 2;

/// The higher subtree, if they differ.
///
/// Errors: the tag has no meaning.
#[inline]
pub(super) fn higher<'g, V: View<'g>>(node: NodeAt<'g, V>) -> Result<Option<Side>, Error> {
    match node.tag(Node::LEFT) {
        EVEN => Ok(None),
        LEFT_HIGHER => Ok(Some(Side::Left)),
        RIGHT_HIGHER => Ok(Some(Side::Right)),
        _ => Err(damaged("the balance of an AVL tree's node", node)),
    }
}

const fn tag_of(higher: Option<Side>) -> u8 {
    match higher {
        None => EVEN,
        Some(Side::Left) => LEFT_HIGHER,
        Some(Side::Right) => RIGHT_HIGHER,
    }
}

/// Stores which subtree is higher.
pub(super) fn set_higher<'t, M: Medium>(node: NodeAt<'t, Tx<'t, M>>, higher: Option<Side>) {
    node.link_tagged(Node::LEFT, node.follow(Node::LEFT), tag_of(higher));
}

/// Changes the subtree on one side, and which one is higher.
fn set<'t, M: Medium>(
    node: NodeAt<'t, Tx<'t, M>>,
    side: Side,
    to: Option<NodeAt<'t, Tx<'t, M>>>,
    higher: Option<Side>,
) {
    match side {
        Side::Left => node.link_tagged(Node::LEFT, to, tag_of(higher)),
        Side::Right => {
            node.link(Node::RIGHT, to);
            if node.tag(Node::LEFT) != tag_of(higher) {
                set_higher(node, higher);
            }
        }
    }
}

/// Changes the link at `depth`, but not the balance of the node that contains it.
pub(super) fn replace<'t, M: Medium>(
    path: &Path<'t, Tx<'t, M>, Avl>,
    depth: usize,
    to: Option<NodeAt<'t, Tx<'t, M>>>,
) {
    path.relink(depth, to, path.tag(depth));
}

/// Rebalances the node at `depth`, whose subtree on the side `high` is two levels higher. Returns whether the result is
/// a level lower than the node was with that subtree.
pub(super) fn rotate<'t, M: Medium>(
    path: &Path<'t, Tx<'t, M>, Avl>,
    depth: usize,
    high: Side,
) -> Result<bool, Error> {
    let low = high.other();
    let node = path.steps[depth].node;
    let above = promised(node, high)?;
    let of_above = higher(above)?;
    if of_above == Some(low) {
        let inner = promised(above, low)?;
        let of_inner = higher(inner)?;
        let (to_above, to_node) = (inner.follow(high.link()), inner.follow(low.link()));
        set(
            above,
            low,
            to_above,
            (of_inner == Some(low)).then_some(high),
        );
        set(node, high, to_node, (of_inner == Some(high)).then_some(low));
        inner.link(high.link(), Some(above));
        inner.link(low.link(), Some(node));
        // Both links were stored without a tag, which means even.
        replace(path, depth, Some(inner));
        return Ok(true);
    }
    let lower = of_above.is_some();
    let (of_node, of_above) = match lower {
        true => (None, None),
        false => (Some(high), Some(low)),
    };
    set(node, high, above.follow(low.link()), of_node);
    set(above, low, Some(node), of_above);
    replace(path, depth, Some(above));
    Ok(lower)
}
