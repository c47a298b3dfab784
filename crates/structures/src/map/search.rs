//! The search from the top to a leaf.

use core::cmp::Ordering;

use firn_heap::{Error, Obj, View};

use super::entry;
use super::key::{WORD, word_at};
use super::node::{MAX_HEIGHT, MapRoot, Node, Visit};
use super::order::FANOUT;

/// Where a key is, or where it would be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    At(usize),
    Before(usize),
}

impl Found {
    pub(crate) fn place(self) -> usize {
        match self {
            Self::At(place) | Self::Before(place) => place,
        }
    }
}

/// Number of levels, checked.
#[inline]
pub(crate) fn height<'g, V: View<'g>>(root: Obj<'g, MapRoot, V>) -> Result<usize, Error> {
    let height = root.load(MapRoot::HEIGHT);
    if height > MAX_HEIGHT as u64 {
        return Err(Error::Damaged {
            what: "the height of a map",
            at: root.address().0,
        });
    }
    Ok(height as usize)
}

/// The topmost node of a map that is not empty.
#[inline]
pub(crate) fn top<'g, V: View<'g>>(root: Obj<'g, MapRoot, V>) -> Result<Visit<'g, V>, Error> {
    match root.follow(MapRoot::TOP) {
        Some(top) => Visit::new(top),
        None => Err(Error::Damaged {
            what: "a map without its topmost node",
            at: root.address().0,
        }),
    }
}

impl<'g, V: View<'g>> Visit<'g, V> {
    /// How many words from place `first` on are below `word`, and how many are at most `word`; both counts include the
    /// places before `first`.
    ///
    /// Reads every slot, in use or not: the addresses do not wait for the order word, so all lines of the node are
    /// fetched at once.
    #[inline(always)]
    fn rank(&self, first: usize, word: u64) -> (usize, usize) {
        let (mut below, mut most) = (0u32, 0u32);
        for slot in 0..FANOUT {
            let stored = self.node.load(Node::WORDS.at(slot));
            below |= u32::from(stored < word) << slot;
            most |= u32::from(stored <= word) << slot;
        }
        let used = self.order.slots(first);
        let count = |slots: u32| first + (slots & used).count_ones() as usize;
        (count(below), count(most))
    }

    /// Finds `key` in a leaf.
    #[inline(always)]
    pub(crate) fn find(&self, key: &[u8]) -> Result<Found, Error> {
        self.expect_references();
        let (mut low, mut high) = self.rank(0, word_at(key, self.skip));
        while low < high {
            let middle = (low + high) / 2;
            match entry::compare(self.entry(middle)?, key, self.skip + WORD) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(Found::At(middle)),
            }
        }
        Ok(Found::Before(low))
    }

    /// Touches the last line of the node, so that it has arrived when a reference is needed.
    #[inline(always)]
    fn expect_references(&self) {
        core::hint::black_box(self.node.tag(Node::KEYS.at(FANOUT - 1)));
    }

    /// The place of the child whose range holds `key`.
    #[inline(always)]
    pub(crate) fn route(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = self.rank(1, word_at(key, self.skip));
        while low < high {
            let middle = (low + high) / 2;
            // A separator without an object is the least string with its word.
            let above = self
                .key(middle)
                .is_some_and(|s| entry::compare(s, key, self.skip + WORD).is_gt());
            if above {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low.saturating_sub(1)
    }

    /// The child at `place` that is `level` levels above the leaves.
    ///
    /// Errors: there is none, or it is of the wrong level.
    #[inline(always)]
    pub(crate) fn descend(&self, place: usize, level: usize) -> Result<Self, Error> {
        let child = Self::new(self.child(place)?)?;
        child.check_level(level)?;
        Ok(child)
    }

    /// Whether the node has children as a node `level` levels above the leaves must.
    #[inline]
    pub(crate) fn check_level(&self, level: usize) -> Result<(), Error> {
        if self.is_leaf() != (level == 0) || level > 0 && self.count() == 0 {
            return Err(self.damaged("a map's node on the wrong level"));
        }
        Ok(())
    }
}

/// The leaf whose range holds `key`; `None` if the map is empty.
#[inline]
pub(crate) fn leaf<'g, V: View<'g>>(
    root: Obj<'g, MapRoot, V>,
    key: &[u8],
) -> Result<Option<Visit<'g, V>>, Error> {
    let height = height(root)?;
    if height == 0 {
        return Ok(None);
    }
    let mut visit = top(root)?;
    visit.check_level(height - 1)?;
    for level in (0..height - 1).rev() {
        visit = visit.descend(visit.route(key), level)?;
    }
    Ok(Some(visit))
}

/// The entry of `key`.
#[inline]
pub(crate) fn entry<'g, V: View<'g>>(
    root: Obj<'g, MapRoot, V>,
    key: &[u8],
) -> Result<Option<entry::Entry<'g, V>>, Error> {
    let Some(leaf) = leaf(root, key)? else {
        return Ok(None);
    };
    match leaf.find(key)? {
        Found::At(place) => leaf.entry(place).map(Some),
        Found::Before(_) => Ok(None),
    }
}
