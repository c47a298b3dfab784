//! Threads that write to maps of their own, and what must be in the maps.
//!
//! What each writer does next follows from a seed and from what is in its map ([`Script`]), so whoever
//! knows how far the writers came knows each map's content to the byte ([`Ledger`]).
//!
//! ```text
//! input      what is written                      script   what a writer does next
//! ledger     what all maps must hold              verify   the comparison
//! writer     one of the threads                   crew     all of them, and what goes on beside
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
