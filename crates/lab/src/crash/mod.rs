//! A campaign of crashes: the real heap, its structures, its collector and its recovery on memory that loses power, in
//! every selected combination.
//!
//! Either every crash of every short sequence is tried, with every image it may leave, and again inside the recovery;
//! or long random runs of several threads beside a collector are crashed at drawn moments (FFCCD section 7.1).
//! Afterwards everything acknowledged must be there, the operation in flight as a whole or not at all, and everything
//! must be sound.
//!
//! ```text
//! campaign   its definition                           conduct    every setting, over all processors
//! named      names on command lines and in findings   report     the report, and what replays findings
//! setting    what is crashed                          log        the work done, to continue from
//! sequences  short sequences, crashed everywhere      op         the operations of sequences
//! runs/      long random runs, crashed now and then   replay     findings as files, and replaying them
//! fixture    the pool where every exploration starts  oracle     the checks after a crash
//! places     where objects are that move              crew       work for all processors
//! ticker     its progress
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
pub use setting::{Setting, Survival, pool, settings};
