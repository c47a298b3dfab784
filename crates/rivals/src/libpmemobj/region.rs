//! Bytes of the pool that a thread changes in place.

use std::sync::atomic::Ordering::Relaxed;

use super::Failure;
use super::library::{Object, Pool};

const LINE_BYTES: usize = 64;

/// Zeroed bytes of the pool, from the start of a line; freed when dropped.
pub struct Region<'p> {
    pool: &'p Pool<'p>,
    /// Taken only by `drop`.
    object: Option<Object<'p>>,
    /// Bytes of the object before its first line.
    before: usize,
}

impl<'p> Region<'p> {
    /// Allocates `bytes` bytes.
    pub fn new(pool: &'p Pool<'p>, bytes: usize) -> Result<Self, Failure> {
        let object = pool.zalloc(bytes + LINE_BYTES)?;
        // The pool's base is page-aligned, so an offset tells where lines start.
        let before = (object.offset() as usize).wrapping_neg() % LINE_BYTES;
        Ok(Self {
            pool,
            object: Some(object),
            before,
        })
    }

    /// Stores a word at byte `at`, which is a multiple of eight.
    #[inline]
    pub fn store(&self, at: usize, word: u64) {
        self.object().word(self.before + at).store(word, Relaxed);
    }

    /// Snapshots `bytes` from byte `at` in this thread's transaction.
    #[inline]
    pub(super) fn snapshot(&self, at: usize, bytes: usize) -> Result<(), Failure> {
        self.pool
            .tx_snapshot(self.object(), self.before + at, bytes)
    }

    #[inline]
    fn object(&self) -> &Object<'p> {
        self.object.as_ref().expect("held until dropped")
    }
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            // A poisoned pool refuses; its file has no name any more, so nothing is left behind.
            let _ = self.pool.free(object);
        }
    }
}
