//! What the command line of Firn does with a pool, as a library: maps of byte strings in it, its figures and
//! pictures, copies, compaction.
//!
//! ```text
//! store      a map in a pool file: opening, recovering, reading, changing
//! load       from lines and from file trees     select    which entries a fraction takes
//! lines      entries as text and as JSON, with every byte
//! tree       the paths of a file tree           any       opening a pool whatever is in it
//! stat       figures of a pool in use           check     whether a pool is sound
//! top        figures again and again, and what changed meanwhile
//! map        pictures of what a pool's pages hold
//! limit      how far a pool may grow            convert   the present format, in place
//! copy       packed copies, and what can be saved of a torn pool
//! backup     copies of pools in use
//! log        whether the log beside a pool is sound
//! defrag     objects move together, free pages go back to the device
//! figures    figures as text                    progress  reports of long work
//! ```
//!
//! Nothing here prints: progress and remarks go to a [`Progress`], results are returned.
#![forbid(unsafe_code)]

mod any;
mod backup;
mod check;
mod convert;
mod copy;
mod defrag;
mod error;
pub mod figures;
mod limit;
pub mod lines;
mod load;
mod log;
pub mod map;
mod progress;
mod select;
mod stat;
mod store;
pub mod top;
mod tree;

pub use any::{Torn, open_to_change};
pub use backup::{BackupReport, backup};
pub use check::{CheckReport, check, findings};
pub use convert::{ConvertReport, convert};
pub use copy::{CopyReport, copy};
pub use defrag::{DefragPlan, DefragReport, Standing, Work, defrag, pages_name, scheme};
pub use error::ToolError;
pub use firn_heap::CopyIdentity;
pub use firn_heap::collector::PageSize;
pub use firn_mapped::{FileSystems, MappedOptions};
pub use firn_media::Domain;
pub use limit::{LimitReport, set_limit};
pub use load::{LineInput, LoadReport, load_lines, load_tree};
pub use log::LogReport;
pub use progress::{Progress, Silent};
pub use select::{delete_fraction, remove_keys};
pub use stat::{
    ClassFigures, CollectorFigures, LogFigures, Stat, StepTime, StopBucket, StopFigures,
    TypeFigures, stat,
};
pub use store::{Entry, Store, StoreOptions};
pub use tree::{Tree, TreeLimits};
