//! A plan in the making.

use firn_format::class::Class;
use firn_format::geometry::FrameRun;
use firn_format::plan::Entry;

use crate::alloc::Run;

/// How many runs ahead the allocator's words are prefetched.
pub(super) const RUNS_AHEAD: usize = 12;

/// A chosen plan, before anything is written.
#[derive(Default)]
pub(super) struct CompactionPlan {
    pub(super) entries: Vec<Entry>,
    /// Destination runs with the slots that are filled.
    pub(super) filled: Vec<(FrameRun, Option<Class>, u64)>,
    pub(super) units: u64,
    /// Runs that were closed. Those for which there was no room are open again.
    pub(super) closed: Vec<Run>,
}

impl CompactionPlan {
    /// Bytes of the slots that are filled.
    pub(super) fn filled_bytes(&self) -> u64 {
        let bytes = |(run, class, units): &(FrameRun, Option<Class>, u64)| match class {
            Some(class) => units * class.slot_bytes(),
            None => run.bytes(),
        };
        self.filled.iter().map(bytes).sum()
    }
}
