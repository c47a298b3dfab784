//! What ThreadSanitizer is told of memory that goes from one thread to another.
//!
//! The library is not built with it. So it does not see that what one thread has freed is there for others only then,
//! and takes the accesses of the thread that had an object and of the one that is given its memory for a race. Where it
//! is in the process it is told: a thread that frees objects, or rolls allocations back, releases; one that allocates,
//! or uses a pool in which objects were moved to memory that was free, acquires what was released. And a lock that is
//! forgotten is not the one that lies at its place later.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr;
use std::sync::OnceLock;

/// `__tsan_acquire` and `__tsan_release` of the compilers' `sanitizer/tsan_interface.h`: what happened before a release
/// of an address happened before whatever follows an acquire of it. Any address may be named.
type Call = extern "C" fn(*mut c_void);

struct Calls {
    acquire: Call,
    release: Call,
    destroy_lock: CallOfLock,
}

/// `__tsan_mutex_destroy`, which takes flags as well.
type CallOfLock = extern "C" fn(*mut c_void, u32);

/// None where the program was built without it.
static CALLS: OnceLock<Option<Calls>> = OnceLock::new();

fn calls() -> Option<&'static Calls> {
    let look = || {
        let acquire = found(c"__tsan_acquire")?;
        let release = found(c"__tsan_release")?;
        let destroy_lock = found(c"__tsan_mutex_destroy")?;
        // SAFETY: the process has functions of these names, whose types are those of the compilers' header; a pointer to
        // a function is as long as any.
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

/// A function of the process's.
fn found(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero, and the process itself is what is searched.
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

/// The thread has memory of a pool now that others may have had.
#[inline]
pub(super) fn was_given<P>(pool: &P) {
    if let Some(calls) = calls() {
        (calls.acquire)(ptr::from_ref(pool).cast_mut().cast());
    }
}

/// The lock at a place is none any more.
#[inline]
pub(super) fn forgets_lock(place: *mut c_void) {
    if let Some(calls) = calls() {
        (calls.destroy_lock)(place, 0);
    }
}
