//! The path from the top down, remembered for changes of its nodes.

use firn_heap::{Error, Obj, Tx, View};
use firn_media::Medium;

use super::balance::Balance;
use super::node::{LINKS, NODE_BYTES, Node, NodeAt, Side, child};
use crate::tree::damaged;
use crate::tree::kind::{ABREAST, Abreast};

/// The most levels of a tree: more than a red-black tree of as many nodes as any pool can hold.
pub(crate) const MAX_DEPTH: usize = 96;
/// Bytes of a value that are prefetched before its length is known.
const EXPECTED_VALUE_BYTES: u64 = 128;
/// Steps that suffice for most paths.
const USUAL_DEPTH: usize = 32;

/// A node, and the side on which the path continues.
pub struct Step<'g, V: View<'g>> {
    pub(crate) node: NodeAt<'g, V>,
    pub(crate) side: Side,
}

impl<'g, V: View<'g>> Clone for Step<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Step<'g, V> {}

/// Steps from the top down. The link at depth `d` is reached after `d` steps.
pub struct Path<'g, V: View<'g>, B: Balance> {
    pub(crate) root: Obj<'g, B::TreeRoot, V>,
    pub(crate) steps: Vec<Step<'g, V>>,
}

/// The node of `key`.
#[inline(always)]
pub(crate) fn find<'g, V: View<'g>, B: Balance>(
    root: Obj<'g, B::TreeRoot, V>,
    key: u64,
) -> Result<Option<NodeAt<'g, V>>, Error> {
    let Some(top) = root.follow(B::ROOT_TOP) else {
        return Ok(None);
    };
    let known = root.view().known_type::<Node>()?;
    top.descend(known, Node::KEY, LINKS, MAX_DEPTH, |_, here| {
        (here != key).then_some(key > here)
    })
}

/// The nodes of some keys, at most [`ABREAST`]: the searches take their steps in turn.
pub(crate) fn find_abreast<'g, V: View<'g>, B: Balance>(
    root: Obj<'g, B::TreeRoot, V>,
    keys: &[u64],
) -> Result<Abreast<NodeAt<'g, V>>, Error> {
    let mut found = [None; ABREAST];
    let Some(top) = root.follow(B::ROOT_TOP) else {
        return Ok(found);
    };
    let known = root.view().known_type::<Node>()?;
    let mut at = [Some(top); ABREAST];
    for _ in 0..MAX_DEPTH {
        let mut is_done = true;
        for ((&key, at), found) in keys.iter().zip(&mut at).zip(&mut found) {
            let Some(node) = *at else { continue };
            let here = node.check_known_type(known)?.load(Node::KEY);
            if here == key {
                (*at, *found) = (None, Some(node));
                if let Some(value) = node.follow(Node::VALUE) {
                    value.expect(EXPECTED_VALUE_BYTES);
                }
                continue;
            }
            *at = node.follow_one_of(LINKS, key > here);
            if let Some(next) = at {
                next.expect(NODE_BYTES);
                is_done = false;
            }
        }
        if is_done {
            return Ok(found);
        }
    }
    Err(damaged("a tree without balance", root))
}

impl<'g, V: View<'g>, B: Balance> Path<'g, V, B> {
    /// The path to where `key` is or would be linked, and its node if it is there.
    pub(crate) fn to(
        root: Obj<'g, B::TreeRoot, V>,
        key: u64,
    ) -> Result<(Self, Option<NodeAt<'g, V>>), Error> {
        let mut path = Self {
            root,
            steps: Vec::with_capacity(USUAL_DEPTH),
        };
        let Some(top) = root.follow(B::ROOT_TOP) else {
            return Ok((path, None));
        };
        let known = root.view().known_type::<Node>()?;
        let there = top.descend(known, Node::KEY, LINKS, MAX_DEPTH, |node, here| {
            let is_onward = key != here;
            if is_onward {
                let side = Side::of(key > here);
                path.steps.push(Step { node, side });
            }
            is_onward.then_some(key > here)
        })?;
        if there.is_none() {
            // `onward` may have been called at a null reference, where there is no node.
            path.steps.pop_if(|step| step.node.address().0 == 0);
        }
        Ok((path, there))
    }

    /// Adds a step and returns the node behind it.
    #[inline]
    pub(crate) fn descend(
        &mut self,
        node: NodeAt<'g, V>,
        side: Side,
    ) -> Result<Option<NodeAt<'g, V>>, Error> {
        if self.steps.len() >= MAX_DEPTH {
            return Err(damaged("a tree without balance", self.root));
        }
        self.steps.push(Step { node, side });
        child(node, side)
    }

    /// Number of steps.
    pub(crate) fn depth(&self) -> usize {
        self.steps.len()
    }

    /// The tag of the link at `depth`.
    pub(crate) fn tag(&self, depth: usize) -> u8 {
        match depth.checked_sub(1) {
            Some(above) => {
                let Step { node, side } = self.steps[above];
                node.tag(side.link())
            }
            None => self.root.tag(B::ROOT_TOP),
        }
    }
}

impl<'t, M: Medium, B: Balance> Path<'t, Tx<'t, M>, B> {
    /// Changes the link at `depth`.
    pub(crate) fn relink(&self, depth: usize, to: Option<NodeAt<'t, Tx<'t, M>>>, tag: u8) {
        match depth.checked_sub(1) {
            Some(above) => {
                let Step { node, side } = self.steps[above];
                node.link_tagged(side.link(), to, tag);
            }
            None => self.root.link_tagged(B::ROOT_TOP, to, tag),
        }
    }
}
