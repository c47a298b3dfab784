//! Volatile shared words: plain atomics.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use firn_media::Words;
use firn_units::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};
use rustix::thread::futex::{self, Flags, Timespec};

use crate::barrier;
use crate::system::now_ns;

/// Volatile words of a [`crate::Mapped`], the first one at the start of a line.
///
/// The system allocates their pages at the first touch, so a bitmap for a large window costs only the part that is
/// used.
#[derive(Debug)]
pub struct MappedWords {
    /// Invariant: `first + count` is at most its length.
    storage: Box<[AtomicU64]>,
    first: usize,
    count: usize,
}

impl MappedWords {
    pub(crate) fn new(count: usize) -> Self {
        // A `Vec` of lines would be aligned by its type, but then the allocator zeroes it by hand and touches every
        // page.
        let storage = Box::<[AtomicU64]>::new_zeroed_slice(count + WORDS_PER_LINE - 1);
        // SAFETY: zero bytes are a valid `AtomicU64`, and the box was allocated zeroed.
        let storage = unsafe { storage.assume_init() };
        let start = storage.as_ptr().addr() as u64;
        let skew = (start.next_multiple_of(LINE_BYTES) - start) / WORD_BYTES;
        Self {
            storage,
            first: skew as usize,
            count,
        }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count, "word {index} of {}", self.count);
        // SAFETY: `index` is below `count`, and `new` made the storage at least `first + count` long.
        unsafe { self.storage.get_unchecked(self.first + index) }
    }
}

impl MappedWords {
    /// The lower half of a word, which the futex call compares.
    fn half(&self, index: usize) -> &AtomicU32 {
        let word = self.word(index).as_ptr().cast::<u32>();
        // SAFETY: the lower half of a word comes first on this machine and lives as long as the word. Only the futex
        // call accesses it, by a load.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// Waits in the system while a word holds `seen`, at most until `until_ns`.
    pub(crate) fn wait_while(&self, index: usize, seen: u64, until_ns: u64) {
        const SECOND_NS: u64 = 1_000_000_000;
        let left_ns = until_ns.saturating_sub(now_ns());
        let left = (until_ns < u64::MAX).then_some(Timespec {
            tv_sec: (left_ns / SECOND_NS) as i64,
            tv_nsec: (left_ns % SECOND_NS) as i64,
        });
        if left_ns > 0 {
            // The caller looks again, whatever ended the wait.
            let _ = futex::wait(self.half(index), Flags::PRIVATE, seen as u32, left.as_ref());
        }
    }

    pub(crate) fn wake(&self, index: usize) {
        const ALL: u32 = i32::MAX as u32;
        // It fails only for unmapped memory.
        let _ = futex::wake(self.half(index), Flags::PRIVATE, ALL);
    }
}

impl Words for MappedWords {
    #[inline(always)]
    fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn load(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn prefetch(&self, index: usize) {
        let word = self.storage.as_ptr().wrapping_add(self.first + index);
        // SAFETY: the instruction is a hint: it reads nothing that the program can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(word.cast()) }
    }

    #[inline(always)]
    fn store(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn swap(&self, index: usize, value: u64) -> u64 {
        self.word(index).swap(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn store_light(&self, index: usize, value: u64) {
        self.store(index, value);
        barrier::light();
    }

    fn store_heavy(&self, index: usize, value: u64) {
        self.store(index, value);
        barrier::heavy();
    }

    #[inline(always)]
    fn compare_exchange(&self, index: usize, current: u64, new: u64) -> Result<u64, u64> {
        self.word(index)
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    #[inline(always)]
    fn fetch_add(&self, index: usize, value: u64) -> u64 {
        self.word(index).fetch_add(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn fetch_or(&self, index: usize, value: u64) -> u64 {
        self.word(index).fetch_or(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn fetch_and(&self, index: usize, value: u64) -> u64 {
        self.word(index).fetch_and(value, Ordering::SeqCst)
    }
}
