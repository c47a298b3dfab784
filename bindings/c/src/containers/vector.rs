//! The vector.

use core::ffi::c_void;

use super::{Span, answer_of, changing, collection, reading};
use crate::collection::{Finding, tell_findings};
use crate::given::{Out, Source, Text};
use crate::handle_pool::Handed;
use crate::root::{NAME, RootName};
use crate::session::{Session, session};
use crate::status::{Status, object_of, result_of, status_of};

const ELEMENT: &str = "the element";

collection!(Vector: firn_vector_new, firn_vector_root, firn_vector_named, firn_vector_len, firn_vector_clear, firn_vector_check);

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_get(
    pointer: Handed<Session>,
    object: *const c_void,
    index: u64,
    value: Out<'_, Span>,
) -> Status {
    answer_of(|| {
        let it = session(pointer)?;
        it.find(value, |found| {
            reading!(Vector, it, object, |vector| Ok(
                vector.get_into(index, found)?
            ))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_push(
    pointer: Handed<Session>,
    object: *const c_void,
    from: Source<'_>,
    len: usize,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        // SAFETY: the header promises `len` bytes.
        let from = it.given(unsafe { from.bytes(len, ELEMENT) })?;
        changing!(Vector, it, object, |vector| Ok(vector.push(from)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_pop(
    pointer: Handed<Session>,
    object: *const c_void,
    value: Out<'_, Span>,
) -> Status {
    answer_of(|| {
        let it = session(pointer)?;
        it.find(value, |found| {
            let popped = changing!(Vector, it, object, |vector| Ok(vector.pop()?))?;
            if let Some(popped) = &popped {
                found.extend_from_slice(popped);
            }
            Ok(popped.is_some())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_set(
    pointer: Handed<Session>,
    object: *const c_void,
    index: u64,
    from: Source<'_>,
    len: usize,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        // SAFETY: the header promises `len` bytes.
        let from = it.given(unsafe { from.bytes(len, ELEMENT) })?;
        changing!(Vector, it, object, |vector| Ok(vector.set(index, from)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_insert(
    pointer: Handed<Session>,
    object: *const c_void,
    index: u64,
    from: Source<'_>,
    len: usize,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        // SAFETY: the header promises `len` bytes.
        let from = it.given(unsafe { from.bytes(len, ELEMENT) })?;
        changing!(Vector, it, object, |vector| Ok(vector.insert(index, from)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_remove(
    pointer: Handed<Session>,
    object: *const c_void,
    index: u64,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        changing!(Vector, it, object, |vector| Ok(vector
            .remove(index)
            .map(drop)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_vector_truncate(
    pointer: Handed<Session>,
    object: *const c_void,
    len: u64,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        changing!(Vector, it, object, |vector| Ok(vector.truncate(len)?))
    })
}
