//! The basis of `include/firn/pmemobj.h`: pools for programs that were written for libpmemobj.
//!
//! ```text
//! pools     open pools                  files     pools are made, opened, closed
//! root      the root object             object    allocation and iteration
//! direct    addresses of objects        memory    flushing, copying
//! thread    a thread's part of a pool   cache     what its inline functions know
//! tx        transactions                stages    the stages of a libpmemobj transaction
//! tx_settings   failure behavior and the program's word of a transaction
//! lock      locks in persistent memory  locks     the used locks of a pool
//! defrag    compacting a pool           flags     flags of its calls
//! local     a thread's state            biased    a lock that costs its owner next to nothing
//! vacated   memory that objects have left; an access stops a program that is being debugged
//! sanitizer telling ThreadSanitizer about memory that passes from one thread to another
//! ```
//!
//! An object's first eight bytes are the program's number of its type; the program's part of the object follows, at a
//! multiple of 16. All objects have one heap type, whose references are pairs of words (`FieldKind::Pairs`).
//!
//! A thread is inside an operation from its first use of an object until its outermost transaction ends, or until it
//! reaches a safepoint; until then its pointers are valid. Failures are numbers of `errno.h`, as programs expect.

mod biased;
mod cache;
mod defrag;
mod direct;
mod files;
mod flags;
mod local;
mod lock;
mod locks;
mod memory;
mod object;
mod pools;
mod root;
mod sanitizer;
mod stages;
mod thread;
mod tx;
mod tx_settings;
mod vacated;

pub use cache::{Cache, InProgram};
pub use defrag::*;
pub use direct::*;
pub use files::*;
pub use flags::*;
pub use lock::*;
pub use memory::*;
pub use object::*;
pub use pools::*;
pub use root::*;
pub use stages::{Behavior, Callback, Stage, Unlock};
pub use tx::*;
pub use tx_settings::*;

use core::ffi::c_int;

use crate::status::Status;

/// `PMEMoid`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oid {
    pub pool: u64,
    pub offset: u64,
}

impl Oid {
    pub(crate) const NULL: Self = Self { pool: 0, offset: 0 };

    pub(crate) fn is_null(self) -> bool {
        self.offset == 0
    }
}

/// Bytes of an object before the program's part: the number of its type.
pub(crate) const TYPE_BYTES: u64 = 8;

/// The number of `errno.h` that comes nearest to a status.
pub(crate) fn errno_of(status: Status) -> c_int {
    match status {
        Status::Ok => 0,
        Status::Forked => 1,
        Status::NotFound => 2,
        Status::Io => 5,
        Status::InUse | Status::Conflict => 11,
        Status::NoSpace | Status::TooLarge => 12,
        Status::Permission => 13,
        Status::Busy => 16,
        Status::Exists => 17,
        Status::ReadOnly => 30,
        Status::Aborted => 125,
        Status::Invalid
        | Status::Misuse
        | Status::NotAllocated
        | Status::WrongType
        | Status::NotAPool
        | Status::NeedsRecovery
        | Status::Damaged
        | Status::Internal => 22,
    }
}
