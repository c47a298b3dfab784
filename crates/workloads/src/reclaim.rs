//! Freeing: the only unsafe call of the crate.

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

/// Frees an object of a population that nothing refers to when the transaction commits.
#[allow(unsafe_code, reason = "the heap asks for a promise, given below")]
pub(crate) fn free<'t, T, M: Medium>(
    tx: Tx<'t, M>,
    object: Obj<'t, T, Tx<'t, M>>,
) -> Result<(), Error> {
    // SAFETY: `Tx::free` asks that no reference and no handle to the object remains at commit. A population hands out
    // none of its objects. It keeps handles only to what leads to all of them, or, while a list is walked, to an
    // element that stays; and each caller overwrites every link to the object in the same transaction.
    unsafe { tx.free(object) }
}
