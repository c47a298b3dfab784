//! Objects of bytes, and arrays of references.

use core::ffi::c_void;

use firn_heap::{Bytes, Refs, Untyped};

use crate::object::{bytes, room};
use crate::session::{Session, session, with_view};
use crate::status::{Failure, Outcome, Status, object_of, result_of, status_of};

/// Bytes of an array's length, in front of what it holds.
const LENGTH_BYTES: usize = 8;

fn check_range(offset: usize, len: usize, all: usize) -> Outcome<()> {
    match offset.checked_add(len) {
        Some(end) if end <= all => Ok(()),
        _ => Err(Failure::invalid(format!(
            "{len} bytes at offset {offset} exceed the object, which has {all} bytes"
        ))),
    }
}

#[cold]
fn beyond(index: usize, len: usize) -> Failure {
    Failure::invalid(format!(
        "there is no reference {index}: the array holds {len}"
    ))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_alloc_bytes(
    pointer: *mut Session,
    from: *const c_void,
    len: usize,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions and bytes.
        let (it, from) = unsafe {
            let it = session(pointer)?;
            (
                it,
                it.given(bytes(from, len, "what the object is to hold"))?,
            )
        };
        it.change(|tx| Ok(it.pointer(tx.alloc_bytes(from)?)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_alloc_refs(pointer: *mut Session, len: usize) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        it.change(|tx| Ok(it.pointer(tx.alloc_refs::<Untyped>(len)?)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_bytes_len(pointer: *mut Session, object: *const c_void) -> usize {
    result_of(0, || {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        with_view!(it, |view| Ok(it
            .object(view, object)?
            .typed::<Bytes>()?
            .checked_len()?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_bytes(
    pointer: *mut Session,
    object: *const c_void,
    len: *mut usize,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions, and of the length.
        let (it, len) = unsafe { (session(pointer)?, len.as_mut()) };
        it.reading(|view| {
            let found = it.object(view, object)?.typed::<Bytes>()?;
            let held = found.checked_len()?;
            if let Some(len) = len {
                *len = held;
            }
            Ok(it.pointer(found).wrapping_byte_add(LENGTH_BYTES))
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_bytes_copy(
    pointer: *mut Session,
    object: *const c_void,
    offset: usize,
    into: *mut c_void,
    len: usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        with_view!(it, |view| {
            let object = it.object(view, object)?;
            check_range(offset, len, object.typed::<Bytes>()?.checked_len()?)?;
            // SAFETY: as the header asks of room.
            let into = unsafe { room(into, len) }?;
            object.load_into((LENGTH_BYTES + offset) as u64, into)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_bytes_store(
    pointer: *mut Session,
    object: *const c_void,
    offset: usize,
    from: *const c_void,
    len: usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions and bytes.
        let (it, from) = unsafe {
            let it = session(pointer)?;
            (it, it.given(bytes(from, len, "what is to be stored"))?)
        };
        it.change(|tx| {
            let object = it.object(tx, object)?.typed::<Bytes>()?;
            check_range(offset, len, object.checked_len()?)?;
            object.overwrite(offset, from)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_refs_len(pointer: *mut Session, object: *const c_void) -> usize {
    result_of(0, || {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        with_view!(it, |view| Ok(it
            .object(view, object)?
            .typed::<Refs<Untyped>>()?
            .len()))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_refs_get(
    pointer: *mut Session,
    object: *const c_void,
    index: usize,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        with_view!(it, |view| {
            let array = it.object(view, object)?.typed::<Refs<Untyped>>()?;
            match index < array.len() {
                true => Ok(it.pointer_or_null(array.get(index))),
                false => Err(beyond(index, array.len())),
            }
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_refs_set(
    pointer: *mut Session,
    object: *const c_void,
    index: usize,
    to: *const c_void,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        it.change(|tx| {
            let array = it.object(tx, object)?.typed::<Refs<Untyped>>()?;
            let to = it.object_or_null(tx, to)?;
            match index < array.len() {
                true => Ok(array.set(index, to)?),
                false => Err(beyond(index, array.len())),
            }
        })
    })
}
