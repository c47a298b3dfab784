//! Objects of bytes, and arrays of references.

use core::ffi::c_void;

use firn_heap::{Bytes, Refs, Untyped};

use crate::given::{Out, Room, Source};
use crate::handle_pool::Handed;
use crate::operation::with_view;
use crate::session::{Session, session};
use crate::status::{Failure, Outcome, Status, object_of, result_of, status_of};

/// Bytes of an array's length, before its content.
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
pub extern "C" fn firn_alloc_bytes(
    pointer: Handed<Session>,
    from: Source<'_>,
    len: usize,
) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
        // SAFETY: the header promises `len` bytes.
        let from = it.given(unsafe { from.bytes(len, "what the object is to hold") })?;
        it.change(|tx| Ok(it.pointer(tx.alloc_bytes(from)?)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_alloc_refs(pointer: Handed<Session>, len: usize) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
        it.change(|tx| Ok(it.pointer(tx.alloc_refs::<Untyped>(len)?)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_bytes_len(pointer: Handed<Session>, object: *const c_void) -> usize {
    result_of(0, || {
        let it = session(pointer)?;
        with_view!(it, |view| Ok(it
            .object(view, object)?
            .typed::<Bytes>()?
            .checked_len()?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_bytes(
    pointer: Handed<Session>,
    object: *const c_void,
    len: Out<'_, usize>,
) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
        it.reading(|view| {
            let found = it.object(view, object)?.typed::<Bytes>()?;
            len.put(found.checked_len()?);
            Ok(it.pointer(found).wrapping_byte_add(LENGTH_BYTES))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_bytes_copy(
    pointer: Handed<Session>,
    object: *const c_void,
    offset: usize,
    into: Room<'_>,
    len: usize,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        with_view!(it, |view| {
            let object = it.object(view, object)?;
            check_range(offset, len, object.typed::<Bytes>()?.checked_len()?)?;
            // SAFETY: the header promises room for `len` bytes.
            let into = unsafe { into.bytes(len) }?;
            object.load_into((LENGTH_BYTES + offset) as u64, into)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_bytes_store(
    pointer: Handed<Session>,
    object: *const c_void,
    offset: usize,
    from: Source<'_>,
    len: usize,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        // SAFETY: the header promises `len` bytes.
        let from = it.given(unsafe { from.bytes(len, "what is to be stored") })?;
        it.change(|tx| {
            let object = it.object(tx, object)?.typed::<Bytes>()?;
            check_range(offset, len, object.checked_len()?)?;
            object.overwrite(offset, from)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_refs_len(pointer: Handed<Session>, object: *const c_void) -> usize {
    result_of(0, || {
        let it = session(pointer)?;
        with_view!(it, |view| Ok(it
            .object(view, object)?
            .typed::<Refs<Untyped>>()?
            .len()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_refs_get(
    pointer: Handed<Session>,
    object: *const c_void,
    index: usize,
) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
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
pub extern "C" fn firn_refs_set(
    pointer: Handed<Session>,
    object: *const c_void,
    index: usize,
    to: *const c_void,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
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
