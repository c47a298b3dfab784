//! Reading without the read barrier, as in a heap whose objects never move: a baseline for measuring the barrier.
//!
//! While an [`Unbarriered`] lives no collection begins and no cycle is open, so nothing moves, and reads without the
//! barrier return the same as reads with it.

use std::sync::atomic::Ordering;

use firn_media::{Medium, Place};
use firn_units::VirtAddr;

use crate::error::Error;
use crate::inner::Inner;
use crate::locks::ReadLock;
use crate::operation::Core;
use crate::pool::Pool;
use crate::relocation::cycle::Cycle;
use crate::session::Session;
use crate::view::View;

/// A pool in which nothing moves while this lives.
pub struct Unbarriered<M: Medium>(Pool<M>);

impl<M: Medium> Pool<M> {
    /// Keeps collections away, so that objects can be read without the barrier. For measuring.
    ///
    /// Errors: [`Error::Collecting`] if a collection is under way or a cycle is open.
    pub fn unbarriered(&self) -> Result<Unbarriered<M>, Error> {
        let collector = &self.inner.collector;
        if collector.busy.swap(true, Ordering::AcqRel) {
            return Err(Error::Collecting);
        }
        // From here on its drop lets collections begin again.
        let unbarriered = Unbarriered(self.clone());
        match self.has_open_cycle() {
            false => Ok(unbarriered),
            true => Err(Error::Collecting),
        }
    }
}

impl<M: Medium> Unbarriered<M> {
    /// Begins a reading operation of a session of this pool.
    ///
    /// # Panics
    /// If the session belongs to another pool.
    #[inline]
    pub fn guard<'s>(&'s self, session: &'s mut Session<M>) -> UnbarrieredGuard<'s, M> {
        let core = &session.core;
        assert!(core::ptr::eq(&*core.inner, &*self.0.inner), "one pool");
        core.inner.safepoint.enter(&core.inner.medium, core.lane);
        let inner = &core.inner;
        UnbarrieredGuard { core, inner }
    }
}

impl<M: Medium> Drop for Unbarriered<M> {
    fn drop(&mut self) {
        let collector = &self.0.inner.collector;
        collector.busy.store(false, Ordering::Release);
    }
}

/// A reading operation without the barrier.
pub struct UnbarrieredGuard<'s, M: Medium> {
    core: &'s Core<M>,
    inner: &'s Inner<M>,
}

impl<M: Medium> UnbarrieredGuard<'_, M> {
    /// The view through which objects are read.
    #[inline]
    pub fn view(&self) -> UnbarrieredReading<'_, M> {
        UnbarrieredReading { guard: self }
    }
}

impl<M: Medium> Drop for UnbarrieredGuard<'_, M> {
    fn drop(&mut self) {
        self.core.leave();
    }
}

/// Reads objects as they are in place, where nothing moves.
pub struct UnbarrieredReading<'g, M: Medium> {
    guard: &'g UnbarrieredGuard<'g, M>,
}

impl<M: Medium> Clone for UnbarrieredReading<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Medium> Copy for UnbarrieredReading<'_, M> {}

impl<'g, M: Medium> View<'g> for UnbarrieredReading<'g, M> {
    type Medium = M;

    #[inline(always)]
    fn inner(self) -> &'g Inner<M> {
        self.guard.inner
    }

    #[inline(always)]
    fn cycle(self) -> Option<&'g Cycle<M>> {
        None
    }

    #[inline(always)]
    fn load_word(self, place: M::Place<'g>, byte: u32) -> u64 {
        place.load_u64(byte)
    }

    #[inline]
    fn load_range(self, at: VirtAddr, into: &mut [u8]) {
        self.guard.inner.medium.load_bytes(at, into);
    }

    #[inline(always)]
    fn append_range(self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        self.guard.inner.medium.append_bytes(at, len, into);
    }

    fn lock_shared(self, id: u64) -> Result<ReadLock<'g, M>, Error> {
        let inner = self.guard.inner;
        ReadLock::take(&inner.medium, &inner.locks, self.guard.core.lane, id)
    }
}
