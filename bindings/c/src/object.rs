//! Objects of the program's types.

use core::ffi::{c_int, c_void};

use firn_heap::{Obj, Untyped};

use crate::describe::Type;
use crate::given::{In, InOut, Room, Source};
use crate::handle_pool::Handed;
use crate::operation::with_view;
use crate::session::{Session, session};
use crate::status::{Failure, Status, object_of, result_of, status_of};

/// The messages' name for the bytes at the start of a new object.
const FRONT: &str = "the front of the object";

#[unsafe(no_mangle)]
pub extern "C" fn firn_alloc(
    pointer: Handed<Session>,
    of: In<'static, Type>,
    front: Source<'_>,
) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
        let layout = it.given(it.layout(of))?;
        let size = layout.size();
        // SAFETY: the header promises as many bytes as the type has.
        let front = unsafe { front.of_object(size as usize) }.unwrap_or(&[]);
        it.change(|tx| Ok(it.pointer(tx.alloc_untyped(&layout, front, size)?)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_alloc_sized(
    pointer: Handed<Session>,
    of: In<'static, Type>,
    front: Source<'_>,
    front_bytes: usize,
    object_bytes: usize,
) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
        let layout = it.given(it.layout(of))?;
        // SAFETY: the header promises `front_bytes` bytes.
        let front = it.given(unsafe { front.bytes(front_bytes, FRONT) })?;
        it.change(|tx| Ok(it.pointer(tx.alloc_untyped(&layout, front, object_bytes as u64)?)))
    })
}

/// # Safety
///
/// As the header asks: nothing in the pool leads to the object when the transaction commits, and no handle does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_free(pointer: Handed<Session>, object: *const c_void) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        it.change(|tx| {
            let object = it.object(tx, object)?;
            // SAFETY: the header asks the program what the heap asks: that nothing leads to the object any more.
            unsafe { tx.free(object) }?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_load(
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
            object.check_range(offset as u64, len as u64)?;
            // SAFETY: the header promises room for `len` bytes.
            object.load_into(offset as u64, unsafe { into.bytes(len) }?)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_store(
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
            let object = it.object(tx, object)?;
            let layout = it.layout_of(object)?;
            object.store_bytes(&layout, offset as u64, from)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_link(
    pointer: Handed<Session>,
    object: *const c_void,
    offset: usize,
    to: *const c_void,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        it.change(|tx| {
            let (object, to) = (it.object(tx, object)?, it.object_or_null(tx, to)?);
            let layout = it.layout_of(object)?;
            object.link_at(&layout, offset as u64, to)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_size(pointer: Handed<Session>, object: *const c_void) -> usize {
    result_of(0, || {
        let it = session(pointer)?;
        with_view!(it, |view| Ok(
            it.object(view, object)?.body_bytes()? as usize
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_is(
    pointer: Handed<Session>,
    object: *const c_void,
    of: In<'static, Type>,
) -> c_int {
    result_of(0, || {
        let it = session(pointer)?;
        let layout = it.layout(of)?;
        with_view!(it, |view| {
            let found = it.object(view, object)?.type_id();
            Ok(c_int::from(found == layout.id()))
        })
    })
}

/// Takes a field of the pool, which is healed, or a copy of one.
#[unsafe(no_mangle)]
pub extern "C" fn firn_follow_slow(pointer: Handed<Session>, field: In<'_, u64>) -> *const c_void {
    object_of(|| {
        let it = session(pointer)?;
        if field.is_null() || !field.addr().is_multiple_of(size_of::<u64>()) {
            return Err(Failure::invalid(
                "the reference is null, or not at a multiple of 8",
            ));
        }
        with_view!(it, |view| {
            let found = match it.address_of(field.addr()) {
                Some(at) => Obj::<Untyped, _>::followed_from(view, at),
                // It is no field of the pool, so it is the program's own, and not null.
                None => Obj::<Untyped, _>::of_word(view, field.get().unwrap_or(0))?,
            };
            Ok(it.pointer_or_null(found))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_compare_exchange(
    pointer: Handed<Session>,
    object: *const c_void,
    offset: usize,
    expected: InOut<'_, u64>,
    desired: u64,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        let Some(word) = expected.get() else {
            return Err(Failure::invalid("the pointer to the expected word is null"));
        };
        it.reading(|view| {
            let object = it.object(view, object)?;
            let layout = it.layout_of(object)?;
            let held = object.compare_exchange_at(&layout, offset as u64, word, desired)?;
            held.map(drop).map_err(|held| {
                expected.put(held);
                Failure::new(Status::Conflict, "the word held something else")
            })
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_persist(
    pointer: Handed<Session>,
    object: *const c_void,
    offset: usize,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        it.reading(|view| {
            let object = it.object(view, object)?;
            let layout = it.layout_of(object)?;
            object.persist_at(&layout, offset as u64)?;
            Ok(())
        })
    })
}
