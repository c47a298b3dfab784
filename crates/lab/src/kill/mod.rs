//! Writers that are killed with SIGKILL in the middle of transactions, and the check that nothing
//! acknowledged is lost.
//!
//! A child process writes from several threads, each with a session and a map of its own
//! ([`crate::writers`]). After each commit, and before it begins the next operation, a thread
//! *acknowledges* the operation through a pipe: every operation in the pipe was committed. The parent
//! reads the pipe to its end after the kill, and so knows each map's content to the byte, and which one
//! operation may have been in flight.
//!
//! With a [`Power`] the power fails at some of the kills, too: what was not durable is lost, torn or
//! there ([`crate::power_cut`]).
//!
//! With a [`Collecting`] a third thread of the child moves objects meanwhile, the writers read too, and
//! their entries come and go in tides, so that there is always something to collect.
//!
//! ```text
//! runner     the parent                           victim   the child, as the parent sees it
//! child      what the child does                  record   an acknowledgement's bytes
//! collector  the child's third thread             entries  the writers' input, passed in a file
//! lookout    waits for a good moment              report   the report
//! ```

mod child;
mod collector;
mod entries;
mod lookout;
mod record;
mod report;
mod runner;
mod victim;

pub use child::{WriterPlan, write};
pub use collector::Collecting;
pub use report::{KillReport, Operations};
pub use runner::{KillPlan, Power, run};

/// The map that each reopening inserts into first.
const REOPENED: &str = "reopened";
