//! Which recovered images were verified, identified by the lines that verifications read.
//!
//! A verification that walks its tree of loads looks at hundreds of words, and most classes that come to it differ in
//! words that no verification reads. So the lines that the tree reads at all are known, and their contents identify the
//! walk.

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::overlay::Overlay;

/// Walks through the tree of verifications that found nothing wrong.
#[derive(Default)]
pub(crate) struct Verified {
    /// Slots that some verification in the tree reads, in the order in which they came up.
    slots: Vec<usize>,
    is_read: Vec<bool>,
    walks: FxHashSet<u128>,
    /// Buffer for the bytes that are hashed.
    bytes: Vec<u8>,
}

impl Verified {
    /// Records that a verification reads the line of a slot. If that is news, earlier walks are forgotten: they were
    /// identified without that line.
    pub(crate) fn reads(&mut self, slot: usize) {
        if self.is_read.len() <= slot {
            self.is_read.resize(slot + 1, false);
        }
        if !self.is_read[slot] {
            self.is_read[slot] = true;
            self.slots.push(slot);
            self.walks.clear();
        }
    }

    /// Identifies the walk of the current class, after recovery, from the root of `known`.
    pub(crate) fn walk(&mut self, known: u128, class: &ImageClass, overlay: &Overlay) -> u128 {
        self.bytes.clear();
        self.bytes.extend(known.to_le_bytes());
        for &slot in &self.slots {
            let line = overlay.left(slot, class.line(slot), class.get(slot));
            self.bytes.extend(line.to_le_bytes());
        }
        xxh3_128(&self.bytes)
    }

    pub(crate) fn contains(&self, walk: u128) -> bool {
        self.walks.contains(&walk)
    }

    pub(crate) fn insert(&mut self, walk: u128) {
        self.walks.insert(walk);
    }
}
