//! A way to try images.

use crate::explore::walker::Walker;
use crate::memory::event::Event;
use crate::schedule::policy::Schedule;

/// Tries the images that crashes of executions leave, and what crashes of their recoveries leave of them.
pub(crate) trait Engine<'a> {
    /// The exploration that it is part of.
    fn walker(&mut self) -> &mut Walker<'a>;

    /// Tries those of an execution that started on the memory as it is now.
    fn walk(&mut self, trace: &[Event], seed: u64, schedule: Schedule);
}
