//! Results of recoveries, each verified once.

use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::decisions::{Decisions, Node, Recovery};
use crate::explore::lazy::walk::Lazy;

impl Lazy<'_, '_> {
    /// Verifies the recovered images of the current class, unless a verification has read the same before. Returns
    /// whether nothing is wrong.
    pub(super) fn recovered(&mut self, depth: u32, recovery: &Recovery) -> bool {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.space());
        bytes[16..24].copy_from_slice(&recovery.overlay.space().to_le_bytes());
        bytes[24..].copy_from_slice(&recovery.knows.to_le_bytes());
        let known = xxh3_128_with_seed(&bytes, 0);
        let (class, overlay) = (&self.class, &recovery.overlay);
        let walk = self.verified.walk(known, class, overlay);
        if self.verified.contains(walk) {
            return !self.stopped;
        }
        let failures = self.failures.len();
        if let Some(root) = self.verification(depth, known, |tree| tree.root(known)) {
            self.verify(depth, known, recovery, root);
        }
        let is_right = !self.stopped && self.failures.len() == failures;
        if is_right {
            let (class, overlay) = (&self.class, &recovery.overlay);
            let walk = self.verified.walk(known, class, overlay);
            self.verified.insert(walk);
        }
        is_right
    }

    /// The result of `find` in the tree of verifications; if nothing is there yet, a whole run on the current class
    /// comes first.
    fn verification(
        &mut self,
        depth: u32,
        known: u128,
        find: impl Fn(&Decisions) -> Option<u32>,
    ) -> Option<u32> {
        let found = find(&self.verifications);
        if found.is_some() || self.stopped {
            return found;
        }
        self.verify_recorded(depth, known);
        find(&self.verifications)
    }

    /// Continues in the tree of verifications from `node` with all recovered images of the current class.
    fn verify(&mut self, depth: u32, known: u128, recovery: &Recovery, mut node: u32) {
        loop {
            let key = match self.verifications.node(node) {
                Node::Load { key, .. } => key,
                Node::End(outcome) => {
                    if let Some(message) = outcome.verdict.clone().err() {
                        self.fail(message);
                    }
                    return;
                }
                Node::Recovered(_) => return,
            };
            let (slot, word) = ImageClass::place(key);
            let stored = recovery.overlay.stored(slot, word);
            let Some(value) = stored.or_else(|| self.class.get(slot).agreed(word)) else {
                return self.verify_each(depth, known, recovery, node, (slot, word));
            };
            match self.verification(depth, known, |tree| tree.next(node, value)) {
                Some(next) => node = next,
                None => return,
            }
        }
    }

    /// Verifies each part of the class by the value of a word that recovery has not changed.
    fn verify_each(
        &mut self,
        depth: u32,
        known: u128,
        recovery: &Recovery,
        node: u32,
        (slot, word): (usize, usize),
    ) {
        let before = Rc::clone(self.class.get(slot));
        for value in before.values(word) {
            let kept = before.with(word, value);
            self.class.set(slot, Rc::new(kept));
            if let Some(next) = self.verification(depth, known, |tree| tree.next(node, value)) {
                self.verify(depth, known, recovery, next);
            }
            self.class.set(slot, Rc::clone(&before));
            if self.stopped {
                break;
            }
        }
    }
}
