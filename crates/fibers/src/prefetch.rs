//! Prefetching the host's memory.
#![allow(unsafe_code)]

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Asks the host's processor for the cache line in which `place` begins. Nobody waits for it, whereas a load would hold
/// up later instructions once the processor has no room for more.
#[inline(always)]
pub fn prefetch<T: ?Sized>(place: &T) {
    // SAFETY: the instruction belongs to SSE, which every x86-64 processor has; it changes no memory, and faults at no
    // address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast()) }
}
