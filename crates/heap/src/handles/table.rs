//! The table of a pool's handles.

use firn_format::reference::RefWord;
use firn_media::{Lock, Medium};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Strength {
    Strong,
    Weak,
}

#[derive(Clone, Copy)]
pub(super) struct HandleSlot {
    pub(super) reference: RefWord,
    pub(super) strength: Strength,
}

#[derive(Default)]
struct Entries {
    entries: Vec<Option<HandleSlot>>,
    free: Vec<usize>,
}

/// Every handle of an open pool.
pub(crate) struct HandleTable(Lock<Entries>);

impl HandleTable {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Entries::default()))
    }

    pub(super) fn insert<M: Medium>(&self, medium: &M, entry: HandleSlot) -> usize {
        let mut table = self.0.lock(medium);
        match table.free.pop() {
            Some(index) => {
                table.entries[index] = Some(entry);
                index
            }
            None => {
                table.entries.push(Some(entry));
                table.entries.len() - 1
            }
        }
    }

    /// References of the strong handles: roots of a trace (rule M5).
    pub(crate) fn strong<M: Medium>(&self, medium: &M) -> Vec<RefWord> {
        let table = self.0.lock(medium);
        let strong = |e: &&HandleSlot| e.strength == Strength::Strong;
        table
            .entries
            .iter()
            .flatten()
            .filter(strong)
            .map(|e| e.reference)
            .collect()
    }

    /// What all handles name.
    pub(crate) fn all<M: Medium>(&self, medium: &M) -> Vec<RefWord> {
        let table = self.0.lock(medium);
        let references = table.entries.iter().flatten().map(|e| e.reference);
        references
            .filter(|reference| !reference.is_null())
            .collect()
    }

    /// Clears weak handles whose object `lives` denies.
    pub(crate) fn clear_weak<M: Medium>(&self, medium: &M, lives: impl Fn(RefWord) -> bool) {
        let mut table = self.0.lock(medium);
        for entry in table.entries.iter_mut().flatten() {
            if entry.strength == Strength::Weak && !lives(entry.reference) {
                entry.reference = RefWord::NULL;
            }
        }
    }

    /// Changes where handles point, for an object that was moved.
    pub(crate) fn forward<M: Medium>(&self, medium: &M, to: impl Fn(RefWord) -> RefWord) {
        let mut table = self.0.lock(medium);
        for entry in table.entries.iter_mut().flatten() {
            entry.reference = to(entry.reference);
        }
    }

    /// What a handle names, and how strongly.
    pub(super) fn get<M: Medium>(&self, medium: &M, index: usize) -> Option<HandleSlot> {
        self.0.lock(medium).entries[index]
    }

    /// Forgets a handle.
    pub(super) fn remove<M: Medium>(&self, medium: &M, index: usize) {
        let mut table = self.0.lock(medium);
        table.entries[index] = None;
        table.free.push(index);
    }
}
