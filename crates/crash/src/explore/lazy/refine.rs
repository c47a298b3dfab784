//! The walk through what runs did, for all images of a class.

use std::rc::Rc;

use crate::explore::lazy::class::{BEGINS, ENDS, ImageClass, Key, SCANS};
use crate::explore::lazy::completion::Marks;
use crate::explore::lazy::decisions::{Decisions, Node, Outcome};
use crate::explore::lazy::narrowing::{Filter, Narrowing};
use crate::explore::lazy::walk::Lazy;
use crate::memory::event::Event;

impl Lazy<'_, '_> {
    /// The result of `find` in the tree; if nothing is there yet, a run on the current class comes first.
    pub(super) fn follow(
        &mut self,
        depth: u32,
        known: u128,
        find: impl Fn(&Decisions) -> Option<u32>,
    ) -> Option<u32> {
        let found = find(&self.decisions[depth as usize]);
        if found.is_some() {
            return found;
        }
        if self.runs >= self.walker.options.max_states {
            self.stopped = true;
            return None;
        }
        // A run that did not see all marks may have gone another way.
        let hides = self.run_recorded(depth, known, Marks::Hidden);
        let found = find(&self.decisions[depth as usize]);
        if found.is_none() && hides {
            self.run_recorded(depth, known, Marks::Shown);
            return find(&self.decisions[depth as usize]);
        }
        found
    }

    /// Continues in the tree from `node` with all images of the current class. Crashes before event `from` of their
    /// runs were tried already. Returns whether recoveries were crashed.
    pub(super) fn refine(&mut self, depth: u32, known: u128, mut node: u32, from: u32) -> bool {
        loop {
            let (key, at) = match self.decisions[depth as usize].node(node) {
                Node::Load { key, at } => (key, at),
                Node::Recovered(recovery) => {
                    let recovery = Rc::clone(recovery);
                    return self.recovered(depth, &recovery)
                        && self.crash_recovery(depth, &recovery.events, from);
                }
                Node::End(outcome) => {
                    let outcome = Rc::clone(outcome);
                    return self.arrive(depth, &outcome, from);
                }
            };
            let (slot, word) = match ImageClass::place(key) {
                (slot, SCANS) => return self.scan(depth, known, (node, at), slot, from),
                (slot, BEGINS) => {
                    return self.begin_completion(depth, known, (node, at), slot, from);
                }
                (slot, ENDS) => return self.end_completion(depth, known, (node, at), slot, from),
                place => place,
            };
            let Some(value) = self.class.get(slot).agreed(word) else {
                return self.split(depth, known, node, (key, at), from);
            };
            match self.follow(depth, known, |tree| tree.next(node, value)) {
                Some(next) => node = next,
                None => return false,
            }
        }
    }

    /// Continues in the tree where runs found `value` at `node`. Returns whether recoveries were crashed.
    pub(super) fn go_on(
        &mut self,
        depth: u32,
        known: u128,
        (node, value): (u32, u64),
        from: u32,
    ) -> bool {
        let next = self.follow(depth, known, |tree| tree.next(node, value));
        next.is_some_and(|next| self.refine(depth, known, next, from))
    }

    /// Continues with each part of the class by the value of a word.
    fn split(
        &mut self,
        depth: u32,
        known: u128,
        node: u32,
        (key, at): (Key, u32),
        mut from: u32,
    ) -> bool {
        let (slot, word) = ImageClass::place(key);
        let before = Rc::clone(self.class.get(slot));
        let mut crashed = false;
        for value in before.values(word) {
            let kept = Rc::new(before.with(word, value));
            self.class.set(slot, Rc::clone(&kept));
            let filter = Filter {
                at,
                slot,
                narrowing: Narrowing::Word(word, value),
                kept,
                before: Rc::clone(&before),
            };
            self.splits().push(filter);
            if self.go_on(depth, known, (node, value), from) {
                // Up to this load, the other parts have equal runs.
                from = from.max(at + 1);
                crashed = true;
            }
            self.splits().pop();
            self.class.set(slot, Rc::clone(&before));
            if self.stopped {
                break;
            }
        }
        crashed
    }

    pub(super) fn splits(&mut self) -> &mut Vec<Filter> {
        self.filters.last_mut().expect("a class is at hand")
    }

    /// The end of a run, for all images of the current class. Returns whether recovery was crashed.
    fn arrive(&mut self, depth: u32, outcome: &Outcome, from: u32) -> bool {
        if let Err(message) = &outcome.verdict {
            self.fail(message.clone());
            return false;
        }
        self.crash_recovery(depth, &outcome.recovery, from)
    }

    /// Crashes the recovery of all images of the current class.
    fn crash_recovery(&mut self, depth: u32, events: &[Event], from: u32) -> bool {
        if depth < self.walker.options.recovery_depth && !events.is_empty() {
            let filters = core::mem::take(self.splits());
            for filter in filters.iter().rev() {
                let before = Rc::clone(&filter.before);
                self.class.set(filter.slot, before);
            }
            self.pass(events, &filters, depth + 1, from);
            for filter in &filters {
                self.class.set(filter.slot, Rc::clone(&filter.kept));
            }
            *self.splits() = filters;
        }
        true
    }
}
