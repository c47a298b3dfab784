//! What ThreadSanitizer is told of memory that goes from one thread to another.
//!
//! The library is not built with it. So it does not see that what one thread has freed is there for others only then,
//! and takes the accesses of the thread that had an object and of the one that is given its memory for a race. Where it
//! is in the process it is told: a thread that frees objects, or rolls allocations back, releases; one that allocates,
//! or uses a pool in which objects were moved to memory that was free, acquires what was released. And a lock that is
//! forgotten is not the one that lies at its place later.

use core::ffi::{CStr, c_void};
use core::mem::transmute_copy;
use core::ptr;
use std::sync::OnceLock;

use super::pools::Pobj;

/// `__tsan_acquire` and `__tsan_release` of the compilers' `sanitizer/tsan_interface.h`: what happened before a release
/// of an address happened before whatever follows an acquire of it.
type Call = unsafe extern "C" fn(*mut c_void);

struct Calls {
    acquire: Call,
    release: Call,
    destroy_lock: CallOfLock,
}

/// `__tsan_mutex_destroy`, which takes flags as well.
type CallOfLock = unsafe extern "C" fn(*mut c_void, u32);

/// None where the program was built without it.
static CALLS: OnceLock<Option<Calls>> = OnceLock::new();

fn calls() -> Option<&'static Calls> {
    let look = || {
        Some(Calls {
            // SAFETY: the names and what they are called with are those of the compilers' header.
            acquire: unsafe { call(c"__tsan_acquire") }?,
            // SAFETY: as above.
            release: unsafe { call(c"__tsan_release") }?,
            // SAFETY: as above.
            destroy_lock: unsafe { call(c"__tsan_mutex_destroy") }?,
        })
    };
    CALLS.get_or_init(look).as_ref()
}

/// A function of the process's.
///
/// # Safety
///
/// It is of this type.
unsafe fn call<F>(name: &CStr) -> Option<F> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: the caller says so; a pointer to a function is as long as any.
    (!found.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&found) })
}

/// The thread is about to give up memory of the pool.
#[inline]
pub(super) fn gives_up(pool: &Pobj) {
    if let Some(calls) = calls() {
        // SAFETY: any address may be named.
        unsafe { (calls.release)(ptr::from_ref(pool).cast_mut().cast()) }
    }
}

/// The thread has memory of the pool now that others may have had.
#[inline]
pub(super) fn was_given(pool: &Pobj) {
    if let Some(calls) = calls() {
        // SAFETY: as above.
        unsafe { (calls.acquire)(ptr::from_ref(pool).cast_mut().cast()) }
    }
}

/// The lock at a place is none any more.
#[inline]
pub(super) fn forgets_lock(place: *mut c_void) {
    if let Some(calls) = calls() {
        // SAFETY: any address may be named.
        unsafe { (calls.destroy_lock)(place, 0) }
    }
}
