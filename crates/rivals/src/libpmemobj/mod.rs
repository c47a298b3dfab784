//! Debian's libpmemobj, opened at run time.

mod declarations;
pub mod environment;
mod failure;
mod kind;
mod library;
mod pool_file;
mod region;
mod rig;
pub mod tracee;
mod transaction;
pub mod version;

pub use failure::Failure;
pub use kind::Kind;
pub use library::{Library, Pool};
pub use rig::Rig;
