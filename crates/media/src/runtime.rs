//! The runtime beside persistent memory: volatile words, threads, waiting, clocks, randomness.

use crate::{MediumError, Words};

/// The third part of a medium: volatile words, threads and time.
///
/// # What it promises
///
/// - **Threads** belong to the medium. A simulated medium runs simulated threads, one at a time, and switches at any
///   operation of any part. So a thread that holds a lock must expect others to find it held, and waits only through
///   [`Runtime::pause`] and [`Runtime::wait_while`]: a lock of the operating system would block the one OS thread that
///   carries all simulated ones.
/// - **Volatile words** are shared by all threads and ordered together with persistent memory: both go through one
///   store buffer per thread.
/// - **Clocks** advance while threads run or wait. They are simulated if threads are.
/// - **Determinism**: if threads are simulated, a seed determines the execution, randomness included.
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

    /// Called before a lock of the heap is taken. A medium that simulates locked instructions counts one.
    fn acquire_point(&self) {}

    /// Called before a lock of the heap is released. On media that simulate store buffers, earlier stores become
    /// visible first, just as if the release itself went through the buffer.
    fn release_point(&self) {}

    /// Waits a little. `attempt` counts the calls of one wait, so that a medium can spin first and later sleep, ever
    /// longer. For waits that are likely to end soon, and for changes that nobody announces.
    fn pause(&self, attempt: u32);

    /// Waits while word `index` holds `seen`, at most until `until_ns` ([`Runtime::now_ns`]; `u64::MAX` for ever). A
    /// thread that changes the word calls [`Runtime::wake`] afterwards. Comparing the word and starting to wait are one
    /// step, so an announced change is never missed. Takes no processor time if time is real.
    ///
    /// May return early, so the caller looks again. Values must differ in their lower 32 bits, because media may
    /// compare no more.
    fn wait_while(&self, words: &Self::Words, index: usize, seen: u64, until_ns: u64) {
        let mut attempt = 0;
        while words.load(index) == seen && self.now_ns() < until_ns {
            self.pause(attempt);
            attempt += 1;
        }
    }

    /// Ends all threads' waits for word `index`, which the caller has changed.
    fn wake(&self, words: &Self::Words, index: usize) {
        let _ = (words, index);
    }

    /// Monotonic nanoseconds; simulated if threads are.
    fn now_ns(&self) -> u64;

    /// CPU time of the calling thread in nanoseconds, or [`Runtime::now_ns`] if the medium does not count it.
    fn cpu_ns(&self) -> u64 {
        self.now_ns()
    }

    /// A random word. It comes from the seed if a seed determines the execution.
    fn random_u64(&self) -> u64;

    /// Starts a thread of this medium.
    fn spawn(&self, name: &str, job: Box<dyn FnOnce() + Send>)
    -> Result<Self::Thread, MediumError>;

    /// Waits for a thread. Returns whether it ended without a panic.
    fn join(&self, thread: Self::Thread) -> bool;

    /// A number of the calling thread, which no other thread has as long as it runs; zero if threads are simulated.
    fn thread(&self) -> u64 {
        0
    }

    /// Whether this is still the process that opened the medium, and not a forked child of it. A child shares the
    /// memory below with its parent, and lacks the threads that may have held locks: it must not load, store or wait,
    /// but may drop the medium. Costs one load if processes can fork.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        true
    }

    /// Whether operations on the pool may begin: the medium is this process's, and its device has not failed. Costs as
    /// much as [`Runtime::is_ours`].
    #[inline(always)]
    fn is_usable(&self) -> bool {
        self.is_ours()
    }

    /// Why no operation may begin, unless it is for want of [`Runtime::is_ours`].
    fn failure(&self) -> Option<MediumError> {
        None
    }
}
