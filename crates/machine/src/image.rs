//! What memory holds: now, and what a power failure would leave.

use firn_units::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

/// Persistent memory as its program sees it, and as the device and the queue before it have it.
pub(crate) struct Images {
    current: Vec<u64>,
    persisted: Vec<u64>,
}

impl Images {
    /// Of so many bytes, all zero. The host gives memory for what is touched.
    pub(crate) fn new(bytes: u64) -> Self {
        let words = (bytes / WORD_BYTES) as usize;
        Self {
            current: vec![0; words],
            persisted: vec![0; words],
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self, word: u64) -> u64 {
        self.current.get(word as usize).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(crate) fn store(&mut self, word: u64, value: u64) {
        self.current[word as usize] = value;
    }

    /// The queue has accepted a line.
    #[inline(always)]
    pub(crate) fn persist(&mut self, line: u64) {
        let words = line as usize * WORDS_PER_LINE..(line as usize + 1) * WORDS_PER_LINE;
        self.persisted[words.clone()].copy_from_slice(&self.current[words]);
    }

    /// Zeros a range of whole lines, on the device as well.
    pub(crate) fn clear(&mut self, at: u64, len: u64) {
        debug_assert_eq!((at | len) % LINE_BYTES, 0);
        let words = (at / WORD_BYTES) as usize..((at + len) / WORD_BYTES) as usize;
        self.current[words.clone()].fill(0);
        self.persisted[words].fill(0);
    }

    /// Power fails: of the first `bytes`, what was not persistent is gone.
    pub(crate) fn lose_power(&mut self, bytes: u64) {
        let words = ..(bytes / WORD_BYTES) as usize;
        self.current[words].copy_from_slice(&self.persisted[words]);
    }
}
