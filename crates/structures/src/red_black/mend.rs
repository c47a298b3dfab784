//! Colours, and restoring their rules.

use firn_heap::{Error, Tx};
use firn_media::Medium;

use super::RedBlack;
use crate::binary::node::{NodeAt, Side, promised};
use crate::binary::path::{MAX_DEPTH, Path, Step};
use crate::tree::damaged;

/// The tag of a black link, and of a null one.
pub(super) const BLACK: u8 = 0;
/// The tag of a red link.
pub(super) const RED: u8 = 1;

/// Changes the link on one side.
fn set<'t, M: Medium>(
    node: NodeAt<'t, Tx<'t, M>>,
    side: Side,
    to: Option<NodeAt<'t, Tx<'t, M>>>,
    colour: u8,
) {
    node.link_tagged(side.link(), to, colour);
}

/// Mends the tree after the link at `depth` became red: the link above it may be red, too.
pub(super) fn two_reds<'t, M: Medium>(
    path: &Path<'t, Tx<'t, M>, RedBlack>,
    mut depth: usize,
) -> Result<(), Error> {
    while depth >= 2 && path.tag(depth - 1) == RED {
        let Step { node: parent, side } = path.steps[depth - 1];
        let Step {
            node: above,
            side: outer,
        } = path.steps[depth - 2];
        let inner = outer.other();
        if above.tag(inner.link()) != RED {
            let risen = if side == outer {
                set(above, outer, parent.follow(inner.link()), BLACK);
                parent
            } else {
                let node = promised(parent, inner)?;
                set(parent, inner, node.follow(outer.link()), BLACK);
                set(above, outer, node.follow(inner.link()), BLACK);
                set(node, outer, Some(parent), RED);
                node
            };
            set(risen, inner, Some(above), RED);
            path.relink(depth - 2, Some(risen), BLACK);
            return Ok(());
        }
        set(above, outer, Some(parent), BLACK);
        set(above, inner, above.follow(inner.link()), BLACK);
        depth -= 2;
        if depth > 0 {
            path.relink(depth, Some(above), RED);
        }
    }
    Ok(())
}

/// Mends the tree where paths through the link at `depth` lack a black link.
pub(super) fn missing_black<'t, M: Medium>(
    mut path: Path<'t, Tx<'t, M>, RedBlack>,
    mut depth: usize,
) -> Result<(), Error> {
    while depth > 0 {
        let Step { node: parent, side } = path.steps[depth - 1];
        let far = side.other();
        let sibling = promised(parent, far)?;
        if parent.tag(far.link()) == RED {
            // The sibling rises, and a black one takes its place.
            set(parent, far, sibling.follow(side.link()), BLACK);
            set(sibling, side, Some(parent), RED);
            path.relink(depth - 1, Some(sibling), BLACK);
            // At most once per level; in a sound tree once.
            if path.depth() >= 2 * MAX_DEPTH {
                return Err(damaged("the colours of a tree's node", parent));
            }
            let node = sibling;
            path.steps.insert(depth - 1, Step { node, side });
            depth += 1;
            continue;
        }
        let colour = path.tag(depth - 1);
        if sibling.tag(far.link()) == RED {
            let (near, of_near) = (sibling.follow(side.link()), sibling.tag(side.link()));
            set(sibling, far, sibling.follow(far.link()), BLACK);
            set(parent, far, near, of_near);
            set(sibling, side, Some(parent), BLACK);
            path.relink(depth - 1, Some(sibling), colour);
            return Ok(());
        }
        if sibling.tag(side.link()) == RED {
            let near = promised(sibling, side)?;
            set(sibling, side, near.follow(far.link()), BLACK);
            set(parent, far, near.follow(side.link()), BLACK);
            set(near, far, Some(sibling), BLACK);
            set(near, side, Some(parent), BLACK);
            path.relink(depth - 1, Some(near), colour);
            return Ok(());
        }
        set(parent, far, Some(sibling), RED);
        depth -= 1;
        if colour == RED {
            path.relink(depth, Some(parent), BLACK);
            return Ok(());
        }
    }
    Ok(())
}
