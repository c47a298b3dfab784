//! A cache level of one core, or the last level, which all cores share.

use firn_fibers::prefetch;

use crate::description;
use crate::sets::{Choice, Sets};

use super::flag;

/// Most slots of a cache: a word has no room for greater numbers.
const MOST_SLOTS: usize = 1 << (32 - flag::BITS);

/// The lines that a cache holds, with a word about each.
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

    /// Prefetches the word in a slot, which will soon be asked for.
    #[inline(always)]
    pub(super) fn expect(&self, slot: usize) {
        prefetch(&self.words[slot]);
    }

    /// The word about a line.
    pub(super) fn find(&mut self, line: u64) -> Option<&mut u32> {
        let slot = self.lines.find(line)?;
        Some(&mut self.words[slot])
    }

    /// Inserts an absent line, into the slot that was chosen for it, if one was. Returns its slot, and the evicted line
    /// with its word.
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

    /// Removes a line. Returns the flags of its word that are kept.
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
