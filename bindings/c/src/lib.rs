//! The heap for programs in C and C++: what the headers in `include` declare.
//!
//! ```text
//! status        failures, and what a thread was told of its last one
//! given         what a program passes        handle_pool what it was handed, so that what was closed is recognised
//! operation     what a thread has open, and why the borrows hold that no lifetime of Rust's spans
//! pool          files                        session     a thread's access, its operations
//! describe      types, from a program's tables           types       those that a session has met
//! object        allocate, load, store        array       bytes and references by position
//! root, handle  how objects are named        collection  keeping a pool compact
//! containers    maps, vectors                pmemobj     libpmemobj's programs
//! ```
//!
//! The headers are the documentation; here is only what they do not say.
//!
//! A function is safe where its arguments' types say all that its header asks (`given`, `handle_pool`). What closes or frees
//! something is not: nobody may use that afterwards.
#![allow(
    missing_docs,
    reason = "the header documents what a program sees, and is what a program sees"
)]

mod array;
mod collection;
mod containers;
mod describe;
mod given;
mod handle;
mod handle_pool;
mod object;
mod operation;
mod pmemobj;
mod pool;
mod root;
mod session;
mod status;
mod types;

pub use array::*;
pub use collection::*;
pub use containers::*;
pub use describe::{Field, Member, Type};
pub use given::{In, InOut, Out, Room, Source, Text};
pub use handle::*;
pub use handle_pool::Handed;
pub use object::*;
pub use pmemobj::*;
pub use pool::*;
pub use root::*;
pub use session::*;
pub use status::{
    Status, firn_clear_status, firn_last_message, firn_last_status, firn_status_name, firn_version,
};
