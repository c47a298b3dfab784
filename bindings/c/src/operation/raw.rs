//! Operations of `firn/pmemobj.h`: the thread is inside from its first use of an object to its safepoint, and a
//! transaction begins and ends within.

use core::cell::{Ref, RefMut};
use core::mem::take;

use firn_heap::{OpenRawTx, RawGuard, RawTx};
use firn_mapped::Mapped;

use super::{Open, Operated};
use crate::status::{Failure, Outcome, Status};

type Reading = RawGuard<'static, Mapped>;
type Transaction = OpenRawTx<'static, Mapped>;

/// What a thread of a program for libpmemobj has open in a pool.
pub(crate) type Raw = Operated<Reading, Transaction>;

#[cold]
fn closed() -> Failure {
    Failure::misuse("the pool was closed; open it again")
}

#[cold]
fn no_transaction() -> Failure {
    Failure::misuse("no transaction is open; call this between TX_BEGIN and TX_END")
}

impl Raw {
    /// The operation, to be changed.
    ///
    /// Errors: the program's function that fills an object is running.
    fn changing(&self) -> Outcome<RefMut<'_, Open<Reading, Transaction>>> {
        self.open.try_borrow_mut().map_err(|_| {
            Failure::misuse("a constructor may not begin or end a transaction, nor allocate")
        })
    }

    /// Enters an operation if none is open.
    fn enter(&self) -> Outcome<()> {
        self.begin_or(
            self.changing()?,
            |open, session| {
                *open = Open::Reading(session.raw_guard()?);
                Ok(())
            },
            |open| match open {
                Open::Closed => Err(closed()),
                _ => Ok(()),
            },
        )
    }

    /// The thread's operation; enters one if none is open. As long as it is held, nothing begins or ends.
    #[inline]
    pub(crate) fn entered(&self) -> Outcome<Ref<'_, Open<Reading, Transaction>>> {
        if self.is_idle() {
            self.enter()?;
        }
        Ok(self.open())
    }

    /// Does something inside the thread's operation, which goes on; enters one if none is open.
    #[inline]
    pub(crate) fn inside<R>(
        &self,
        body: impl FnOnce(&RawGuard<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        match &*self.entered()? {
            Open::Reading(guard) => body(guard),
            Open::Transaction(open) => body(open.guard()),
            Open::Idle | Open::Closed => Err(closed()),
        }
    }

    /// Whether the thread is inside an operation without a transaction.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(&*self.open(), Open::Reading(_))
    }

    /// Errors: a transaction is open.
    pub(crate) fn check_no_transaction(&self) -> Outcome<()> {
        match self.is_in_transaction() {
            true => Err(Failure::new(
                Status::Busy,
                "a transaction is open in the pool; end it first",
            )),
            false => Ok(()),
        }
    }

    /// Errors: the operation cannot end now.
    pub(crate) fn check_end(&self) -> Outcome<()> {
        self.check_no_transaction()?;
        self.changing().map(drop)
    }

    /// Leaves the operation. A transaction that is open is rolled back.
    pub(crate) fn leave(&self) {
        let mut open = self.open.borrow_mut();
        if !matches!(&*open, Open::Closed) {
            *open = Open::Idle;
        }
    }

    /// Puts a transaction in the place of the operation.
    ///
    /// Errors: one is open; the log is damaged, and the operation has ended.
    #[inline]
    pub(crate) fn begin(&self) -> Outcome<()> {
        self.enter()?;
        let mut open = self.changing()?;
        match take(&mut *open) {
            Open::Reading(guard) => {
                *open = Open::Transaction(guard.begin()?);
                Ok(())
            }
            other => {
                *open = other;
                Err(Failure::misuse(
                    "a transaction is already open in this pool",
                ))
            }
        }
    }

    /// Does something in the open transaction.
    #[inline]
    pub(crate) fn in_transaction<R>(
        &self,
        body: impl FnOnce(RawTx<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        match &*self.open() {
            Open::Transaction(open) => body(open.tx()),
            _ => Err(no_transaction()),
        }
    }

    /// Commits the transaction or rolls it back. The operation goes on.
    ///
    /// Errors: none is open; it cannot be committed, and the operation has ended.
    #[inline]
    pub(crate) fn end(&self, commits: bool) -> Outcome<()> {
        let mut open = self.changing()?;
        match take(&mut *open) {
            Open::Transaction(transaction) => {
                *open = Open::Reading(match commits {
                    true => transaction.commit()?,
                    false => transaction.roll_back(),
                });
                Ok(())
            }
            other => {
                *open = other;
                Err(no_transaction())
            }
        }
    }
}
