//! What a program runs on besides persistent memory: volatile words, threads, waiting, clocks, randomness.

use crate::{MediumError, Words};

/// The third part of a medium: what keeps threads together.
///
/// # What it promises
///
/// - **Threads** belong to the medium. A simulated one runs simulated threads, one at a time, and switches at any
///   operation of any part. So whoever holds a lock must expect others to find it held, and waits only through
///   [`Runtime::pause`] and [`Runtime::wait_while`]: a lock of the operating system would block the one thread that
///   carries all simulated ones.
/// - **Volatile words** are shared by all threads and ordered together with persistent memory: both go through one
///   store buffer a thread.
/// - **Clocks** move on while threads run or wait. They are simulated where threads are.
/// - **Determinism**: where threads are simulated, one seed is one execution, randomness included.
///
/// # Crash
///
/// Words, threads and clocks are lost.
pub trait Runtime {
    /// Volatile shared words of this medium.
    type Words: Words;
    /// A thread that [`Runtime::spawn`] started.
    type Thread: Send;

    /// Makes `count` volatile words, all zero.
    fn words(&self, count: usize) -> Self::Words;

    /// Called before a lock of the heap is taken: a locked instruction on media that simulate them.
    fn acquire_point(&self) {}

    /// Called before a lock of the heap is released: on media that simulate store buffers, earlier
    /// stores become visible first, as the release's own place in the buffer would make them.
    fn release_point(&self) {}

    /// Waits a little; `attempt` counts the calls of one wait, so that a medium can spin first and
    /// sleep later, the longer the longer the wait has lasted. For what is likely to end soon, and for what nobody
    /// announces.
    fn pause(&self, attempt: u32);

    /// Waits while word `index` holds `seen`, until `until_ns` at the latest ([`Runtime::now_ns`]; `u64::MAX` for ever).
    /// Whoever changes the word calls [`Runtime::wake`] afterwards. The look and the beginning of the wait are one step,
    /// so a change that is announced is never missed. Takes no processor time where time is real.
    ///
    /// May return early, so the caller looks again. Values must differ in their lower 32 bits: media may compare no
    /// more.
    fn wait_while(&self, words: &Self::Words, index: usize, seen: u64, until_ns: u64) {
        let mut attempt = 0;
        while words.load(index) == seen && self.now_ns() < until_ns {
            self.pause(attempt);
            attempt += 1;
        }
    }

    /// Ends the waits of all threads for word `index`, which the caller has changed.
    fn wake(&self, words: &Self::Words, index: usize) {
        let _ = (words, index);
    }

    /// Monotonic nanoseconds; simulated where threads are.
    fn now_ns(&self) -> u64;

    /// Nanoseconds that the calling thread has computed; as [`Runtime::now_ns`] where nobody counts.
    fn cpu_ns(&self) -> u64 {
        self.now_ns()
    }

    /// A random word; from the seed where one seed is one execution.
    fn random_u64(&self) -> u64;

    /// Starts a thread of this medium.
    fn spawn(&self, name: &str, job: Box<dyn FnOnce() + Send>)
    -> Result<Self::Thread, MediumError>;

    /// Waits for a thread. Returns whether it ended without a panic.
    fn join(&self, thread: Self::Thread) -> bool;

    /// Whether this is still the process that opened the medium, and not a forked child of it. A child shares what lies
    /// below with its parent, and has none of the threads that may have held locks: it loads, stores and waits for
    /// nothing, and may drop the medium. One load, where processes can fork.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        true
    }
}
