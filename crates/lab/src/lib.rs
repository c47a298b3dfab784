//! What the command line of Firn does, as a library: maps of byte strings in pools, their figures,
//! and the demo that kills itself.
//!
//! ```text
//! store      a map in a pool file: opening, recovering, reading, changing
//! load       from lines and from file trees     select    which entries a fraction takes
//! lines      entries as text and as JSON, with every byte
//! stat       figures of a pool in use           check     whether a pool is sound
//! top        the same again and again, and what changed meanwhile
//! map        pictures of what a pool's pages hold
//! limit      how far a pool may grow
//! copy       packed copies, and what can be saved of a torn pool
//! defrag     objects move together, free pages go back to the device
//! churn      entries come and go, beside a collector
//! writers    threads that write and read, and what must be in their maps
//! kill       writers that are killed, and the check that nothing acknowledged is lost
//! demo       the main job, on real input
//! crash      campaigns of crashes on memory that loses power, with every image that a crash may leave
//! damage     damaged pools, each of which must be a clear error or a sound answer
//! simulation workloads on simulated machines
//! reproduction  FFCCD's figures and tables on them
//! calibration the same on any medium, to see how far the simulated ones are from real
//! html       pages that need no other file
//! bench      what it costs, beside others in one run
//! ```
//!
//! Nothing here prints: progress and remarks go to a [`Progress`], results are returned.
#![deny(unsafe_code)]

mod any;
pub mod bench;
pub mod calibration;
mod check;
pub mod churn;
mod collector_work;
mod convert;
mod copy;
pub mod crash;
pub mod damage;
mod defrag;
pub mod demo;
mod error;
pub mod figures;
mod html;
pub mod kill;
mod limit;
pub mod lines;
mod load;
pub mod map;
mod progress;
pub mod reproduction;
mod select;
pub mod simulation;
mod spread;
mod stat;
mod store;
pub mod top;
mod tree;
pub mod writers;

pub use any::Torn;
pub use check::{CheckReport, check};
pub use collector_work::CollectorWork;
pub use convert::{ConvertReport, convert};
pub use copy::{CopyReport, copy};
pub use defrag::{DefragPlan, DefragReport, Standing, Work, defrag, scheme};
pub use error::LabError;
pub use firn_heap::CopyIdentity;
pub use firn_heap::collector::PageSize;
pub use firn_mapped::{FileSystems, MappedOptions};
pub use limit::{LimitReport, set_limit};
pub use load::{LineInput, LoadReport, load_lines, load_tree};
pub use progress::{Progress, Silent};
pub use select::delete_fraction;
pub use spread::Spread;
pub use stat::{
    ClassFigures, CollectorFigures, Stat, StepTime, StopBucket, StopFigures, TypeFigures, stat,
};
pub use store::{Entry, Store, StoreOptions};
pub use tree::{Tree, TreeLimits};
