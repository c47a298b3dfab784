//! Copies out of and into memory that other threads may be changing.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use firn_units::WORD_BYTES;

const WORD: usize = WORD_BYTES as usize;

/// From this many bytes on the processor's own copy is faster than words.
const STRING_COPY_FROM_BYTES: usize = 256;

/// Copies `into.len()` bytes from `from`.
///
/// # Safety
/// The words that hold the source are readable, and Rust code changes them by atomics only.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, into: &mut [u8]) {
    if into.len() >= STRING_COPY_FROM_BYTES {
        // SAFETY: the caller vouches for the source, the slice is the destination, and they do not
        // overlap: no slice reaches into a window. The copy is done by an instruction, not by Rust
        // code, so a store of another thread to the source is no data race, only torn.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") into.len() => _,
                inout("rsi") from => _,
                inout("rdi") into.as_mut_ptr() => _,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    let skew = from.addr() % WORD;
    let (head, rest) = into.split_at_mut(into.len().min((WORD - skew) % WORD));
    if !head.is_empty() {
        // SAFETY: the word that holds `from` holds a byte of the source.
        let word = unsafe { load(from.wrapping_sub(skew)) };
        head.copy_from_slice(&word[skew..skew + head.len()]);
    }
    let from = from.wrapping_add(head.len());
    let (words, tail) = rest.as_chunks_mut::<WORD>();
    for (number, into) in words.iter_mut().enumerate() {
        // SAFETY: the word lies in the source, at a multiple of its size.
        *into = unsafe { load(from.wrapping_add(number * WORD)) };
    }
    if !tail.is_empty() {
        // SAFETY: the word behind the whole ones holds the source's last bytes, so the caller vouches
        // for all of it.
        let word = unsafe { load(from.wrapping_add(words.len() * WORD)) };
        tail.copy_from_slice(&word[..tail.len()]);
    }
}

/// Stores `from` word by word in ascending order; the last word keeps the bytes behind `from`.
///
/// # Safety
/// `to` is a multiple of a word; all words up to the end of `from` are readable and writable, and
/// Rust code changes them by atomics only.
#[inline]
pub(crate) unsafe fn copy_in(from: &[u8], to: *mut u8) {
    let (words, tail) = from.as_chunks::<WORD>();
    for (number, word) in words.iter().enumerate() {
        // SAFETY: the word lies below the end of `from`, at a multiple of its size since `to` is one;
        // the caller vouches that it is writable and changed by atomics only.
        unsafe { store(to.wrapping_add(number * WORD), *word) };
    }
    if !tail.is_empty() {
        let last = to.wrapping_add(words.len() * WORD);
        // SAFETY: the word behind the whole ones holds the place of the last bytes of `from`; the
        // caller vouches that all of it is readable and writable and changed by atomics only.
        unsafe {
            let mut word = load(last);
            word[..tail.len()].copy_from_slice(tail);
            store(last, word);
        }
    }
}

/// # Safety
/// `at` is a readable word, at a multiple of its size, that Rust code changes by atomics only.
#[inline(always)]
unsafe fn load(at: *const u8) -> [u8; WORD] {
    // SAFETY: the caller vouches that the word is readable and aligned, and changed by
    // atomics only. A load does not write through the pointer.
    let word = unsafe { AtomicU64::from_ptr(at.cast_mut().cast()) };
    word.load(Ordering::Relaxed).to_le_bytes()
}

/// # Safety
/// `at` is a writable word, at a multiple of its size, that Rust code changes by atomics only.
#[inline(always)]
unsafe fn store(at: *mut u8, word: [u8; WORD]) {
    // SAFETY: the caller vouches that the word is writable and aligned, and changed by
    // atomics only.
    let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
    // Releasing, so that the compiler keeps the order too.
    cell.store(u64::from_le_bytes(word), Ordering::Release);
}
