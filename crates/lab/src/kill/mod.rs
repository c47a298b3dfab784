//! Writers that are killed with SIGKILL in the middle of transactions, and the check that nothing
//! acknowledged is lost.
//!
//! A child process writes from several threads, each with a session and a map of its own. After each
//! commit, and before it begins the next operation, a thread *acknowledges* the operation through a
//! pipe: what is in the pipe was committed. What each thread does next follows from a seed and from
//! what is in its map ([`Script`]), so the parent, who reads the pipe to its end after the kill,
//! knows each map's content to the byte, and which one operation may have been in flight.
//!
//! With a [`Collecting`] a third thread of the child moves objects meanwhile, the writers read too, and
//! their entries come and go in tides, so that there is always something to collect.
//!
//! ```text
//! collector  the child's third thread
//! entries    what is written, handed to the child in a file
//! script     what each thread does next               record    an acknowledgement's bytes
//! writer     the child                                victim    the child, as the parent sees it
//! runner     the parent                               verify    the comparison
//! report     what is told
//! ```

mod collector;
mod entries;
mod record;
mod report;
mod runner;
mod script;
mod verify;
mod victim;
mod writer;

pub use collector::Collecting;
pub use report::{KillReport, Operations, Spread};
pub use runner::{KillPlan, run};
pub use script::{Script, Tide};
pub use writer::{WriterPlan, write};

/// Threads that write, each on a map of its own.
pub const WRITERS: usize = 2;
/// The map that each reopening inserts into first.
const REOPENED: &str = "reopened";

/// The root of a writer's map.
fn map_of(writer: usize) -> String {
    format!("writer-{writer}")
}
