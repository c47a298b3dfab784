//! Roots.

use core::ffi::{c_char, c_void};

use firn_heap::{Error, Obj, Untyped};

use crate::describe::{Type, text};
use crate::session::{Session, session, with_view};
use crate::status::{Failure, Status, object_of, status_of};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_root(
    pointer: *mut Session,
    name: *const c_char,
    of: *const Type,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions, names and types.
        let (it, name) = unsafe { (session(pointer)?, text(name, "the root's name")?) };
        let expected = match of.is_null() {
            true => None,
            // SAFETY: likewise.
            false => Some(unsafe { it.layout(of) }?),
        };
        with_view!(it, |view| {
            let Some(found) = Obj::<Untyped, _>::of_root(view, &name)? else {
                return Err(Failure::from(Error::NoRoot { name }));
            };
            if let Some(expected) = expected {
                found.check_layout(&expected)?;
            }
            Ok(it.pointer(found))
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_set_root(
    pointer: *mut Session,
    name: *const c_char,
    object: *const c_void,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions and names.
        let (it, name) = unsafe { (session(pointer)?, text(name, "the root's name")?) };
        it.change(|tx| {
            match it.object_or_null(tx, object)? {
                Some(object) => tx.set_root(&name, object)?,
                None => tx.remove_root(&name)?,
            }
            Ok(())
        })
    })
}
