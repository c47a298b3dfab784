//! Telling ThreadSanitizer about memory that passes from one thread to another.
//!
//! The library is not built with it. So it does not see that memory freed by one thread is available to others only
//! afterwards, and takes the accesses of the former and the new user for a race. If it is in the process, the library
//! tells it: a thread that frees objects, or rolls allocations back, releases; a thread that allocates, or uses a pool
//! in which objects were moved to free memory, acquires. And a forgotten lock is not the one that lies at its place
//! later.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr;
use std::sync::OnceLock;

/// `__tsan_acquire` and `__tsan_release` of the compilers' `sanitizer/tsan_interface.h`: accesses before a release of
/// an address happen before accesses after an acquire of it. Any address may be named.
type Call = extern "C" fn(*mut c_void);

struct Calls {
    acquire: Call,
    release: Call,
    destroy_lock: CallOfLock,
}

/// `__tsan_mutex_destroy`, which takes flags as well.
type CallOfLock = extern "C" fn(*mut c_void, u32);

/// `None` if the program was built without it.
static CALLS: OnceLock<Option<Calls>> = OnceLock::new();

fn calls() -> Option<&'static Calls> {
    let look = || {
        let acquire = found(c"__tsan_acquire")?;
        let release = found(c"__tsan_release")?;
        let destroy_lock = found(c"__tsan_mutex_destroy")?;
        // SAFETY: the process has functions of these names, whose types are those of the compilers' header; every
        // pointer to a function has one size.
        Some(unsafe {
            Calls {
                acquire: transmute::<*mut c_void, Call>(acquire),
                release: transmute::<*mut c_void, Call>(release),
                destroy_lock: transmute::<*mut c_void, CallOfLock>(destroy_lock),
            }
        })
    };
    CALLS.get_or_init(look).as_ref()
}

/// A function of the process, by name.
fn found(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero, and the search is in the process itself.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The thread is about to give up memory of a pool.
#[inline]
pub(super) fn gives_up<P>(pool: &P) {
    if let Some(calls) = calls() {
        (calls.release)(ptr::from_ref(pool).cast_mut().cast());
    }
}

/// The thread now has memory of a pool that others may have had.
#[inline]
pub(super) fn was_given<P>(pool: &P) {
    if let Some(calls) = calls() {
        (calls.acquire)(ptr::from_ref(pool).cast_mut().cast());
    }
}

/// The lock at a place has been forgotten.
#[inline]
pub(super) fn forgets_lock(place: *mut c_void) {
    if let Some(calls) = calls() {
        (calls.destroy_lock)(place, 0);
    }
}
