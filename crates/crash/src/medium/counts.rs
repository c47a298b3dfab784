//! Counts of executed operations.

use core::ops::AddAssign;

/// Operations of one thread or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Counts {
    /// Words stored to persistent memory, compare-exchanges that stored included.
    pub stores: u64,
    /// Lines whose write-back was issued.
    pub write_backs: u64,
    /// Fences.
    pub fences: u64,
    /// Words loaded from persistent memory.
    pub loads: u64,
    /// Commits declared.
    pub commits: u64,
    /// Events that a crash can fall between, see [`crate::Event`].
    pub events: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.stores += other.stores;
        self.write_backs += other.write_backs;
        self.fences += other.fences;
        self.loads += other.loads;
        self.commits += other.commits;
        self.events += other.events;
    }
}
