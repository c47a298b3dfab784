//! Sessions: a thread's lane, its slots, and its operations.

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_format::lane::LANES;
use firn_media::{Level, Medium, Ticket};

use crate::error::Error;
use crate::inner::Inner;
use crate::operation::{Access, Core, State};
use crate::registration::unfinished;
use crate::roots::RootKey;
use crate::stat_shard::StatShard;
use crate::tx::changes::Changes;
use crate::tx::redo::Ring;
use crate::tx::{OpenTransaction, StoredLines, Tx};
use crate::view::{Reading, View};

/// A thread's access to a pool. It stays on the thread that opened it, because a fence covers only its own thread's
/// write-backs.
pub struct Session<M: Medium> {
    pub(crate) core: Core<M>,
    /// Keeps the session from being sent to another thread.
    not_send: PhantomData<*const ()>,
}

impl<M: Medium> Session<M> {
    /// Errors: every lane is in use; a migration is under way, or is unfinished.
    pub(crate) fn open(inner: &Arc<Inner<M>>) -> Result<Self, Error> {
        inner.check_usable()?;
        // Checked with the lanes locked: a migration takes them all away under this lock before it begins.
        let taken = {
            let mut lanes = inner.lanes.lock(&inner.medium);
            if lanes.migrating {
                return Err(Error::Migrating);
            }
            if let Some(begun) = inner.types.unfinished() {
                return Err(unfinished(&begun));
            }
            lanes.free.pop()
        };
        Self::on_lane(inner, taken)
    }

    /// A session of the migration that has the pool for itself.
    pub(crate) fn of_migration(inner: &Arc<Inner<M>>) -> Result<Self, Error> {
        let taken = inner.lanes.lock(&inner.medium).free.pop();
        Self::on_lane(inner, taken)
    }

    fn on_lane(inner: &Arc<Inner<M>>, taken: Option<(usize, Ring)>) -> Result<Self, Error> {
        let Some((lane, ring)) = taken else {
            return Err(Error::TooManySessions {
                open: inner.lane_count,
                most: LANES,
            });
        };
        if inner.writable
            && let Err(error) = inner.reserve_lane(lane)
        {
            inner.lanes.lock(&inner.medium).free.push((lane, ring));
            return Err(error);
        }
        inner.redo.activate(lane);
        inner.locks.session_opened(&inner.medium, lane);
        let state = State {
            ring,
            cache: inner.allocator.cache(lane),
            changes: Changes::new(lane),
            tally: StatShard::new(lane, inner.publish_every),
        };
        let core = Core {
            inner: Arc::clone(inner),
            lane,
            stored: StoredLines::default(),
            newest: Cell::new(0),
            open: RefCell::default(),
            kept: RefCell::default(),
            state: RefCell::new(state),
        };
        Ok(Self {
            core,
            not_send: PhantomData,
        })
    }

    /// Begins a reading operation.
    #[inline]
    pub fn guard(&mut self) -> Guard<'_, M> {
        Guard {
            access: Access::enter(&self.core),
        }
    }

    /// Reads inside a guard that ends with the closure.
    pub fn read<R>(&mut self, read: impl for<'g> FnOnce(Reading<'g, M>) -> R) -> R {
        let guard = self.guard();
        read(guard.view())
    }

    /// Runs a transaction: commits if `body` returns `Ok`, rolls back if it returns `Err` or panics. Durable on return,
    /// with one fence.
    ///
    /// `body` may run more than once: it runs again after [`Error::Conflict`], so its effects outside the pool should
    /// be harmless to repeat.
    ///
    /// Errors: the errors of `body`, and obstacles to logging the commit (a transaction too large, a full pool, a store
    /// through a damaged reference); the pool is then unchanged.
    /// Crash: before the fence nothing of the transaction takes effect, after it everything does.
    pub fn transaction<R, E, F>(&mut self, body: F) -> Result<R, E>
    where
        E: From<Error> + TransactionError,
        F: for<'t> FnMut(Tx<'t, M>) -> Result<R, E>,
    {
        let level = self.core.inner.medium.level();
        self.transaction_at(level, body)
    }

    /// As [`Session::transaction`], but the commit has come as far as `level` says when this returns, whatever the
    /// pool's own level is.
    ///
    /// Errors: as [`Session::transaction`], and [`Error::Medium`] if the device failed: memory then holds a commit that
    /// will never be durable, and every operation fails until the pool is opened again.
    pub fn transaction_at<R, E, F>(&mut self, level: Level, body: F) -> Result<R, E>
    where
        E: From<Error> + TransactionError,
        F: for<'t> FnMut(Tx<'t, M>) -> Result<R, E>,
    {
        let (result, ticket) = self.transaction_deferred(body)?;
        let come = self.core.inner.medium.wait_at(ticket, level);
        come.map_err(|failed| Error::from(failed).into())?;
        Ok(result)
    }

    /// Like [`Session::transaction`], but on media that group commits it returns before the commit is durable; the
    /// ticket says when it is ([`firn_media::Memory::wait_durable`]).
    pub fn transaction_deferred<R, E, F>(&mut self, mut body: F) -> Result<(R, Ticket), E>
    where
        E: From<Error> + TransactionError,
        F: for<'t> FnMut(Tx<'t, M>) -> Result<R, E>,
    {
        self.wait_for_room().map_err(E::from)?;
        let mut attempt = 0;
        loop {
            match crate::tx::run(&self.core, &mut body) {
                Err(error) if error.is_conflict() => {
                    self.core.inner.medium.pause(attempt);
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Waits for the medium before an operation begins, while nothing is held.
    #[inline(always)]
    pub(crate) fn wait_for_room(&self) -> Result<(), Error> {
        self.core.inner.wait_for_room()
    }

    /// Begins a transaction that stays open until it is ended.
    ///
    /// # Safety
    ///
    /// References that were read or allocated through one transaction may not be stored through another, of this or
    /// another pool: the compiler distinguishes transactions that are closures ([`Session::transaction`]), but not
    /// these. No memory of the process is at risk, only the meaning of the pool's data.
    ///
    /// Errors: a pool that is read only, or was opened with an undo log.
    #[allow(
        unsafe_code,
        reason = "unsafe to call for what it asks of the caller; safe inside"
    )]
    #[inline]
    pub unsafe fn begin(&mut self) -> Result<OpenTransaction<'_, M>, Error> {
        self.wait_for_room()?;
        OpenTransaction::begin(&self.core)
    }

    /// Publishes this session's counters on the statistics page now.
    pub fn publish_statistics(&mut self) {
        self.core.publish();
    }

    /// The lane to which this session logs.
    pub fn lane(&self) -> usize {
        self.core.lane
    }
}

/// Errors of transactions, including conflicts, after which a transaction is run again.
pub trait TransactionError {
    /// Whether the transaction should run again.
    fn is_conflict(&self) -> bool;
}

impl TransactionError for Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict)
    }
}

impl<M: Medium> Drop for Session<M> {
    fn drop(&mut self) {
        // In a forked child the lane is unused, and the threads that held locks do not exist.
        if !self.core.inner.medium.is_ours() {
            return self.core.state.get_mut().ring.detach();
        }
        // Nothing more is written to an abandoned pool.
        if self.core.inner.writable && !self.core.inner.closed.load(Ordering::Acquire) {
            self.core.publish();
        }
        let Core {
            inner, lane, state, ..
        } = &mut self.core;
        let inner = &**inner;
        let state = state.get_mut();
        // Inside an operation, so that the collector leaves the session's active runs alone meanwhile. This fails only
        // on a damaged frame word, and then the run's slots are never allocated again.
        inner.safepoint.enter(&inner.medium, *lane);
        let _ = inner.allocator.return_all(&inner.medium, &state.cache);
        inner.safepoint.leave(*lane);
        let mut ring = core::mem::take(&mut state.ring);
        ring.detach();
        inner.locks.session_ended(*lane);
        inner.lanes.lock(&inner.medium).free.push((*lane, ring));
    }
}

/// A reading operation. References and objects that are read in it cannot outlive it.
pub struct Guard<'s, M: Medium> {
    access: Access<'s, M>,
}

impl<M: Medium> Guard<'_, M> {
    /// The view through which objects are read.
    #[inline]
    pub fn view(&self) -> Reading<'_, M> {
        Reading::new(&self.access)
    }

    /// Ends the operation and begins another, so that a phase change need not wait for a long scan. Everything that was
    /// read before must be read again.
    pub fn renew(&mut self) {
        self.access.core.leave();
        self.access.cycle = self.access.core.enter();
    }

    /// The object of a root, see [`View::root`].
    pub fn root<T: crate::Target>(
        &self,
        root: impl RootKey<T>,
    ) -> Result<crate::Obj<'_, T, Reading<'_, M>>, Error> {
        self.view().root(root)
    }
}

impl<M: Medium> Drop for Guard<'_, M> {
    fn drop(&mut self) {
        self.access.core.leave();
    }
}
