//! Freeing: the only unsafe calls of the crate.

use firn_heap::{Error, Obj, Tx};
use firn_media::Medium;

/// Frees an object that belongs to a collection and that the caller has unlinked, or unlinks before
/// the transaction ends.
///
/// Collections keep their parts to themselves: no public function returns a node, an entry or a separator as an object,
/// so the only reference to each is the one that the collection stores.
///
/// Errors: nothing is allocated there, or it was freed in this transaction already; only a damaged pool leads there.
#[allow(unsafe_code, reason = "the heap asks for a promise, given below")]
pub(crate) fn free_unlinked<'t, T, M: Medium>(
    tx: Tx<'t, M>,
    object: Obj<'t, T, Tx<'t, M>>,
) -> Result<(), Error> {
    // SAFETY: `Tx::free` requires that no reference and no handle to the object remains at commit. No code outside this
    // crate ever had one to a part (see above). Inside, one field names each part, and each caller of this function
    // overwrites that field or frees its object, too, under the collection's write lock.
    unsafe { tx.free(object) }
}
