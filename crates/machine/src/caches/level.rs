//! A level of one core's caches, or the one that all share.

use firn_fibers::prefetch;

use crate::description;
use crate::sets::{Choice, Sets};

use super::flag;

/// Slots of a cache that a word has room for.
const MOST_SLOTS: usize = 1 << (32 - flag::BITS);

/// Which lines a cache holds, and a word about each.
pub(super) struct Level {
    pub(super) lines: Sets,
    words: Vec<u32>,
}

impl Level {
    pub(super) fn new(described: &description::Cache) -> Self {
        let lines = Sets::new(described.bytes / super::LINE, described.ways);
        let slots = lines.slots();
        assert!(slots <= MOST_SLOTS, "{slots} lines: at most {MOST_SLOTS}");
        Self {
            lines,
            words: vec![0; slots],
        }
    }

    /// The word about the line in a slot.
    #[inline(always)]
    pub(super) fn word(&mut self, slot: usize) -> &mut u32 {
        &mut self.words[slot]
    }

    /// The word in a slot will soon be asked for.
    #[inline(always)]
    pub(super) fn expect(&self, slot: usize) {
        prefetch(&self.words[slot]);
    }

    /// The word about a line.
    pub(super) fn find(&mut self, line: u64) -> Option<&mut u32> {
        let slot = self.lines.find(line)?;
        Some(&mut self.words[slot])
    }

    /// Puts a line where it is not, into the slot that was chosen for it, if one was. Returns its slot, and the line
    /// that had to go with its word.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        line: u64,
        word: u32,
        choice: Option<Choice>,
    ) -> (usize, Option<(u64, u32)>) {
        let (slot, victim) = match choice {
            Some(choice) => self.lines.put_chosen(line, choice),
            None => self.lines.put(line),
        };
        let before = core::mem::replace(&mut self.words[slot], word);
        (slot, victim.map(|line| (line, before)))
    }

    /// Takes a line out. Returns what was to be kept of its word.
    pub(super) fn take(&mut self, line: u64) -> u32 {
        match self.lines.find(line) {
            Some(slot) => {
                self.lines.take(slot);
                self.words[slot] & flag::KEPT
            }
            None => 0,
        }
    }
}
