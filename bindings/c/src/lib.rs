//! The heap for programs in C and C++: what the headers in `include` declare.
//!
//! ```text
//! status        failures, and what a thread was told of its last one
//! shelf         memory of what programs hold, so that what was closed is recognised
//! describe      types, from the program's tables
//! pool          files                   session     a thread's access, its operations
//! object        allocate, load, store   array       bytes and references by position
//! root, handle  how objects are named   collection  keeping a pool compact
//! containers    maps, vectors           pmemobj     libpmemobj's programs
//! ```
//!
//! The headers are the documentation; here is only what they do not say. Lifetimes that the heap's types have are
//! kept by [`session::Session`]: an operation is dropped before the session that it borrows.
#![allow(
    missing_docs,
    reason = "the header documents what a program sees, and is what a program sees"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "each function asks what the header says: pointers are null or as it describes them"
)]

mod array;
mod collection;
mod containers;
mod describe;
mod handle;
mod object;
mod pmemobj;
mod pool;
mod root;
mod session;
mod shelf;
mod status;

pub use array::*;
pub use collection::*;
pub use containers::*;
pub use describe::{Field, Member, Type};
pub use handle::*;
pub use object::*;
pub use pmemobj::*;
pub use pool::*;
pub use root::*;
pub use session::*;
pub use status::{
    Status, firn_clear_status, firn_last_message, firn_last_status, firn_status_name, firn_version,
};
