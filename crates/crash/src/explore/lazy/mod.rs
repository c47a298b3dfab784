//! Images by classes, split only where a check looks.

mod candidates;
mod class;
mod completion;
mod decisions;
mod failed;
mod narrowing;
mod overlay;
mod passage;
mod refine;
mod runs;
mod stored;
mod unsettled;
mod verified;
mod verify;
pub(crate) mod walk;
