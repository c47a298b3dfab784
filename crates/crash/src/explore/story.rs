//! The story of a crash state, for a reader.

use crate::explore::path::CrashPoint;
use crate::memory::event::Event;
use crate::memory::image::Image;

/// What happened before one crash, and what it left.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The events of the workload, or of the recovery before, oldest first.
    pub events: Vec<Event>,
    /// The content of media after the crash.
    pub left: Image,
}

/// How a crash state comes to be, and how the check handles it.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// A part for each crash.
    pub passed: Vec<Passed>,
    /// The events of the check after the last one, recovery first.
    pub check: Vec<Event>,
}

/// The record of a replay.
#[derive(Default)]
pub(crate) struct Told {
    /// Where the crashes fell.
    pub(crate) points: Vec<CrashPoint>,
    /// What happened, if the caller wants it.
    pub(crate) story: Option<Story>,
}
