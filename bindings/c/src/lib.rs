//! The heap for programs in C and C++: the functions that the headers in `include` declare.
//!
//! ```text
//! status        failures, and the message of a thread's last one
//! given         a program's arguments        handle_pool objects it was handed; closed ones are recognised
//! operation     a thread's open operation, and why its borrows hold although no lifetime of Rust's spans them
//! pool          files                        session     a thread's access, its operations
//! describe      types, from a program's tables           types       types that a session has used
//! object        allocate, load, store        array       bytes and references by position
//! root, handle  how objects are named        collection  keeping a pool compact
//! containers    maps, vectors                pmemobj     libpmemobj's programs
//! ```
//!
//! The headers are the documentation; comments here add only what they do not say.
//!
//! A function is safe if its arguments' types state everything that its header asks (`given`, `handle_pool`). Functions
//! that close or free an object are unsafe: the program must not use the object afterwards.
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
