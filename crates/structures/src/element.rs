//! Elements: byte strings, each an object to which one place of an array refers.

use firn_heap::{Bytes, Error, Obj, Refs, Tx, TypeId, View};
use firn_media::Medium;

use crate::reclaim::free_unlinked;

/// Longest element, in bytes.
pub(crate) const MAX_BYTES: u64 = crate::map::MAX_VALUE_BYTES;
/// Elements up to this size are replaced in place if the length stays.
const IN_PLACE_BYTES: usize = 512;

/// An element.
pub(crate) type Element<'g, V> = Obj<'g, Bytes, V>;

/// The element, if it is an array of bytes.
///
/// Errors: another object lies there.
#[inline]
pub(crate) fn sound<'g, V: View<'g>>(element: Element<'g, V>) -> Result<Element<'g, V>, Error> {
    if element.header().type_id() == TypeId::BYTES {
        return Ok(element);
    }
    Err(damaged("an element that is no array of bytes", element))
}

/// The element, which must exist.
///
/// Errors: it does not, so `owner` is damaged; or another object lies there.
#[inline]
pub(crate) fn present<'g, T, V: View<'g>>(
    element: Option<Element<'g, V>>,
    owner: Obj<'g, T, V>,
) -> Result<Element<'g, V>, Error> {
    match element {
        Some(element) => sound(element),
        None => Err(damaged("a missing element of a sequence", owner)),
    }
}

/// Allocates an element.
///
/// Errors: it is too large, the pool is full.
#[inline]
pub(crate) fn alloc<'t, M: Medium>(
    tx: Tx<'t, M>,
    bytes: &[u8],
) -> Result<Element<'t, Tx<'t, M>>, Error> {
    let len = bytes.len() as u64;
    if len > MAX_BYTES {
        return Err(Error::ObjectTooLarge {
            bytes: len,
            limit: MAX_BYTES,
        });
    }
    tx.alloc_bytes(bytes)
}

/// Replaces the element at `place` of an array by these bytes, in place if the length stays. Returns whether there was
/// one, and appends it to `old` if requested.
///
/// Errors: `bytes` are too many, the pool is full; the array is unchanged.
pub(crate) fn replace<'t, M: Medium>(
    array: Obj<'t, Refs<Bytes>, Tx<'t, M>>,
    place: usize,
    bytes: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let tx = array.view();
    let present = array.get(place).map(sound).transpose()?;
    let Some(present) = present else {
        array.set(place, Some(alloc(tx, bytes)?))?;
        return Ok(false);
    };
    let len = present.checked_len()?;
    if let Some(old) = old {
        present.read_into(old)?;
    }
    if len == bytes.len() && len <= IN_PLACE_BYTES {
        present.overwrite(0, bytes)?;
        return Ok(true);
    }
    array.set(place, Some(alloc(tx, bytes)?))?;
    free_unlinked(tx, present)?;
    Ok(true)
}

/// Refuses an index beyond a sequence.
#[inline]
pub(crate) fn check_index<'g, T, V: View<'g>>(
    index: u64,
    len: u64,
    owner: Obj<'g, T, V>,
) -> Result<(), Error> {
    if index < len {
        return Ok(());
    }
    Err(Error::BadRange {
        at: owner.address().0,
        len: index.saturating_add(1).saturating_mul(8),
    })
}

pub(crate) fn damaged<'g, T, V: View<'g>>(what: &'static str, object: Obj<'g, T, V>) -> Error {
    Error::Damaged {
        what,
        at: object.address().0,
    }
}
