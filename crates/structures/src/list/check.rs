//! Whether every invariant of a list holds.

use std::collections::HashSet;

use firn_heap::{Error, View};

use super::node::{Direction, ListRoot, Node, NodeAt, Root, end, step, value};
use crate::protocol::MAX_FINDINGS;

/// Checks every node; the caller holds the lock. Ends at the first finding after which the rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>>(
    root: Root<'g, V>,
    findings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let mut found = 0;
    let mut previous: Option<NodeAt<'g, V>> = None;
    let mut next = end(root, Direction::Forward)?;
    while let Some(node) = next {
        let at = node.address().0;
        if !seen.insert(at) {
            findings.push(format!("the element at {at:#x} is reached twice"));
            return Ok(());
        }
        if node.follow(Node::PREVIOUS) != previous {
            findings.push(format!("the element at {at:#x} names another before it"));
        }
        let value = value(node)?;
        value.checked_len()?;
        if !seen.insert(value.address().0) {
            findings.push(format!("the value of the element at {at:#x} is shared"));
        }
        if findings.len() >= MAX_FINDINGS {
            return Ok(());
        }
        found += 1;
        previous = Some(node);
        next = step(node, Direction::Forward)?;
    }
    if root.follow(ListRoot::LAST) != previous {
        findings.push("the list names another last element".into());
    }
    let len = root.load(ListRoot::LEN);
    if len != found {
        findings.push(format!("the list says {len} elements, there are {found}"));
    }
    Ok(())
}
