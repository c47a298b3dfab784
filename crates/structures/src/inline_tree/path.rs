//! The way from the top to a leaf.

use firn_heap::{Error, Obj, View};

use super::InlineRoot;
use super::branch::{Branch, BranchAt};
use super::leaf::LeafAt;
use crate::tree::damaged;
use crate::tree::kind::{ABREAST, Abreast};

/// Levels of branches. With branches that are sparse for the most part, still far more than any pool
/// can hold.
pub(crate) const MAX_HEIGHT: usize = 24;

/// Bytes of a branch: all of it, since any reference may come next.
const BRANCH_BYTES: u64 = HEADER_BYTES + size_of::<Branch>() as u64;
/// Bytes of a leaf that a search reads.
const LEAF_BYTES: u64 = 64;
const HEADER_BYTES: u64 = 8;

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

/// The leaf whose range holds `key`; `None` if the tree is empty.
#[inline]
pub(crate) fn leaf<'g, V: View<'g>>(
    root: Root<'g, V>,
    key: u64,
) -> Result<Option<LeafAt<'g, V>>, Error> {
    let height = height(root)?;
    if height == 0 {
        return Ok(None);
    }
    let known = root.view().known_type()?;
    let mut branch = top(root)?;
    for _ in 1..height {
        branch = branch.known_branch(branch.route(key), known)?;
    }
    branch.expect_leaves();
    LeafAt::new(branch.leaf(branch.route(key))?).map(Some)
}

/// The leaves whose ranges hold some keys, at most [`ABREAST`]; none if the tree is empty. All searches
/// take a step, then all take the next.
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
            at.expect(BRANCH_BYTES);
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
                if level == 0 {
                    branch.expect_leaves();
                }
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

    /// Whether the path takes the last place everywhere down to `depth`.
    pub(crate) fn is_last(&self, depth: usize) -> bool {
        let mut above = self.steps[..=depth].iter();
        above.all(|step| step.place + 1 == step.branch.count())
    }

    /// The level of the branch at `depth`, the lowest is 0.
    pub(crate) fn level(&self, depth: usize) -> usize {
        self.steps.len() - 1 - depth
    }
}
