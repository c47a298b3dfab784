//! Operations of `firn.h`: reading, which counts its begins, and transactions with parts.

use core::cell::RefMut;
use core::mem::transmute;

use firn_heap::{Guard, OpenTransaction, ReadLock, Reading, Savepoint, Tx, View};

use firn_mapped::Mapped;
use firn_media::Ticket;

use super::{Open, Operated};
use crate::status::{Failure, Outcome, Status};

/// What a session of `firn.h` has open.
pub(crate) type Typed = Operated<Read, Transaction>;

/// An operation that reads.
pub(crate) struct Read {
    // In front of the guard: given back before the operation ends.
    locks: Vec<ReadLock<'static, Mapped>>,
    guard: Guard<'static, Mapped>,
    /// Begins without an end.
    depth: u32,
}

/// A transaction.
pub(crate) struct Transaction {
    /// Parts of it that are open, the innermost last. In front of the transaction: rolled back before that ends.
    parts: Vec<Part>,
    open: OpenTransaction<'static, Mapped>,
    /// The first failure outside of its parts.
    failed: Option<Failure>,
    /// Begins of reading without an end.
    reads: u32,
}

struct Part {
    savepoint: Savepoint<'static, Mapped>,
    failed: Option<Failure>,
}

/// What a call has begun or ended.
pub(crate) enum Of {
    /// The whole operation.
    All,
    /// Something within it.
    Part,
}

impl Read {
    #[inline(always)]
    pub(crate) fn view(&self) -> Reading<'_, Mapped> {
        self.guard.view()
    }

    /// Takes a lock, to the end of the operation.
    fn lock(&mut self, lock: u64) -> Outcome<()> {
        let taken = self.guard.view().lock_shared(lock)?;
        // SAFETY: the lock refers to the pool's table of locks, which every session of the pool keeps alive, and not to
        // the guard. It is dropped in front of the guard, which `Operated` drops before the session.
        let taken: ReadLock<'static, Mapped> = unsafe { transmute(taken) };
        self.locks.push(taken);
        Ok(())
    }
}

impl Transaction {
    #[inline(always)]
    pub(crate) fn tx(&self) -> Tx<'_, Mapped> {
        self.open.tx()
    }

    fn begin_part(&mut self) {
        let savepoint = self.open.tx().savepoint();
        // SAFETY: the savepoint refers to the session, which does not move, and not to the transaction that does. It is
        // dropped or kept by the call that ends its part, or in front of the transaction.
        let savepoint: Savepoint<'static, Mapped> = unsafe { transmute(savepoint) };
        let failed = None;
        self.parts.push(Part { savepoint, failed });
    }

    fn fail(&mut self, failure: &Failure) {
        let failed = match self.parts.last_mut() {
            Some(part) => &mut part.failed,
            None => &mut self.failed,
        };
        failed.get_or_insert_with(|| failure.clone());
    }
}

/// Does something with the view of the operation that is open, whichever it is.
macro_rules! with_view {
    ($session:expr, |$view:ident| $body:expr) => {
        match &*$session.operation.open() {
            $crate::operation::Open::Reading(read) => {
                let $view = read.view();
                $body
            }
            $crate::operation::Open::Transaction(transaction) => {
                let $view = transaction.tx();
                $body
            }
            _ => Err($crate::operation::outside()),
        }
    };
}
pub(crate) use with_view;

#[cold]
pub(crate) fn outside() -> Failure {
    Failure::misuse("no operation is open; call firn_read_begin or firn_tx_begin first")
}

#[cold]
fn no_transaction() -> Failure {
    Failure::misuse("no transaction is open; call firn_tx_begin first")
}

impl Typed {
    fn changing(&self) -> RefMut<'_, Open<Read, Transaction>> {
        self.open.borrow_mut()
    }

    /// Begins an operation that reads, or one within the operation that is open. `begun` is told whether objects are
    /// being moved, if it is an operation of its own.
    #[inline]
    pub(crate) fn begin_read(&self, begun: impl FnOnce(bool)) -> Outcome<()> {
        self.begin_or(
            self.changing(),
            |open, session| {
                let guard = session.guard();
                begun(guard.view().cycle().is_some());
                *open = Open::Reading(Read {
                    locks: Vec::new(),
                    guard,
                    depth: 1,
                });
                Ok(())
            },
            |open| {
                match open {
                    Open::Reading(read) => read.depth += 1,
                    Open::Transaction(transaction) => transaction.reads += 1,
                    Open::Idle | Open::Closed => return Err(outside()),
                }
                Ok(())
            },
        )
    }

    #[inline]
    pub(crate) fn end_read(&self) -> Outcome<Of> {
        let mut open = self.changing();
        match &mut *open {
            Open::Reading(read) if read.depth > 1 => read.depth -= 1,
            Open::Reading(_) => {
                *open = Open::Idle;
                return Ok(Of::All);
            }
            Open::Transaction(transaction) if transaction.reads > 0 => transaction.reads -= 1,
            _ => {
                return Err(Failure::misuse(
                    "no reading operation is open; every firn_read_end needs a firn_read_begin",
                ));
            }
        }
        Ok(Of::Part)
    }

    /// Begins a transaction, or a part of the one that is open. `begun` is told as by [`Self::begin_read`].
    #[inline]
    pub(crate) fn begin_transaction(&self, begun: impl FnOnce(bool)) -> Outcome<()> {
        self.begin_or(
            self.changing(),
            |open, session| {
                // SAFETY: what is read through a transaction of this session is stored through no other one: programs
                // have pointers, and each is looked at when it is used.
                let transaction = unsafe { session.begin() }?;
                begun(transaction.tx().cycle().is_some());
                *open = Open::Transaction(Transaction {
                    parts: Vec::new(),
                    open: transaction,
                    failed: None,
                    reads: 0,
                });
                Ok(())
            },
            |open| match open {
                Open::Transaction(transaction) => {
                    transaction.begin_part();
                    Ok(())
                }
                Open::Reading(_) => Err(Failure::misuse(
                    "a transaction cannot begin inside a reading operation; end that first",
                )),
                Open::Idle | Open::Closed => Err(outside()),
            },
        )
    }

    /// Commits the innermost part, or the transaction; one in which a call failed is rolled back. Whichever it is has
    /// ended. The transaction is durable when its ticket is.
    #[inline]
    pub(crate) fn commit(&self) -> (Of, Outcome<Ticket>) {
        let mut open = self.changing();
        let Open::Transaction(transaction) = &mut *open else {
            return (Of::Part, Err(no_transaction()));
        };
        if let Some(part) = transaction.parts.pop() {
            let kept = match part.failed {
                None => {
                    part.savepoint.keep();
                    Ok(Ticket::default())
                }
                Some(failure) => Err(failure),
            };
            return (Of::Part, kept);
        }
        let result = match transaction.failed.take() {
            None => transaction.open.commit_deferred().map_err(Failure::from),
            Some(failure) => Err(failure),
        };
        *open = Open::Idle;
        (Of::All, result)
    }

    /// Rolls the innermost part back, or the transaction.
    pub(crate) fn abort(&self) -> Outcome<Of> {
        let mut open = self.changing();
        let Open::Transaction(transaction) = &mut *open else {
            return Err(no_transaction());
        };
        if transaction.parts.pop().is_some() {
            return Ok(Of::Part);
        }
        *open = Open::Idle;
        Ok(Of::All)
    }

    /// Transactions and parts that are open.
    pub(crate) fn depth(&self) -> usize {
        match &*self.open() {
            Open::Transaction(transaction) => 1 + transaction.parts.len(),
            _ => 0,
        }
    }

    /// Does something in the transaction. If it fails the transaction cannot be committed.
    #[inline]
    pub(crate) fn change<R>(&self, body: impl FnOnce(Tx<'_, Mapped>) -> Outcome<R>) -> Outcome<R> {
        let mut open = self.changing();
        let Open::Transaction(transaction) = &mut *open else {
            return Err(no_transaction());
        };
        let result = body(transaction.tx());
        if let Err(failure) = &result {
            transaction.fail(failure);
        }
        result
    }

    /// Notes a failure: the transaction that is open, if one is, cannot be committed.
    #[cold]
    pub(crate) fn fail(&self, failure: &Failure) {
        if let Open::Transaction(transaction) = &mut *self.changing() {
            transaction.fail(failure);
        }
    }

    /// Notes that a call could not read because it would have had to wait: what the transaction did not see it
    /// cannot have taken into account.
    #[cold]
    pub(crate) fn failed_to_read(&self, failure: &Failure) {
        if failure.status() == Status::Conflict {
            self.fail(failure);
        }
    }

    /// Does something in an operation that reads.
    #[inline]
    pub(crate) fn reading<R>(
        &self,
        body: impl FnOnce(Reading<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        match &*self.open() {
            Open::Reading(read) => body(read.view()),
            Open::Transaction(_) => Err(Failure::misuse(
                "this call works only in reading operations; end the transaction first",
            )),
            Open::Idle | Open::Closed => Err(outside()),
        }
    }

    /// Takes a lock for reading, to the end of the operation.
    pub(crate) fn lock_shared(&self, lock: u64) -> Outcome<()> {
        match &mut *self.changing() {
            Open::Reading(read) => read.lock(lock),
            Open::Transaction(transaction) => {
                let taken = transaction.tx().lock_shared(lock).map(drop);
                let taken: Outcome<()> = taken.map_err(Failure::from);
                if let Err(failure) = &taken {
                    transaction.fail(failure);
                }
                taken
            }
            Open::Idle | Open::Closed => Err(outside()),
        }
    }
}
