//! The last state of a collection: the results of an ended cycle.

use firn_media::Medium;

use crate::relocation::Cycle;
use crate::relocation::plan::frames_of;

/// A cycle that has ended.
pub(super) struct Released {
    /// Frames that it emptied.
    pub(super) emptied_frames: u64,
    /// Frames that it filled.
    pub(super) filled_frames: u64,
    /// Bytes of blocks that were given back at its end.
    pub(super) released_bytes: u64,
}

impl Released {
    pub(super) fn of<M: Medium>(cycle: &Cycle<M>, released_bytes: u64) -> Self {
        Self {
            emptied_frames: cycle.entries.iter().map(frames_of).sum(),
            filled_frames: cycle.destinations.iter().map(|run| run.frames).sum(),
            released_bytes,
        }
    }
}
