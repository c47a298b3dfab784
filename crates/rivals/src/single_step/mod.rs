//! Counts a process's persistence instructions by stepping through it.
//!
//! The process that is watched ([`tracee`]'s side) marks each window with two signals to itself;
//! the watcher steps from the first to the second, reads the instruction about to run at every
//! step, and adds it to a [`Tally`]. libpmem's fences are inline, so that nothing short of looking
//! at the instructions can count them.
//!
//! [`tracee`]: crate::libpmemobj::tracee

mod instruction;
mod tally;
mod tracer;

pub use tally::Tally;
pub use tracer::{TraceError, WINDOW_END, WINDOW_START, trace};
