//! Transactions from their beginning to commit or rollback.

use core::marker::PhantomData;

use firn_format::superblock::LogKind;
use firn_media::{Medium, Ticket};

use super::{Tx, commit};
use crate::error::Error;
use crate::operation::{Access, Core};

/// Runs one attempt of a transaction.
pub(crate) fn run<M, R, E, F>(core: &Core<M>, body: &mut F) -> Result<(R, Ticket), E>
where
    M: Medium,
    E: From<Error>,
    F: for<'t> FnMut(Tx<'t, M>) -> Result<R, E>,
{
    let mut open = OpenTransaction::begin(core)?;
    let result = body(open.tx())?;
    let ticket = open.commit_deferred()?;
    Ok((result, ticket))
}

/// A transaction that is open until it is committed or dropped, for programs in other languages, which cannot pass a
/// closure. Dropping it rolls back, and ends the operation.
pub struct OpenTransaction<'s, M: Medium> {
    access: Access<'s, M>,
    done: bool,
}

impl<'s, M: Medium> OpenTransaction<'s, M> {
    #[inline(always)]
    pub(crate) fn begin(core: &'s Core<M>) -> Result<Self, Error> {
        if !core.inner.writable {
            return Err(Error::ReadOnly);
        }
        core.inner.check_usable()?;
        if core.inner.log != LogKind::Redo {
            let (what, needs) = (
                "a typed transaction",
                "a pool that was opened with a redo log",
            );
            return Err(Error::WrongKind { what, needs });
        }
        Ok(Self {
            access: Access::enter(core),
            done: false,
        })
    }

    /// The transaction, through which objects are read, stored to and allocated.
    ///
    /// # Panics
    ///
    /// After [`OpenTransaction::commit_deferred`].
    #[inline]
    pub fn tx(&self) -> Tx<'_, M> {
        assert!(!self.done, "the transaction is over");
        Tx {
            access: &self.access,
            only_this: PhantomData,
        }
    }

    /// Commits. Durable on return, with one fence; on a medium that gathers commits, as durable as its level says.
    ///
    /// Errors and crashes: as [`crate::Session::transaction`], but nothing is run again: after [`Error::Conflict`] it
    /// is rolled back.
    pub fn commit(mut self) -> Result<(), Error> {
        let core = self.access.core;
        let ticket = self.commit_deferred()?;
        // Nobody else waits for the disk: the operation and its locks end first.
        drop(self);
        let medium = &core.inner.medium;
        Ok(medium.wait_at(ticket, medium.level())?)
    }

    /// Commits a transaction in its place, because moving it would take longer than the commit itself. Whatever is
    /// returned, the transaction is over; drop it. On a medium that gathers commits it is durable when its ticket is
    /// ([`firn_media::Memory::wait_at`]): wait for that when the transaction is dropped.
    ///
    /// Errors and crashes: as [`OpenTransaction::commit`].
    ///
    /// # Panics
    ///
    /// If it is over already.
    #[inline]
    pub fn commit_deferred(&mut self) -> Result<Ticket, Error> {
        assert!(!self.done, "the transaction is over");
        let Access { core, cycle, .. } = &self.access;
        let core = *core;
        let mut state = core.state.borrow_mut();
        let ours = core.inner.check_usable();
        let commit = |()| commit::commit(&core.inner, cycle.as_deref(), core.lane, &mut state);
        let result = ours.and_then(commit);
        if result.is_err() {
            commit::roll_back(&core.inner, &mut state);
        }
        drop(state);
        // Nobody waits for this operation while it waits for a disk.
        self.leave();
        result.map(|()| core.inner.medium.commit())
    }

    /// Ends the operation.
    #[inline]
    fn leave(&mut self) {
        self.done = true;
        let core = self.access.core;
        core.stored.clear();
        core.newest.set(0);
        core.leave();
    }
}

impl<M: Medium> Drop for OpenTransaction<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let core = self.access.core;
        commit::roll_back(&core.inner, &mut core.state.borrow_mut());
        self.leave();
    }
}
