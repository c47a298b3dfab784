//! The defects of a tree, in sentences.

use std::collections::HashSet;

use firn_heap::{Error, Obj, View};

use super::kind::Kind;
use crate::protocol::{MAX_FINDINGS, Part};

/// The state of a check.
#[derive(Default)]
pub struct Check {
    findings: Vec<String>,
    /// Addresses of all objects so far.
    seen: HashSet<u64>,
    entries: u64,
    last: Option<u64>,
}

/// Checks every node and entry; the caller holds the lock. Ends at the first finding after which the rest cannot be
/// trusted.
pub(crate) fn check<'g, V: View<'g>, K: Kind>(
    root: Obj<'g, K::Root, V>,
    findings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut check = Check::default();
    let outcome = K::check(Part(root), &mut check);
    let (len, found) = (root.load(K::LEN), check.entries);
    if outcome.is_ok() && len != found {
        check.note(format!("the tree says {len} entries, there are {found}"));
    }
    findings.append(&mut check.findings);
    outcome
}

impl Check {
    pub(crate) fn note(&mut self, finding: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// Whether the object was not seen before, and should be looked at.
    pub(crate) fn once(&mut self, what: &str, at: u64) -> bool {
        let new = self.seen.insert(at);
        if !new {
            self.note(format!("the {what} at {at:#x} is reached twice"));
        }
        new && self.findings.len() < MAX_FINDINGS
    }

    /// Notes that the next entry in order has this key.
    pub(crate) fn entry(&mut self, key: u64, at: u64) {
        if self.last.is_some_and(|last| last >= key) {
            self.note(format!("the key {key} at {at:#x} is out of order"));
        }
        self.last = Some(key);
        self.entries += 1;
    }
}
