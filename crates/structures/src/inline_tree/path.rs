//! The path from the top to a leaf.

use firn_heap::{Error, Obj, View};

use super::InlineRoot;
use super::branch::BranchAt;
use super::leaf::LeafAt;
use crate::tree::damaged;
use crate::tree::kind::{ABREAST, Abreast};

/// The most levels of branches: even with mostly sparse branches far more than any pool can hold.
pub(crate) const MAX_HEIGHT: usize = 24;

/// Bytes of a leaf that a search reads.
pub(crate) const LEAF_BYTES: u64 = 64;

/// A tree's root object.
pub(crate) type Root<'g, V> = Obj<'g, InlineRoot, V>;

/// A branch and a place in it.
pub(crate) struct Step<'g, V: View<'g>> {
    pub(crate) branch: BranchAt<'g, V>,
    pub(crate) place: usize,
}

impl<'g, V: View<'g>> Clone for Step<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Step<'g, V> {}

/// Number of levels of branches, checked.
#[inline]
pub(crate) fn height<'g, V: View<'g>>(root: Root<'g, V>) -> Result<usize, Error> {
    let height = root.load(InlineRoot::HEIGHT);
    if height > MAX_HEIGHT as u64 {
        return Err(damaged("the height of a tree", root));
    }
    Ok(height as usize)
}

/// The topmost branch of a tree that is not empty.
#[inline]
pub(crate) fn top<'g, V: View<'g>>(root: Root<'g, V>) -> Result<BranchAt<'g, V>, Error> {
    match root.follow(InlineRoot::TOP) {
        Some(top) => BranchAt::new(top),
        None => Err(damaged("a tree without its topmost branch", root)),
    }
}

/// The place where a search for a key ends.
pub(crate) struct Landing<'g, V: View<'g>> {
    pub(crate) leaf: LeafAt<'g, V>,
    /// The branch above the leaf.
    pub(crate) parent: BranchAt<'g, V>,
    /// The leaf's place there.
    pub(crate) place: usize,
    /// Whether the leaf is the tree's last.
    pub(crate) is_last: bool,
}

/// Searches for `key`; `None` if the tree is empty.
///
/// Remembers as little of the path as most changes need; the other changes search again, see [`Path`].
#[inline(always)]
pub(crate) fn land<'g, V: View<'g>>(
    root: Root<'g, V>,
    key: u64,
) -> Result<Option<Landing<'g, V>>, Error> {
    let height = height(root)?;
    if height == 0 {
        return Ok(None);
    }
    let (known, known_leaf) = (root.view().known_type()?, root.view().known_type()?);
    let mut parent = top(root)?;
    let mut place = parent.route(key);
    let mut is_last = place + 1 == parent.count();
    for _ in 1..height {
        parent = BranchAt::known(parent.branch_object(place)?, known)?;
        place = parent.route(key);
        is_last &= place + 1 == parent.count();
    }
    Ok(Some(Landing {
        leaf: LeafAt::known(parent.leaf(place)?, known_leaf)?,
        parent,
        place,
        is_last,
    }))
}

/// The leaves whose ranges hold some keys, at most [`ABREAST`]; none if the tree is empty. The searches take their
/// steps in turn.
pub(crate) fn leaves<'g, V: View<'g>>(
    root: Root<'g, V>,
    keys: &[u64],
) -> Result<Abreast<LeafAt<'g, V>>, Error> {
    let mut leaves = [None; ABREAST];
    let height = height(root)?;
    if height == 0 {
        return Ok(leaves);
    }
    let known = root.view().known_type()?;
    let mut at = [top(root)?.object; ABREAST];
    for _ in 1..height {
        for (at, &key) in at.iter_mut().zip(keys) {
            let branch = BranchAt::known(*at, known)?;
            *at = branch.branch_object(branch.route(key))?;
        }
    }
    let mut below = [None; ABREAST];
    for ((below, at), &key) in below.iter_mut().zip(at).zip(keys) {
        let branch = BranchAt::known(at, known)?;
        let leaf = branch.leaf(branch.route(key))?;
        leaf.expect(LEAF_BYTES);
        *below = Some(leaf);
    }
    for (leaf, below) in leaves.iter_mut().zip(below) {
        *leaf = below.map(LeafAt::new).transpose()?;
    }
    Ok(leaves)
}

/// Steps from the top down; none in an empty tree.
pub(crate) struct Path<'g, V: View<'g>> {
    pub(crate) steps: Vec<Step<'g, V>>,
}

impl<'g, V: View<'g>> Path<'g, V> {
    /// The path to the leaf whose range holds `key`.
    pub(crate) fn to(root: Root<'g, V>, key: u64) -> Result<Self, Error> {
        let height = height(root)?;
        let mut steps = Vec::with_capacity(height);
        if height > 0 {
            let mut branch = top(root)?;
            for level in (0..height).rev() {
                let place = branch.route(key);
                steps.push(Step { branch, place });
                if level > 0 {
                    branch = branch.branch(place)?;
                }
            }
        }
        Ok(Self { steps })
    }

    /// The leaf that the path leads to; `None` in an empty tree.
    pub(crate) fn leaf(&self) -> Result<Option<LeafAt<'g, V>>, Error> {
        match self.steps.last() {
            Some(Step { branch, place }) => LeafAt::new(branch.leaf(*place)?).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the path takes the last place on every level down to `depth`.
    pub(crate) fn is_last(&self, depth: usize) -> bool {
        let mut above = self.steps[..=depth].iter();
        above.all(|step| step.place + 1 == step.branch.count())
    }

    /// The level of the branch at `depth`; the lowest is 0.
    pub(crate) fn level(&self, depth: usize) -> usize {
        self.steps.len() - 1 - depth
    }
}
