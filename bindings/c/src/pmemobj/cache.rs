//! What the inline functions of a program know of a thread's pool.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// `struct firn_pobj_cache`: what they know while the thread is inside an operation there. It lies in the program, one
/// for each thread.
#[repr(C)]
pub struct Cache {
    /// Zero while it knows nothing.
    pool: AtomicU64,
    base: u64,
    /// The last offset while no page is marked; zero otherwise.
    plain: u64,
    /// The last offset.
    last: u64,
    marks: *const AtomicU8,
}

/// What a cache is told of a pool.
pub(crate) struct Told<'p> {
    pub(crate) pool: u64,
    pub(crate) base: u64,
    pub(crate) last: u64,
    /// Whether pages are marked.
    pub(crate) has_marks: bool,
    pub(crate) marks: &'p [AtomicU8],
}

/// A cache of this thread's, in the program. The header's functions, which alone pass one, have it in thread-local
/// storage, where it stays as long as the thread runs.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq)]
pub struct InProgram(*mut Cache);

impl InProgram {
    /// Tells the inline functions where the pool is.
    #[inline]
    pub(crate) fn tell(self, told: &Told<'_>) {
        // SAFETY: it lies in storage of this thread, which calls here and reads it behind the call.
        let cache = unsafe { &mut *self.0 };
        cache.base = told.base;
        cache.last = told.last;
        cache.plain = match told.has_marks {
            true => 0,
            false => told.last,
        };
        cache.marks = told.marks.as_ptr();
        cache.pool.store(told.pool, Ordering::Relaxed);
    }

    /// Tells them that they know nothing. The thread that closes a pool does this to another's, which is outside of the
    /// library then, and not at its end: that takes its caches back first.
    #[inline]
    pub(crate) fn forget(self) {
        // SAFETY: it lies in storage of a thread that has not ended, and this word of it is an atomic.
        unsafe { &(*self.0).pool }.store(0, Ordering::Relaxed);
    }
}
