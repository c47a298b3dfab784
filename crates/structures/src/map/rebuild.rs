//! The content of whole nodes, taken out, rearranged and put back when nodes split or merge.

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

use super::entry::{self, Entry};
use super::fence::separator_at;
use super::key;
use super::node::{Node, Visit};
use super::order::{FANOUT, Order};
use crate::reclaim::free_unlinked;

/// An entry of a leaf.
pub(crate) struct LeafItem<'t, M: Medium> {
    pub(crate) word: u64,
    pub(crate) entry: Entry<'t, Tx<'t, M>>,
}

/// Entries of leaves, with their words behind `skip` bytes.
pub(crate) struct LeafItems<'t, M: Medium> {
    pub(crate) skip: usize,
    pub(crate) items: Vec<LeafItem<'t, M>>,
}

impl<'t, M: Medium> LeafItems<'t, M> {
    /// The entries of a leaf.
    pub(crate) fn take(leaf: &Visit<'t, Tx<'t, M>>) -> Result<Self, Error> {
        leaf.check_for_change()?;
        let items = (0..leaf.count()).map(|place| {
            Ok(LeafItem {
                word: leaf.word(place),
                entry: leaf.entry(place)?,
            })
        });
        Ok(Self {
            skip: leaf.skip,
            items: items.collect::<Result<_, Error>>()?,
        })
    }

    /// Appends the entries of the right neighbour.
    pub(crate) fn append(&mut self, mut right: Self) -> Result<(), Error> {
        if self.skip != right.skip {
            self.reword(0)?;
            right.reword(0)?;
        }
        self.items.append(&mut right.items);
        Ok(())
    }

    /// Splits off the entries from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        Self {
            skip: self.skip,
            items: self.items.split_off(at),
        }
    }

    /// The shortest separator between the entries before `at` and those from `at` on.
    pub(crate) fn separator(&self, at: usize) -> Result<Vec<u8>, Error> {
        let low = entry::key(self.items[at - 1].entry)?;
        let high = entry::key(self.items[at].entry)?;
        Ok(key::separator(&low, &high).to_vec())
    }

    fn reword(&mut self, skip: usize) -> Result<(), Error> {
        for item in &mut self.items {
            item.word = entry::word_at(item.entry, skip)?;
        }
        self.skip = skip;
        Ok(())
    }

    /// Makes these the entries of `leaf`, whose keys have their first `common` bytes in common.
    ///
    /// Makes new words, which reads every key, only if they change or two of them are equal.
    pub(crate) fn store(
        mut self,
        leaf: &mut Visit<'t, Tx<'t, M>>,
        common: usize,
    ) -> Result<(), Error> {
        let ties = |items: &[LeafItem<'_, M>]| items.windows(2).any(|w| w[0].word == w[1].word);
        if self.skip > common || self.skip < common && ties(&self.items) {
            self.reword(common)?;
        }
        for slot in 0..FANOUT {
            match self.items.get(slot) {
                Some(item) => leaf.set_slot(slot, item.word, Some(item.entry)),
                None => leaf.set_key(slot, None),
            }
        }
        leaf.set_skip(self.skip);
        leaf.set_order(Order::identity(self.items.len()));
        Ok(())
    }
}

/// A separator's word in a node, and its object if the word does not decide alone.
pub(crate) type Expressed<'t, M> = (u64, Option<Entry<'t, Tx<'t, M>>>);

/// A separator: its bytes, and its object if it has one.
pub(crate) struct Separator<'t, M: Medium> {
    pub(crate) key: Vec<u8>,
    pub(crate) object: Option<Entry<'t, Tx<'t, M>>>,
}

impl<'t, M: Medium> Separator<'t, M> {
    /// The separator at place 0.
    pub(crate) const NONE: Self = Self {
        key: Vec::new(),
        object: None,
    };

    /// Word and object of this separator in a node: drops or makes the object as needed.
    pub(crate) fn express(self, tx: Tx<'t, M>, skip: usize) -> Result<Expressed<'t, M>, Error> {
        let word = key::word_at(&self.key, skip);
        match (key::decides(&self.key, skip), self.object) {
            (true, None) => Ok((word, None)),
            (true, Some(object)) => {
                free_unlinked(tx, object)?;
                Ok((word, None))
            }
            (false, Some(object)) => Ok((word, Some(object))),
            (false, None) => Ok((word, Some(entry::alloc(tx, &self.key, &[])?))),
        }
    }
}

/// A child and the separator before it.
pub(crate) struct InnerItem<'t, M: Medium> {
    pub(crate) separator: Separator<'t, M>,
    pub(crate) child: Obj<'t, Node, Tx<'t, M>>,
}

/// The children of a node whose keys begin with `prefix`.
pub(crate) fn take_inner<'t, M: Medium>(
    node: &Visit<'t, Tx<'t, M>>,
    prefix: &[u8],
) -> Result<Vec<InnerItem<'t, M>>, Error> {
    node.check_for_change()?;
    let item = |place| {
        let separator = match place {
            0 => Separator::NONE,
            _ => Separator {
                key: separator_at(node, place, prefix)?,
                object: node.key(place),
            },
        };
        let child = node.child(place)?;
        Ok(InnerItem { separator, child })
    };
    (0..node.count()).map(item).collect()
}

/// Makes `items` the children of `node`, whose keys have their first `common` bytes in common.
pub(crate) fn store_inner<'t, M: Medium>(
    tx: Tx<'t, M>,
    node: &mut Visit<'t, Tx<'t, M>>,
    items: Vec<InnerItem<'t, M>>,
    common: usize,
) -> Result<(), Error> {
    let children = node.children()?;
    let count = items.len();
    for (slot, item) in items.into_iter().enumerate() {
        let (word, object) = match slot {
            0 => (0, None),
            _ => item.separator.express(tx, common)?,
        };
        node.set_slot(slot, word, object);
        if children.get(slot) != Some(item.child) {
            children.set(slot, Some(item.child))?;
        }
    }
    for slot in count..FANOUT {
        node.set_key(slot, None);
        if children.get(slot).is_some() {
            children.set(slot, None)?;
        }
    }
    node.set_skip(common);
    node.set_order(Order::identity(count));
    Ok(())
}
