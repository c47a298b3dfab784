//! Handles.

use core::ffi::c_void;
use core::sync::atomic::AtomicU64;

use firn_heap::{Untyped, View};
use firn_mapped::Mapped;

use crate::handle_pool::{Handed, HandlePool, Pooled};
use crate::operation::with_view;
use crate::pool::{By, Used};
use crate::session::{Session, session};
use crate::status::{Outcome, object_of, result_of};

/// `firn_handle`.
pub struct Handle {
    mark: AtomicU64,
    // Declared before the pool that holds it.
    heap: firn_heap::Handle<Untyped, Mapped>,
    pool: Used,
}

impl Pooled for Handle {
    const NAME: &'static str = "handle";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.pool.heap.is_ours()
    }
}

static FREE_HANDLES: HandlePool<Handle> = HandlePool::new();

fn made(pointer: Handed<Session>, object: *const c_void, is_weak: bool) -> Outcome<Handed<Handle>> {
    let it = session(pointer)?;
    with_view!(it, |view| {
        let (object, heap) = (it.object(view, object)?, it.heap());
        let heap = match is_weak {
            true => heap.weak_handle(object),
            false => heap.handle(object),
        };
        Ok(FREE_HANDLES.hand_out(Handle {
            mark: AtomicU64::new(0),
            heap,
            pool: Used::new(it.pool(), By::Handle),
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_handle_strong(
    pointer: Handed<Session>,
    object: *const c_void,
) -> Handed<Handle> {
    result_of(Handed::NULL, || made(pointer, object, false))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_handle_weak(
    pointer: Handed<Session>,
    object: *const c_void,
) -> Handed<Handle> {
    result_of(Handed::NULL, || made(pointer, object, true))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_handle_get(
    pointer: Handed<Session>,
    handle: Handed<Handle>,
) -> *const c_void {
    object_of(|| {
        let (it, handle) = (session(pointer)?, handle.open()?);
        with_view!(it, |view| Ok(it.pointer_or_null(view.deref(&handle.heap))))
    })
}

/// # Safety
///
/// As the header asks: no thread uses the handle meanwhile, or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_handle_drop(handle: Handed<Handle>) {
    result_of((), || {
        if !handle.is_null() {
            // SAFETY: the header asks that no thread uses it meanwhile, and no call keeps a reference to a handle.
            drop(unsafe { FREE_HANDLES.take_back(handle) }?);
        }
        Ok(())
    });
}
