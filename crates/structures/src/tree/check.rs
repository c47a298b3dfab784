//! Sentences about what is wrong with a tree.

use std::collections::HashSet;

use firn_heap::{Obj, View};

use super::kind::Kind;

/// Findings after which the check ends.
const MAX_FINDINGS: usize = 100;

/// What a check has seen.
pub struct Check {
    findings: Vec<String>,
    /// Addresses of all objects so far.
    seen: HashSet<u64>,
    entries: u64,
    last: Option<u64>,
}

/// Looks at every node and entry; the caller holds the lock. Ends at the first finding behind which
/// the rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>, K: Kind>(root: Obj<'g, K::Root, V>) -> Vec<String> {
    let mut check = Check {
        findings: Vec::new(),
        seen: HashSet::new(),
        entries: 0,
        last: None,
    };
    match K::check(root, &mut check) {
        Ok(()) => {
            let (len, found) = (root.load(K::LEN), check.entries);
            if len != found {
                check.note(format!("the tree says {len} entries, there are {found}"));
            }
        }
        Err(error) => check.findings.push(error.to_string()),
    }
    check.findings
}

impl Check {
    pub(crate) fn note(&mut self, finding: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// Whether the object was not seen before, and there is reason to look at it.
    pub(crate) fn once(&mut self, what: &str, at: u64) -> bool {
        let new = self.seen.insert(at);
        if !new {
            self.note(format!("the {what} at {at:#x} is reached twice"));
        }
        new && self.findings.len() < MAX_FINDINGS
    }

    /// The next entry in order has this key.
    pub(crate) fn entry(&mut self, key: u64, at: u64) {
        if self.last.is_some_and(|last| last >= key) {
            self.note(format!("the key {key} at {at:#x} is out of order"));
        }
        self.last = Some(key);
        self.entries += 1;
    }
}
