//! Copies from and to memory that other threads may be changing.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use firn_units::WORD_BYTES;

const WORD: usize = WORD_BYTES as usize;

/// Bytes that one vector register copies, and four of them.
const BLOCK: usize = 16;
const BLOCKS: usize = 4 * BLOCK;

/// From this length on, `rep movsb` is faster than copying in blocks.
const STRING_COPY_FROM_BYTES: usize = 256;

/// Copies `len` bytes from `from` to `into`.
///
/// The instructions that read the source are not Rust code, so a concurrent store to it tears the copy but is no data
/// race.
///
/// # Safety
/// The words that hold the source are readable, and Rust code changes them only by atomics. `into` is writable for
/// `len` bytes, does not overlap the source, and nobody else uses these bytes.
#[inline(always)]
pub(crate) unsafe fn copy_out(from: *const u8, into: *mut u8, len: usize) {
    if len >= STRING_COPY_FROM_BYTES {
        // SAFETY: by the function's contract `len` bytes are readable at `from` and writable at `into`, and the two do
        // not overlap; the instruction touches no others.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") from => _,
                inout("rdi") into => _,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    if len < BLOCK {
        // SAFETY: `few_out` has this function's contract, for fewer bytes than a block, and `len` was just checked.
        return unsafe { few_out(from, into, len) };
    }
    let mut done = 0;
    // SAFETY: every block lies in the first `len` bytes, for which the caller vouches. The last block ends with them,
    // and may copy some bytes twice.
    unsafe {
        while len - done >= BLOCKS {
            blocks_out(from.add(done), into.add(done));
            done += BLOCKS;
        }
        while len - done >= BLOCK {
            block_out(from.add(done), into.add(done));
            done += BLOCK;
        }
        if done < len {
            block_out(from.add(len - BLOCK), into.add(len - BLOCK));
        }
    }
}

/// # Safety
/// As [`copy_out`], for [`BLOCK`] bytes.
#[inline(always)]
unsafe fn block_out(from: *const u8, into: *mut u8) {
    // SAFETY: one move loads a block and one stores it; the function's contract makes these bytes accessible.
    unsafe {
        asm!(
            "movups {block}, [{from}]",
            "movups [{into}], {block}",
            from = in(reg) from,
            into = in(reg) into,
            block = out(xmm_reg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// # Safety
/// As [`copy_out`], for [`BLOCKS`] bytes.
#[inline(always)]
unsafe fn blocks_out(from: *const u8, into: *mut u8) {
    // SAFETY: the moves load and store four blocks; the function's contract makes these bytes accessible.
    unsafe {
        asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movups [{into}], {a}",
            "movups [{into} + 16], {b}",
            "movups [{into} + 32], {c}",
            "movups [{into} + 48], {d}",
            from = in(reg) from,
            into = in(reg) into,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// # Safety
/// As [`copy_out`], for less than [`BLOCK`] bytes.
#[inline(never)]
unsafe fn few_out(from: *const u8, into: *mut u8, len: usize) {
    let mut few = [0; BLOCK];
    // SAFETY: by the function's contract the words that hold the source are readable and the `len` bytes at `into` are
    // writable; `few` holds `len` bytes, which is less than a block.
    unsafe {
        words_out(from, &mut few[..len]);
        few.as_ptr().copy_to_nonoverlapping(into, len);
    }
}

/// Copies a few bytes from `from`, word by word.
///
/// # Safety
/// The words that hold the source are readable, and Rust code changes them by atomics only.
#[inline]
unsafe fn words_out(from: *const u8, into: &mut [u8]) {
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
        // SAFETY: the word after the whole words holds the source's last bytes, so the caller vouches for all of it.
        let word = unsafe { load(from.wrapping_add(words.len() * WORD)) };
        tail.copy_from_slice(&word[..tail.len()]);
    }
}

/// Stores `from` word by word in ascending order. The last word keeps its bytes beyond the end of `from`.
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
        // SAFETY: the word after the whole words receives the last bytes of `from`; the caller vouches that all of it
        // is readable, writable and changed only by atomics.
        unsafe {
            let mut word = load(last);
            word[..tail.len()].copy_from_slice(tail);
            store(last, word);
        }
    }
}

/// Stores `from`, which has 1, 2 or 4 bytes, by one instruction that touches no other byte.
///
/// The instruction is not Rust code, so it does not race with atomics of another size at the same place: it is just
/// another store.
///
/// # Safety
/// `to` is a multiple of the length of `from`, its word is writable, and Rust code changes it by atomics only.
#[inline]
pub(crate) unsafe fn store_part(from: &[u8], to: *mut u8) {
    // SAFETY: the destination's word is writable, by the function's contract; a store at a multiple of its width stays
    // in one word.
    unsafe {
        match *from {
            [byte] => asm!(
                "mov byte ptr [{to}], {byte}",
                to = in(reg) to,
                byte = in(reg_byte) byte,
                options(nostack, preserves_flags)
            ),
            [a, b] => asm!(
                "mov word ptr [{to}], {word:x}",
                to = in(reg) to,
                word = in(reg) u16::from_le_bytes([a, b]),
                options(nostack, preserves_flags)
            ),
            [a, b, c, d] => asm!(
                "mov dword ptr [{to}], {word:e}",
                to = in(reg) to,
                word = in(reg) u32::from_le_bytes([a, b, c, d]),
                options(nostack, preserves_flags)
            ),
            _ => {}
        }
    }
}

/// Copies words in ascending order, several per round.
///
/// # Safety
/// `from` and `to` are multiples of a word; the `count` words at both are readable, those at `to`
/// writable, and Rust code changes them by atomics only.
#[inline]
pub(crate) unsafe fn copy_words(from: *const u8, to: *mut u8, count: usize) {
    const ROUND: usize = 4;
    let each = |number: usize| {
        let skip = number * WORD;
        // SAFETY: the word is one of the `count`, for which the caller vouches.
        unsafe { store(to.wrapping_add(skip), load(from.wrapping_add(skip))) };
    };
    let mut done = 0;
    while done + ROUND <= count {
        (done..done + ROUND).for_each(each);
        done += ROUND;
    }
    (done..count).for_each(each);
}

/// # Safety
/// `at` is a readable word, at a multiple of its size, that Rust code changes by atomics only.
#[inline(always)]
unsafe fn load(at: *const u8) -> [u8; WORD] {
    // SAFETY: by the function's contract the word is readable, aligned and changed only by atomics. A load does not
    // write through the pointer.
    let word = unsafe { AtomicU64::from_ptr(at.cast_mut().cast()) };
    word.load(Ordering::Relaxed).to_le_bytes()
}

/// # Safety
/// `at` is a writable word, at a multiple of its size, that Rust code changes by atomics only.
#[inline(always)]
unsafe fn store(at: *mut u8, word: [u8; WORD]) {
    // SAFETY: by the function's contract the word is writable and aligned, and changed by atomics only.
    let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
    // Release, so that the compiler keeps the order too.
    cell.store(u64::from_le_bytes(word), Ordering::Release);
}
