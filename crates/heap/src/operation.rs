//! A session's operation and its state, from its beginning to its end.

use core::cell::{Cell, RefCell};
use std::sync::Arc;

use firn_format::statistics::Counter;
use firn_media::Medium;

use crate::alloc::Cache;
use crate::inner::Inner;
use crate::relocation::Cycle;
use crate::relocation::retained::RetainedSnapshot;
use crate::stat_shard::StatShard;
use crate::tx::StoredLines;
use crate::tx::changes::Changes;
use crate::tx::raw_changes::Open;
use crate::tx::redo::Ring;

/// State that a session's operations share.
pub(crate) struct Core<M: Medium> {
    pub(crate) inner: Arc<Inner<M>>,
    pub(crate) lane: usize,
    /// The lines to which the open transaction may have stored: the only branch of its reads.
    pub(crate) stored: StoredLines,
    /// The address of the last object that the open transaction allocated and has not freed; zero for none.
    pub(crate) newest: Cell<u64>,
    /// The state of its raw transaction.
    pub(crate) open: RefCell<Open>,
    pub(crate) kept: RefCell<RetainedSnapshot>,
    pub(crate) state: RefCell<State>,
}

/// A session's mutable state.
pub(crate) struct State {
    pub(crate) ring: Ring,
    pub(crate) cache: Cache,
    pub(crate) changes: Changes,
    pub(crate) tally: StatShard,
}

impl<M: Medium> Core<M> {
    /// Begins an operation. Returns the cycle that moves objects, which stays the same until the
    /// operation ends.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Arc<Cycle<M>>> {
        if self.inner.safepoint.enter(&self.inner.medium, self.lane) {
            self.state.borrow_mut().tally.add(Counter::Stops, 1);
        }
        self.inner.collector.cycle(&self.inner.medium)
    }

    /// Publishes the session's counters, within an operation of its own, so that no recount runs meanwhile.
    pub(crate) fn publish(&self) {
        let inner = &*self.inner;
        inner.safepoint.enter(&inner.medium, self.lane);
        let tally = &mut self.state.borrow_mut().tally;
        tally.catch_up(inner.recounts());
        tally.publish(&inner.medium);
        inner.safepoint.leave(self.lane);
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.inner.safepoint.leave(self.lane);
    }
}

/// What an operation's views point to, for as long as it lasts. A view is a single pointer, so objects stay small.
pub(crate) struct Access<'s, M: Medium> {
    pub(crate) core: &'s Core<M>,
    pub(crate) inner: &'s Inner<M>,
    /// The cycle that moves objects.
    pub(crate) cycle: Option<Arc<Cycle<M>>>,
}

impl<'s, M: Medium> Access<'s, M> {
    /// Begins an operation of a session; the caller ends it.
    #[inline]
    pub(crate) fn enter(core: &'s Core<M>) -> Self {
        let cycle = core.enter();
        Self {
            core,
            inner: &core.inner,
            cycle,
        }
    }
}
