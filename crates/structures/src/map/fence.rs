//! Fences: the separators between which the keys of a node lie.

use firn_heap::{Error, View};

use super::node::Visit;
use super::path::{Path, Step};
use super::{entry, key};

/// Every key of a node is at or above `low` and below `high`; `None` where there is no bound.
#[derive(Default)]
pub(crate) struct Fences {
    pub(crate) low: Option<Vec<u8>>,
    pub(crate) high: Option<Vec<u8>>,
}

impl Fences {
    /// The fences of the node at `depth` of the path to `key`.
    pub(crate) fn of<'g, V: View<'g>>(
        path: &Path<'g, V>,
        depth: usize,
        key: &[u8],
    ) -> Result<Self, Error> {
        let above = &path.steps[..depth];
        let low = above.iter().rev().find(|s| s.place > 0);
        let high = above.iter().rev().find(|s| s.place + 1 < s.visit.count());
        let at = |step: &Step<'g, V>, place| {
            let prefix = prefix_of(&step.visit, key)?;
            separator_at(&step.visit, place, prefix)
        };
        Ok(Self {
            low: low.map(|s| at(s, s.place)).transpose()?,
            high: high.map(|s| at(s, s.place + 1)).transpose()?,
        })
    }

    /// The length of the prefix that all keys between two fences share.
    pub(crate) fn common(low: Option<&[u8]>, high: Option<&[u8]>) -> usize {
        match (low, high) {
            (Some(low), Some(high)) => key::common(low, high),
            _ => 0,
        }
    }
}

/// The prefix that all keys of the node share and its words leave out: the start of any key of its range, or of its
/// lower fence.
pub(crate) fn prefix_of<'k, 'g, V: View<'g>>(
    visit: &Visit<'g, V>,
    of_range: &'k [u8],
) -> Result<&'k [u8], Error> {
    of_range
        .get(..visit.skip)
        .ok_or_else(|| visit.damaged("the common length of a map's node"))
}

/// The separator at `place`, which is not 0, of an inner node.
pub(crate) fn separator_at<'g, V: View<'g>>(
    visit: &Visit<'g, V>,
    place: usize,
    prefix: &[u8],
) -> Result<Vec<u8>, Error> {
    match visit.key(place) {
        Some(object) => entry::key(object),
        None => Ok(key::from_word(prefix, visit.word(place))),
    }
}
