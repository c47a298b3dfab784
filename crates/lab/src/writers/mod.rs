//! Threads that write to maps of their own, and the expected content of the maps.
//!
//! A writer's next operation follows from a seed and from its map's content ([`Script`]), so a ledger that knows how
//! far the writers came knows each map's content to the byte ([`Ledger`]).
//!
//! ```text
//! input      keys and values to write             script   a writer's next operation
//! ledger     the expected content of all maps     verify   the comparison
//! writer     one of the threads                   crew     all of them, and the work beside them
//! bout       the writers at work in this process
//! ```

mod bout;
mod crew;
mod input;
mod ledger;
mod script;
mod verify;
mod writer;

pub use bout::{Bout, Until, work};
pub use ledger::Ledger;
pub use script::{Script, Tide};
pub use writer::READS;

pub(crate) use crew::together;
pub(crate) use input::Input;
pub(crate) use script::{Deed, Operation};
pub(crate) use verify::Verified;
pub(crate) use writer::Writer;

/// Threads that write, each on a map of its own.
pub const WRITERS: usize = 2;

/// The root of a writer's map.
fn map_of(writer: usize) -> String {
    format!("writer-{writer}")
}
