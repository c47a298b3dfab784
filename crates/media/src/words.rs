//! Volatile shared words, with which the heap synchronises its threads.

/// A fixed array of volatile 64-bit words, shared by all threads of a medium and lost in a crash.
///
/// Loads acquire and stores release, as plain `mov`s do on x86; a store may sit in the thread's
/// store buffer together with its persistent stores, in program order. The other operations are
/// locked instructions: they empty the store buffer first and are full barriers.
///
/// Words start as zero. An index out of range panics: it is a bug of the caller, never bad media.
pub trait Words: Send + Sync + 'static {
    /// Number of words.
    fn len(&self) -> usize;
    /// Whether there are no words.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Loads word `index`.
    fn load(&self, index: usize) -> u64;
    /// Asks for the line of word `index`, if there is such a word. A hint.
    fn prefetch(&self, index: usize) {
        let _ = index;
    }
    /// Stores `value` into word `index`.
    fn store(&self, index: usize, value: u64);
    /// Exchanges word `index` for `value` and returns what it held.
    fn swap(&self, index: usize, value: u64) -> u64;
    /// Stores `value`, and is a full barrier with respect to threads that use [`Words::store_heavy`]. Costs next to
    /// nothing if the medium can make all threads pass a barrier.
    #[inline(always)]
    fn store_light(&self, index: usize, value: u64) {
        self.swap(index, value);
    }
    /// Stores `value`, and is a full barrier with respect to threads that use [`Words::store_light`]. May cost
    /// microseconds.
    fn store_heavy(&self, index: usize, value: u64) {
        self.swap(index, value);
    }
    /// Stores `new` if the word holds `current`; either way returns what it held, `Ok` if stored.
    fn compare_exchange(&self, index: usize, current: u64, new: u64) -> Result<u64, u64>;
    /// Adds, wrapping, and returns the value before.
    fn fetch_add(&self, index: usize, value: u64) -> u64;
    /// Sets the bits of `value` and returns the word before.
    fn fetch_or(&self, index: usize, value: u64) -> u64;
    /// Keeps only the bits of `value` and returns the word before.
    fn fetch_and(&self, index: usize, value: u64) -> u64;
}
