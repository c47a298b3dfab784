//! Counts a process's persistence instructions by stepping through it.
//!
//! The traced process ([`tracee`]'s side) marks each window with two signals to itself. The tracer steps from the first
//! to the second, reads the instruction about to run at every step, and adds it to a [`Tally`]. libpmem's fences are
//! inline, so they can be counted only by looking at the instructions.
//!
//! [`tracee`]: crate::libpmemobj::tracee

mod instruction;
mod tally;
mod tracer;

pub use tally::Tally;
pub use tracer::{TraceError, WINDOW_END, WINDOW_START, trace};
