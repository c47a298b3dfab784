//! The vector.

use core::ffi::{c_char, c_void};

use super::{Span, answer_of, changing, collection, reading, tell_findings};
use crate::collection::Finding;
use crate::describe::text_in_place;
use crate::object::bytes;
use crate::root::RootName;
use crate::session::{Session, session, with_view};
use crate::shelf::open;
use crate::status::{Status, object_of, result_of, status_of};

const ELEMENT: &str = "the element";

collection!(Vector: firn_vector_new, firn_vector_root, firn_vector_named, firn_vector_len, firn_vector_clear, firn_vector_check);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_get(
    pointer: *mut Session,
    object: *const c_void,
    index: u64,
    value: *mut Span,
) -> Status {
    answer_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        // SAFETY: and of the value.
        unsafe {
            it.find(value, |found| {
                reading!(Vector, it, object, |vector| Ok(
                    vector.get_into(index, found)?
                ))
            })
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_push(
    pointer: *mut Session,
    object: *const c_void,
    from: *const c_void,
    len: usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions and elements.
        let (it, from) = unsafe {
            let it = session(pointer)?;
            (it, it.given(bytes(from, len, ELEMENT))?)
        };
        changing!(Vector, it, object, |vector| Ok(vector.push(from)?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_pop(
    pointer: *mut Session,
    object: *const c_void,
    value: *mut Span,
) -> Status {
    answer_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        // SAFETY: and of the value.
        unsafe {
            it.find(value, |found| {
                let popped = changing!(Vector, it, object, |vector| Ok(vector.pop()?))?;
                if let Some(popped) = &popped {
                    found.extend_from_slice(popped);
                }
                Ok(popped.is_some())
            })
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_set(
    pointer: *mut Session,
    object: *const c_void,
    index: u64,
    from: *const c_void,
    len: usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions and elements.
        let (it, from) = unsafe {
            let it = session(pointer)?;
            (it, it.given(bytes(from, len, ELEMENT))?)
        };
        changing!(Vector, it, object, |vector| Ok(vector.set(index, from)?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_insert(
    pointer: *mut Session,
    object: *const c_void,
    index: u64,
    from: *const c_void,
    len: usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions and elements.
        let (it, from) = unsafe {
            let it = session(pointer)?;
            (it, it.given(bytes(from, len, ELEMENT))?)
        };
        changing!(Vector, it, object, |vector| Ok(vector.insert(index, from)?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_remove(
    pointer: *mut Session,
    object: *const c_void,
    index: u64,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        changing!(Vector, it, object, |vector| Ok(vector
            .remove(index)
            .map(drop)?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_vector_truncate(
    pointer: *mut Session,
    object: *const c_void,
    len: u64,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        changing!(Vector, it, object, |vector| Ok(vector.truncate(len)?))
    })
}
