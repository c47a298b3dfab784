//! A campaign of crashes: the real heap, its structures, its collector and its recovery on memory that
//! loses power, in every combination that is asked for.
//!
//! Either every crash of every short sequence is tried, with all that it may leave and again inside the
//! recovery, or long random runs of several threads beside a collector are crashed at drawn moments
//! (FFCCD section 7.1). What was acknowledged must be there afterwards, the operation in flight as a whole
//! or not at all, and everything sound.
//!
//! ```text
//! campaign   what it is                               conduct    every setting, over all processors
//! named      what command lines and findings name     report     what is told, and what replays it
//! setting    what is crashed                          log        what was done, to go on with
//! sequences  short sequences, crashed everywhere      op         what they are made of
//! runs/      long random runs, crashed now and then   replay     findings as files, and run again
//! fixture    the pool that everything starts from     oracle     what is asked after a crash
//! places     where objects are that move              crew       work for all processors
//! ticker     how far they are
//! ```

mod campaign;
mod conduct;
mod crew;
mod error;
pub(crate) mod fixture;
mod log;
mod named;
mod op;
mod oracle;
mod places;
mod replay;
mod report;
mod runs;
mod sequences;
pub(crate) mod setting;
mod ticker;

pub use campaign::{Campaign, MOST_OPS, Mode};
pub use crew::EXPLORER;
pub use error::CrashError;
pub use firn_workloads::under_test::Structure;
pub use log::{Log, read_logs};
pub use named::{domain, exploration, plant, scheme, stock_schemes};
pub use replay::replay;
pub use report::{CrashReport, Finding, Program, Row};
pub use setting::{Setting, pool, settings};
