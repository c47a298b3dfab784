//! What a program's inline functions know about a thread's pool.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// `struct firn_pobj_cache`: their knowledge while the thread is inside an operation in that pool. It lies in the
/// program, one for each thread.
#[repr(C)]
pub struct Cache {
    /// Zero while nothing is known.
    pool: AtomicU64,
    base: u64,
    /// The last offset while no page is marked; zero otherwise.
    plain: u64,
    /// The last offset.
    last: u64,
    marks: *const AtomicU8,
}

/// The facts about a pool that a cache receives.
pub(crate) struct Told<'p> {
    pub(crate) pool: u64,
    pub(crate) base: u64,
    pub(crate) last: u64,
    /// Whether pages are marked.
    pub(crate) has_marks: bool,
    pub(crate) marks: &'p [AtomicU8],
}

/// A cache of this thread in the program. Only the header's functions pass one; theirs is in thread-local storage,
/// where it stays as long as the thread runs.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq)]
pub struct InProgram(*mut Cache);

impl InProgram {
    /// Tells the inline functions where the pool is.
    #[inline]
    pub(crate) fn tell(self, told: &Told<'_>) {
        // SAFETY: it lies in storage of this thread, which calls here and reads it only after the call.
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

    /// Clears the inline functions' knowledge. The thread that closes a pool does this to another's cache. That thread
    /// is outside the library then, and has not ended: at its end it takes its caches back first.
    #[inline]
    pub(crate) fn forget(self) {
        // SAFETY: it lies in storage of a thread that has not ended, and this word of it is an atomic.
        unsafe { &(*self.0).pool }.store(0, Ordering::Relaxed);
    }
}
