//! Debian's libpmemobj, opened at run time.

mod answers;
mod countable;
mod declarations;
pub mod environment;
mod kind;
mod library;
mod nodes;
mod pool_file;
mod region;
mod rig;
mod structures;
pub mod tracee;
mod transaction;
pub mod version;

pub use answers::Libpmemobj;
pub use countable::{Countable, Step};
pub use kind::Kind;
pub use library::{Library, Pool};
pub use rig::{POOL_BYTES, Rig};
pub use structures::{StructureKind, Use};

use crate::failure::Failure;
