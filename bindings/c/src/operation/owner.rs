//! Which thread an operation belongs to.

/// A number of this thread, which no other has while it lives: the address of its control block, which the psABI of
/// x86-64 puts in the first word of it.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
pub(crate) fn this_thread() -> usize {
    let block: usize;
    // SAFETY: every thread has a control block as long as it runs; nothing is stored.
    unsafe {
        core::arch::asm!(
            "mov {}, fs:[0]",
            out(reg) block,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    block
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
thread_local! {
    static THREAD: u8 = const { 0 };
}

/// A number of this thread, which no other has while it lives.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) fn this_thread() -> usize {
    THREAD
        .try_with(|byte| core::ptr::from_ref(byte).addr())
        .unwrap_or(0)
}
