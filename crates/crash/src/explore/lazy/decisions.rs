//! What checks did, indexed by what they read.
//!
//! A check is deterministic: its next load follows from what it knows at its start and from the values of its loads so
//! far. So all runs with equal knowledge form a tree of loads, and a run is known once its path through the tree is.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::explore::lazy::class::Key;
use crate::explore::lazy::overlay::Overlay;
use crate::memory::event::Event;

/// How a run of the check ended.
pub(crate) struct Outcome {
    pub(crate) verdict: Result<(), String>,
    /// What it did before the end of recovery. A store's replaced content is that of this run alone.
    pub(crate) recovery: Vec<Event>,
}

/// What a run had done when recovery was complete.
pub(crate) struct Recovery {
    /// The events that a crash may fall between. A store's replaced content is that of this run alone.
    pub(crate) events: Vec<Event>,
    /// Its effect on memory.
    pub(crate) overlay: Overlay,
    /// See [`crate::Crash::goes_on`].
    pub(crate) knows: u64,
}

/// A load of a word that the run had neither loaded nor stored before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) value: u64,
    /// Events of the run before it.
    pub(crate) at: u32,
}

/// What a run does at a node.
#[derive(Clone, Copy)]
pub(crate) enum Node<'a> {
    Load {
        key: Key,
        at: u32,
    },
    /// Recovery is complete.
    Recovered(&'a Rc<Recovery>),
    End(&'a Rc<Outcome>),
}

/// A node as it is stored; there are many.
struct Kept {
    /// Of a load: the value that leads to the following node. Of a leaf: its number.
    value: u64,
    /// The place loaded; [`LEAF`] if this is a leaf.
    key: Key,
    at: u32,
    /// Index from 1 into `others`, where the successors of other values are; 0 if there are none.
    others: u32,
}

const LEAF: Key = Key::MAX;

enum Leaf {
    Recovered(Rc<Recovery>),
    End(Rc<Outcome>),
}

impl Recovery {
    /// Identifies it.
    fn hash(&self) -> u128 {
        let mut bytes = Vec::with_capacity(32 + 24 * self.events.len());
        bytes.extend(self.overlay.hash().to_le_bytes());
        bytes.extend(self.knows.to_le_bytes());
        for event in &self.events {
            for word in event.digest() {
                bytes.extend(word.to_le_bytes());
            }
            bytes.push(u8::from(event.changes().is_some()));
        }
        xxh3_128(&bytes)
    }
}

/// How far a run went.
pub(crate) enum Course {
    /// Until recovery was complete.
    Recovered(Recovery),
    /// To its end.
    Ended(Outcome),
}

/// The tree, with a root for each knowledge.
#[derive(Default)]
pub(crate) struct Decisions {
    roots: FxHashMap<u128, u32>,
    nodes: Vec<Kept>,
    others: Vec<Vec<(u64, u32)>>,
    leaves: Vec<Leaf>,
    /// Leaves by what recovery did. Most runs of a root end in the same few.
    recoveries: FxHashMap<u128, u64>,
}

/// The tree's news from a run.
pub(crate) enum News {
    Path,
    /// Such a run was known already.
    Nothing,
}

/// A run whose loads do not fit those of the runs before.
pub(crate) struct Diverged;

impl Decisions {
    pub(crate) fn root(&self, known: u128) -> Option<u32> {
        self.roots.get(&known).copied()
    }

    #[inline]
    pub(crate) fn node(&self, node: u32) -> Node<'_> {
        let kept = &self.nodes[node as usize];
        if kept.key != LEAF {
            let (key, at) = (kept.key, kept.at);
            return Node::Load { key, at };
        }
        match &self.leaves[kept.value as usize] {
            Leaf::Recovered(recovery) => Node::Recovered(recovery),
            Leaf::End(outcome) => Node::End(outcome),
        }
    }

    /// The node that follows a load of `value` here, if a run went there.
    #[inline]
    pub(crate) fn next(&self, node: u32, value: u64) -> Option<u32> {
        let kept = &self.nodes[node as usize];
        match (kept.key, kept.others) {
            (LEAF, _) => None,
            _ if kept.value == value => Some(node + 1),
            (_, 0) => None,
            (_, others) => {
                let mut others = self.others[others as usize - 1].iter();
                others.find(|other| other.0 == value).map(|other| other.1)
            }
        }
    }

    /// The value found here and the next node, at a node whose value follows from the values found before.
    pub(crate) fn only(&self, node: u32) -> (u64, u32) {
        (self.nodes[node as usize].value, node + 1)
    }

    /// Takes in a run.
    pub(crate) fn insert(
        &mut self,
        known: u128,
        mut path: &[Step],
        course: Course,
    ) -> Result<News, Diverged> {
        let end = self.nodes.len() as u32;
        let Some(mut node) = self.root(known) else {
            self.roots.insert(known, end);
            self.append(path, course);
            return Ok(News::Path);
        };
        while let Node::Load { key, at } = self.node(node) {
            let Some((step, rest)) = path.split_first() else {
                break;
            };
            if (key, at) != (step.key, step.at) {
                break;
            }
            path = rest;
            if let Some(next) = self.next(node, step.value) {
                node = next;
                continue;
            }
            self.branch(node, step.value, end);
            self.append(path, course);
            return Ok(News::Path);
        }
        let is_leaf = !matches!(self.node(node), Node::Load { .. });
        match is_leaf && path.is_empty() {
            true => Ok(News::Nothing),
            false => Err(Diverged),
        }
    }

    /// Adds the edge from a load to the node that follows a value.
    fn branch(&mut self, node: u32, value: u64, to: u32) {
        let others = &mut self.nodes[node as usize].others;
        if *others == 0 {
            self.others.push(Vec::new());
            *others = self.others.len() as u32;
        }
        self.others[*others as usize - 1].push((value, to));
    }

    /// Appends a new path: its nodes are consecutive.
    fn append(&mut self, path: &[Step], course: Course) {
        let loads = path.iter().map(|step| Kept {
            value: step.value,
            key: step.key,
            at: step.at,
            others: 0,
        });
        self.nodes.extend(loads);
        let value = self.leaf(course);
        self.nodes.push(Kept {
            value,
            key: LEAF,
            at: 0,
            others: 0,
        });
    }

    /// The number of the leaf for an end.
    fn leaf(&mut self, course: Course) -> u64 {
        let next = self.leaves.len() as u64;
        let leaf = match course {
            Course::Ended(outcome) => Leaf::End(Rc::new(outcome)),
            Course::Recovered(recovery) => {
                let known = *self.recoveries.entry(recovery.hash()).or_insert(next);
                if known != next {
                    return known;
                }
                Leaf::Recovered(Rc::new(recovery))
            }
        };
        self.leaves.push(leaf);
        next
    }
}
