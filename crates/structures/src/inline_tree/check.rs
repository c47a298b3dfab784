//! Whether every invariant of the tree holds.

use firn_heap::{Error, View};

use super::InlineRoot;
use super::branch::{Branch, BranchAt};
use super::leaf::LeafAt;
use super::path::{self, Root};
use crate::map::order::FANOUT;
use crate::tree::check::Check;

/// Keys that may be below a node: from the first to the last.
type Keys = core::ops::RangeInclusive<u64>;

pub(crate) fn check<'g, V: View<'g>>(root: Root<'g, V>, check: &mut Check) -> Result<(), Error> {
    let height = path::height(root)?;
    if height > 0 {
        return branch(path::top(root)?, height - 1, 0..=u64::MAX, check);
    }
    if root.follow(InlineRoot::TOP).is_some() {
        check.note("the tree has no levels, but a topmost branch".into());
    }
    Ok(())
}

/// Checks a branch `level` levels above the lowest, and the levels below it.
fn branch<'g, V: View<'g>>(
    node: BranchAt<'g, V>,
    level: usize,
    keys: Keys,
    check: &mut Check,
) -> Result<(), Error> {
    let at = node.object.address().0;
    node.check_for_change()?;
    if !check.once("branch", at) {
        return Ok(());
    }
    for place in 0..FANOUT {
        let slot = node.order.slot(place);
        let has_child = node.object.follow(Branch::CHILDREN.at(slot)).is_some();
        if has_child != (place < node.count()) {
            check.note(format!(
                "slot {slot} of the branch at {at:#x} has a child that it should not have, or none"
            ));
        }
    }
    let mut low = *keys.start();
    for place in 0..node.count() {
        let high = match place + 1 {
            next if next == node.count() => *keys.end(),
            next => {
                let separator = node.key(next);
                if separator <= low || separator > *keys.end() {
                    check.note(format!(
                        "separators of the branch at {at:#x} are out of order"
                    ));
                }
                separator.saturating_sub(1)
            }
        };
        match level {
            0 => leaf(LeafAt::new(node.leaf(place)?)?, low..=high, check),
            _ => branch(node.branch(place)?, level - 1, low..=high, check)?,
        }
        low = high.saturating_add(1);
    }
    Ok(())
}

fn leaf<'g, V: View<'g>>(leaf: LeafAt<'g, V>, keys: Keys, check: &mut Check) {
    let at = leaf.object.address().0;
    if !check.once("leaf", at) {
        return;
    }
    let (sorted, count) = leaf.sorted();
    for &slot in &sorted[..count] {
        let key = leaf.key(slot);
        if !keys.contains(&key) {
            check.note(format!("the key {key} at {at:#x} is in the wrong leaf"));
        }
        check.entry(key, at);
    }
}
