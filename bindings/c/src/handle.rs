//! Handles.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use firn_heap::{Untyped, View};
use firn_mapped::Mapped;

use crate::pool::Pool;
use crate::session::{Session, session, with_view};
use crate::shelf::{Shelf, Shelved, open};
use crate::status::{Outcome, object_of, result_of};

/// `firn_handle`.
pub struct Handle {
    mark: AtomicU64,
    pool: *const Pool,
    heap: firn_heap::Handle<Untyped, Mapped>,
}

impl Shelved for Handle {
    const NAME: &'static str = "handle";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        // SAFETY: the pool counts this handle, and is not closed before it.
        unsafe { &*self.pool }.heap.is_ours()
    }
}

static SHELF: Shelf<Handle> = Shelf::new();

/// # Safety
///
/// As the header asks of sessions.
unsafe fn made(
    pointer: *mut Session,
    object: *const c_void,
    is_weak: bool,
) -> Outcome<*mut Handle> {
    // SAFETY: the caller says so.
    let it = unsafe { session(pointer) }?;
    with_view!(it, |view| {
        let (object, heap) = (it.object(view, object)?, it.heap());
        let heap = match is_weak {
            true => heap.weak_handle(object),
            false => heap.handle(object),
        };
        it.pool().users.fetch_add(1, Ordering::AcqRel);
        let made = SHELF.hand_out(Handle {
            mark: AtomicU64::new(0),
            pool: it.pool,
            heap,
        });
        Ok(made.as_ptr())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_handle_strong(
    pointer: *mut Session,
    object: *const c_void,
) -> *mut Handle {
    // SAFETY: as the header asks of sessions.
    result_of(ptr::null_mut(), || unsafe { made(pointer, object, false) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_handle_weak(
    pointer: *mut Session,
    object: *const c_void,
) -> *mut Handle {
    // SAFETY: as the header asks of sessions.
    result_of(ptr::null_mut(), || unsafe { made(pointer, object, true) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_handle_get(
    pointer: *mut Session,
    handle: *const Handle,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions and handles.
        let (it, handle) = unsafe { (session(pointer)?, open(handle)?) };
        with_view!(it, |view| Ok(it.pointer_or_null(view.deref(&handle.heap))))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_handle_drop(handle: *mut Handle) {
    result_of((), || {
        if handle.is_null() {
            return Ok(());
        }
        // SAFETY: as the header asks of handles.
        unsafe { open(handle) }?;
        // SAFETY: it is open, and the header asks that nobody uses it meanwhile.
        let dropped = unsafe { SHELF.take_back(handle) };
        drop(dropped.heap);
        // SAFETY: the pool counts this handle, and is not closed before it.
        unsafe { &*dropped.pool }
            .users
            .fetch_sub(1, Ordering::AcqRel);
        Ok(())
    });
}
