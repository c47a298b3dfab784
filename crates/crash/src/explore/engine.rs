//! A way to try images.

use crate::explore::walker::Walker;
use crate::memory::event::Event;
use crate::schedule::policy::Schedule;

/// Tries the images that crashes leave: of executions, then of the recoveries from those images.
pub(crate) trait Engine<'a> {
    /// The exploration that this is part of.
    fn walker(&mut self) -> &mut Walker<'a>;

    /// Tries the images of an execution that started on memory as it is now.
    fn walk(&mut self, trace: &[Event], seed: u64, schedule: Schedule);
}
