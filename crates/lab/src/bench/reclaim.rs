//! Freeing: the only unsafe call of the lab.

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

/// Frees an object of the bench that nothing refers to when the transaction commits.
#[allow(unsafe_code, reason = "the heap asks for a promise, given below")]
pub(super) fn free<'t, T, M: Medium>(
    tx: Tx<'t, M>,
    object: Obj<'t, T, Tx<'t, M>>,
) -> Result<(), Error> {
    // SAFETY: `Tx::free` asks that no reference and no handle to the object remains at commit. The bench makes no
    // handle to the objects it frees, and the caller overwrites every link to them in the same transaction.
    unsafe { tx.free(object) }
}
