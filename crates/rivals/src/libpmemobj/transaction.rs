//! A transaction as a closure: committed when it succeeds, aborted when it does not.
//!
//! It costs the rival less than its C macros would, which set a jump buffer and call the library for each stage: the
//! measurement is a lower bound of a C program's cost.

use std::marker::PhantomData;

use super::Failure;
use super::library::{Object, Pool};
use super::region::Region;

/// A transaction of this thread, in progress.
pub struct Transaction<'p> {
    pool: &'p Pool<'p>,
    _same_thread: PhantomData<*const ()>,
}

impl<'p> Pool<'p> {
    /// Runs `body` as one transaction, committed if it succeeds.
    ///
    /// Errors: `body`'s own, after which the transaction is aborted and the pool poisoned.
    #[inline]
    pub fn transaction<R>(
        &'p self,
        body: impl FnOnce(&Transaction<'p>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let done = self.tx_begin().and_then(|()| {
            let result = body(&Transaction {
                pool: self,
                _same_thread: PhantomData,
            })?;
            #[cfg(test)]
            if self
                .abort_next
                .swap(false, std::sync::atomic::Ordering::Relaxed)
            {
                return Err(Failure::Poisoned);
            }
            self.tx_commit()?;
            Ok(result)
        });
        if done.is_err() {
            self.tx_give_up();
        }
        done
    }
}

impl<'p> Transaction<'p> {
    /// Snapshots `bytes` of a region from byte `at`, so that they may be changed.
    #[inline]
    pub fn snapshot(&self, region: &Region<'_>, at: usize, bytes: usize) -> Result<(), Failure> {
        region.snapshot(at, bytes)
    }

    /// Allocates an object, which a commit keeps and writes back.
    #[inline]
    pub fn alloc(&self, bytes: usize) -> Result<Object<'p>, Failure> {
        self.pool.tx_alloc(bytes)
    }

    /// Frees an object when the transaction commits.
    #[inline]
    pub fn free(&self, object: Object<'p>) -> Result<(), Failure> {
        self.pool.tx_free(object)
    }
}
