//! Objects of the program's types.

use core::ffi::{c_int, c_void};
use core::{ptr, slice};

use firn_heap::{Obj, Untyped};

use crate::describe::Type;
use crate::session::{Session, session, with_view};
use crate::status::{Failure, Outcome, Status, object_of, result_of, status_of};

/// A program's bytes.
///
/// # Safety
///
/// The pointer is null or leads to so many bytes, for as long as they are used.
pub(crate) unsafe fn bytes<'a>(from: *const c_void, len: usize, what: &str) -> Outcome<&'a [u8]> {
    check_len(len, what)?;
    match (from.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::invalid(format!("{what} is null"))),
        // SAFETY: the caller says so.
        (false, _) => Ok(unsafe { slice::from_raw_parts(from.cast(), len) }),
    }
}

/// Memory that the program passes to be filled, set to zeros: the program may have left it uninitialized. The caller has
/// compared the length with what there is to read, so that a wild one is refused before memory is touched.
///
/// # Safety
///
/// The pointer is null or leads to room for so many bytes, which nobody else uses meanwhile.
pub(crate) unsafe fn room<'a>(into: *mut c_void, len: usize) -> Outcome<&'a mut [u8]> {
    const WHAT: &str = "the room for the bytes";
    check_len(len, WHAT)?;
    match (into.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Failure::invalid(format!("{WHAT} is null"))),
        // SAFETY: the caller says so.
        (false, _) => Ok(unsafe {
            ptr::write_bytes(into.cast::<u8>(), 0, len);
            slice::from_raw_parts_mut(into.cast(), len)
        }),
    }
}

pub(crate) fn check_len(len: usize, what: &str) -> Outcome<()> {
    match isize::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::invalid(format!(
            "{what} has {len} bytes, more than memory can"
        ))),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_alloc(
    pointer: *mut Session,
    of: *const Type,
    front: *const c_void,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions and types.
        let (it, layout) = unsafe {
            let it = session(pointer)?;
            (it, it.given(it.layout(of))?)
        };
        let size = layout.size();
        let front = match front.is_null() {
            true => &[],
            // SAFETY: the header asks for the type's bytes, which are few.
            false => unsafe { slice::from_raw_parts(front.cast(), size as usize) },
        };
        it.change(|tx| Ok(it.pointer(tx.alloc_untyped(&layout, front, size)?)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_alloc_sized(
    pointer: *mut Session,
    of: *const Type,
    front: *const c_void,
    front_bytes: usize,
    object_bytes: usize,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions, types and bytes.
        let (it, layout, front) = unsafe {
            let it = session(pointer)?;
            (
                it,
                it.given(it.layout(of))?,
                it.given(bytes(front, front_bytes, "the front of the object"))?,
            )
        };
        it.change(|tx| Ok(it.pointer(tx.alloc_untyped(&layout, front, object_bytes as u64)?)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_free(pointer: *mut Session, object: *const c_void) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        it.change(|tx| {
            let object = it.object(tx, object)?;
            // SAFETY: the header asks the program what the heap asks of it.
            unsafe { tx.free(object) }?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_load(
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
            object.check_range(offset as u64, len as u64)?;
            // SAFETY: as the header asks of room.
            object.load_into(offset as u64, unsafe { room(into, len) }?)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_store(
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
            let object = it.object(tx, object)?;
            let layout = it.layout_of(object)?;
            object.store_bytes(&layout, offset as u64, from)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_link(
    pointer: *mut Session,
    object: *const c_void,
    offset: usize,
    to: *const c_void,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        it.change(|tx| {
            let (object, to) = (it.object(tx, object)?, it.object_or_null(tx, to)?);
            let layout = it.layout_of(object)?;
            object.link_at(&layout, offset as u64, to)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_size(pointer: *mut Session, object: *const c_void) -> usize {
    result_of(0, || {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        with_view!(it, |view| Ok(
            it.object(view, object)?.body_bytes()? as usize
        ))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_is(
    pointer: *mut Session,
    object: *const c_void,
    of: *const Type,
) -> c_int {
    result_of(0, || {
        // SAFETY: as the header asks of sessions and types.
        let (it, layout) = unsafe {
            let it = session(pointer)?;
            (it, it.layout(of)?)
        };
        with_view!(it, |view| {
            let found = it.object(view, object)?.type_id();
            Ok(c_int::from(found == layout.id()))
        })
    })
}

/// Takes a field of the pool, which is healed, or a copy of one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_follow_slow(
    pointer: *mut Session,
    field: *const u64,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        if field.is_null() || !field.is_aligned() {
            return Err(Failure::invalid(
                "the reference is null, or not at a multiple of 8",
            ));
        }
        with_view!(it, |view| {
            let found = match it.address(field.cast()) {
                Some(at) => Obj::<Untyped, _>::followed_from(view, at),
                // SAFETY: it is no field of the pool, so the program has it.
                None => Obj::<Untyped, _>::of_word(view, unsafe { *field })?,
            };
            Ok(it.pointer_or_null(found))
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_compare_exchange(
    pointer: *mut Session,
    object: *const c_void,
    offset: usize,
    expected: *mut u64,
    desired: u64,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions, and of the word that is expected.
        let (it, expected) = unsafe { (session(pointer)?, expected.as_mut()) };
        let Some(expected) = expected else {
            return Err(Failure::invalid("the pointer to the expected word is null"));
        };
        it.reading(|view| {
            let object = it.object(view, object)?;
            let layout = it.layout_of(object)?;
            let held = object.compare_exchange_at(&layout, offset as u64, *expected, desired)?;
            held.map(drop).map_err(|held| {
                *expected = held;
                Failure::new(Status::Conflict, "the word held something else")
            })
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_persist(
    pointer: *mut Session,
    object: *const c_void,
    offset: usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        it.reading(|view| {
            let object = it.object(view, object)?;
            let layout = it.layout_of(object)?;
            object.persist_at(&layout, offset as u64)?;
            Ok(())
        })
    })
}
