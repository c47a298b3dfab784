//! Flags of allocations and of transactions' calls, with libpmemobj's values.

use super::pools::{Pobj, Pop};
use crate::status::{Failure, Outcome, Status, status_of};

/// New bytes are zeros. They always are.
const ZERO: u64 = 1 << 0;
/// A wish that need not be granted: the range is not written back at commit.
const NO_FLUSH: u64 = 1 << 1;
/// The range is not restored by an abort.
pub(super) const NO_SNAPSHOT: u64 = 1 << 2;
/// A hint for checkers of memory.
const ASSUME_INITIALIZED: u64 = 1 << 3;
/// A failure is returned, and does not abort. The header's functions heed it.
pub(super) const NO_ABORT: u64 = 1 << 4;
/// Where the number of an allocation class begins.
const CLASS: u32 = 48;
/// An arena's number. Threads have no arenas: it is a wish, too.
const ARENAS: u64 = 0xffff << 32;

/// Those of allocations.
pub(super) const ALLOC: u64 = ZERO | NO_FLUSH | NO_ABORT | ARENAS | 0xffff << CLASS;
/// Those of adding a range.
pub(super) const ADD: u64 = NO_FLUSH | NO_SNAPSHOT | ASSUME_INITIALIZED | NO_ABORT;

/// Errors: flags that are not `known`; an allocation class that the pool does not have.
pub(super) fn check_flags(_: &Pobj, flags: u64, known: u64) -> Outcome<()> {
    if flags & !known != 0 {
        return Err(Failure::invalid(format!(
            "unknown flags {:#x}",
            flags & !known
        )));
    }
    match flags >> CLASS {
        0 => Ok(()),
        class => Err(Failure::invalid(format!(
            "the pool has no allocation class {class}"
        ))),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_check_flags(pop: Pop, flags: u64, known: u64) -> Status {
    status_of(|| check_flags(pop.open()?, flags, known))
}
