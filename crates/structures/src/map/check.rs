//! Whether every invariant of a map holds.

use std::collections::HashSet;

use firn_heap::{Error, Obj, View};

use super::entry;
use super::fence::{Fences, separator_at};
use super::key;
use super::node::{MapRoot, Visit};
use super::order::FANOUT;
use super::search;
use crate::protocol::MAX_FINDINGS;

/// Checks every node and entry; the caller holds the lock.
pub(crate) fn check<'g, V: View<'g>>(
    root: Obj<'g, MapRoot, V>,
    findings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut check = Check::default();
    let outcome = check.whole(root);
    findings.append(&mut check.findings);
    outcome
}

/// How many nodes the map has, as far as it is sound; the caller holds the lock.
pub(crate) fn shape<'g, V: View<'g>>(root: Obj<'g, MapRoot, V>) -> Shape {
    let mut check = Check::default();
    // `check` reports damage, not this function.
    let _ = check.whole(root);
    check.shape
}

/// How many nodes a map has, and their content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Shape {
    /// Levels.
    pub height: u64,
    /// Entries.
    pub entries: u64,
    /// Nodes that hold entries.
    pub leaves: u64,
    /// Nodes above the leaves.
    pub inner_nodes: u64,
    /// Separators with an object of their own.
    pub separator_objects: u64,
}

#[derive(Default)]
struct Check {
    findings: Vec<String>,
    /// Addresses of all nodes, entries and separators so far.
    seen: HashSet<u64>,
    shape: Shape,
}

/// A node's position, and the keys that bound it.
struct Place<'k> {
    level: usize,
    low: Option<&'k [u8]>,
    high: Option<&'k [u8]>,
}

impl Check {
    fn whole<'g, V: View<'g>>(&mut self, root: Obj<'g, MapRoot, V>) -> Result<(), Error> {
        let height = search::height(root)?;
        self.shape.height = height as u64;
        if height > 0 {
            let place = Place {
                level: height - 1,
                low: None,
                high: None,
            };
            self.node(search::top(root)?, &place)?;
        } else if root.follow(MapRoot::TOP).is_some() {
            self.note("the map has no levels, but a topmost node".into());
        }
        let len = root.load(MapRoot::LEN);
        if len != self.shape.entries {
            let found = self.shape.entries;
            self.note(format!("the map says {len} entries, there are {found}"));
        }
        Ok(())
    }

    fn note(&mut self, finding: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn once(&mut self, what: &str, at: u64) -> bool {
        let new = self.seen.insert(at);
        if !new {
            self.note(format!("{what} at {at:#x} is reached twice"));
        }
        new
    }

    fn node<'g, V: View<'g>>(&mut self, node: Visit<'g, V>, place: &Place) -> Result<(), Error> {
        let at = node.node.address().0;
        node.check_level(place.level)?;
        node.check_for_change()?;
        if !self.once("the node", at) || self.findings.len() == MAX_FINDINGS {
            return Ok(());
        }
        if node.skip > Fences::common(place.low, place.high) {
            let skip = node.skip;
            self.note(format!(
                "the node at {at:#x} leaves out {skip} bytes that its keys do not have in common"
            ));
        }
        for free in node.count()..FANOUT {
            if node.key(free).is_some() {
                self.note(format!("a free slot of the node at {at:#x} is in use"));
            }
        }
        match place.level {
            0 => self.leaf(&node, place),
            _ => self.inner(&node, place),
        }
    }

    fn leaf<'g, V: View<'g>>(&mut self, leaf: &Visit<'g, V>, place: &Place) -> Result<(), Error> {
        self.shape.leaves += 1;
        let mut last: Option<Vec<u8>> = None;
        for at in 0..leaf.count() {
            let entry = leaf.entry(at)?;
            let address = entry.address().0;
            self.once("the entry", address);
            entry::parts(entry)?;
            let key = entry::sound_key(entry)?;
            let within = place.low.is_none_or(|low| low <= &key[..])
                && place.high.is_none_or(|high| &key[..] < high);
            if !within {
                self.note(format!("the key at {address:#x} is in the wrong leaf"));
            }
            if last.as_ref().is_some_and(|last| *last >= key) {
                self.note(format!("the key at {address:#x} is out of order"));
            }
            if leaf.word(at) != key::word_at(&key, leaf.skip) {
                self.note(format!("the key at {address:#x} has another word"));
            }
            last = Some(key);
            self.shape.entries += 1;
        }
        Ok(())
    }

    fn inner<'g, V: View<'g>>(&mut self, node: &Visit<'g, V>, place: &Place) -> Result<(), Error> {
        self.shape.inner_nodes += 1;
        let at = node.node.address().0;
        let children = node.children()?;
        self.once("the array of children", children.address().0);
        for free in node.count()..FANOUT {
            if children.get(node.order.slot(free)).is_some() {
                self.note(format!("a free slot of the node at {at:#x} has a child"));
            }
        }
        let prefix = place.low.unwrap_or(&[]).get(..node.skip).unwrap_or(&[]);
        let mut low = place.low.map(<[u8]>::to_vec);
        for child in 0..node.count() {
            let high = match child + 1 {
                next if next == node.count() => place.high.map(<[u8]>::to_vec),
                next => {
                    if let Some(object) = node.key(next) {
                        self.shape.separator_objects += 1;
                        self.once("the separator", object.address().0);
                    }
                    let separator = separator_at(node, next, prefix)?;
                    if node.word(next) != key::word_at(&separator, node.skip) {
                        self.note(format!(
                            "a separator of the node at {at:#x} has another word"
                        ));
                    }
                    Some(separator)
                }
            };
            if let (Some(low), Some(high)) = (&low, &high)
                && low >= high
            {
                self.note(format!(
                    "separators of the node at {at:#x} are out of order"
                ));
            }
            let below = Place {
                level: place.level - 1,
                low: low.as_deref(),
                high: high.as_deref(),
            };
            self.node(node.descend(child, place.level - 1)?, &below)?;
            low = high;
        }
        Ok(())
    }
}
