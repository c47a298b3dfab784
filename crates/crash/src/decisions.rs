//! What checks did, by what they read.
//!
//! A check is deterministic: what it loads next follows from what it knows at its start and from
//! the values of its loads so far. So all runs with the same knowledge make a tree of loads, and a
//! run is known once its path through the tree is.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::class::Key;
use crate::overlay::Overlay;
use crate::trace::Event;

/// How a run of the check ended.
pub(crate) struct Outcome {
    pub(crate) verdict: Result<(), String>,
    /// What it did before the end of recovery. What a store replaced is that of the one run.
    pub(crate) recovery: Vec<Event>,
}

/// What a run had done when recovery was complete.
pub(crate) struct Recovery {
    /// What a crash may fall between. What a store replaced is that of the one run.
    pub(crate) events: Vec<Event>,
    /// What it made of memory.
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

pub(crate) enum Node {
    Load {
        key: Key,
        at: u32,
        first: (u64, u32),
        others: Vec<(u64, u32)>,
    },
    /// Recovery is complete.
    Recovered(Rc<Recovery>),
    End(Rc<Outcome>),
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
    nodes: Vec<Node>,
}

/// A run whose loads do not fit those of the runs before.
pub(crate) struct Diverged;

impl Decisions {
    pub(crate) fn root(&self, known: u128) -> Option<u32> {
        self.roots.get(&known).copied()
    }

    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Where the runs go on that load `value` here, if there was one.
    #[inline]
    pub(crate) fn next(&self, node: u32, value: u64) -> Option<u32> {
        match self.node(node) {
            Node::Load { first, .. } if first.0 == value => Some(first.1),
            Node::Load { others, .. } => others
                .iter()
                .find(|(other, _)| *other == value)
                .map(|(_, next)| *next),
            Node::Recovered(_) | Node::End(_) => None,
        }
    }

    /// Takes in a run.
    pub(crate) fn insert(
        &mut self,
        known: u128,
        mut path: &[Step],
        course: Course,
    ) -> Result<(), Diverged> {
        let end = self.nodes.len() as u32;
        let Some(mut node) = self.root(known) else {
            self.roots.insert(known, end);
            self.append(path, course);
            return Ok(());
        };
        loop {
            match (&mut self.nodes[node as usize], path.split_first()) {
                (
                    Node::Load {
                        key,
                        at,
                        first,
                        others,
                    },
                    Some((step, rest)),
                ) if (*key, *at) == (step.key, step.at) => {
                    path = rest;
                    let edges = core::iter::once(&*first).chain(others.iter());
                    let next = edges.copied().find(|(value, _)| *value == step.value);
                    if let Some((_, next)) = next {
                        node = next;
                        continue;
                    }
                    others.push((step.value, end));
                    self.append(path, course);
                    return Ok(());
                }
                _ => return Err(Diverged),
            }
        }
    }

    /// Appends a path on which nothing is known yet: its nodes follow one another.
    fn append(&mut self, path: &[Step], course: Course) {
        for step in path {
            let next = self.nodes.len() as u32 + 1;
            self.nodes.push(Node::Load {
                key: step.key,
                at: step.at,
                first: (step.value, next),
                others: Vec::new(),
            });
        }
        self.nodes.push(match course {
            Course::Recovered(recovery) => Node::Recovered(Rc::new(recovery)),
            Course::Ended(outcome) => Node::End(Rc::new(outcome)),
        });
    }
}
