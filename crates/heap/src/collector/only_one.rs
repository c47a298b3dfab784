//! One collection at a time.

use std::sync::atomic::Ordering;

use firn_media::Medium;

use crate::error::Error;
use crate::inner::Inner;

/// The right to collect, or to exclude collections. One holder at a time.
pub(crate) struct OnlyOne<'p, M: Medium>(pub(super) &'p Inner<M>);

impl<'p, M: Medium> OnlyOne<'p, M> {
    /// Errors: the right is taken; the pool is closed.
    pub(crate) fn of(inner: &'p Inner<M>) -> Result<Self, Error> {
        inner.check_usable()?;
        if inner.collector.busy.swap(true, Ordering::AcqRel) {
            return Err(Error::Collecting);
        }
        let only = Self(inner);
        match inner.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed),
            false => Ok(only),
        }
    }
}

impl<M: Medium> Drop for OnlyOne<'_, M> {
    fn drop(&mut self) {
        self.0.collector.busy.store(false, Ordering::Release);
    }
}
