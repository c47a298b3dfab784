//! A thread's operation on a pool, between two calls of the program.
//!
//! The heap says by lifetimes that a session has one operation at a time, which ends before the session does. A program
//! in C begins its operation in one call and ends it in another, so no lifetime of Rust's spans it. [`Operated`] owns
//! both, and its states say what the lifetimes said:
//!
//! ```text
//!              begin                    begin, inside an operation that reads
//!      Idle ----------> Reading ------------------------------------> Transaction
//!       | ^                | ^           (only libpmemobj's programs)      |
//!       | +----------------+ +---------------------------------------------+
//!       |    end, or a failure                 commit, roll back
//!       v
//!     Closed             (firn.h goes from Idle to Transaction, and back to Idle)
//! ```
//!
//! An operation borrows the session for `'static`, which is longer than the session lives. What makes that right is
//! all in this folder:
//!
//! * The session lies in memory of its own, whose address does not change when its owner moves. Only a borrow that is
//!   lent by [`Operated::begin_or`] leads there, and that lends it in state `Idle`, when no other one is left.
//! * The memory is freed in state `Closed`, by [`Operated::close`], which drops the operation first; so does the drop.
//! * Outside of the folder nobody sees `'static`: guards, transactions, parts and locks are private, and views and
//!   transactions are handed on with the lifetime of the call that asked.
//!
//! `typed` has the operations of `firn.h`, `raw` those of `firn/pmemobj.h`, `owner` says which thread has one.

mod owner;
mod raw;
#[cfg(test)]
mod tests;
mod typed;

use core::cell::{Ref, RefCell, RefMut};
use core::ptr::NonNull;

use firn_heap::Session;
use firn_mapped::Mapped;

pub(crate) use owner::this_thread;
pub(crate) use raw::Raw;
pub(crate) use typed::{Of, Typed, outside, with_view};

use crate::status::Outcome;

/// A session of the heap's, and the operation that its thread has open.
pub(crate) struct Operated<R, T> {
    open: RefCell<Open<R, T>>,
    /// Of a box, until the state is [`Open::Closed`].
    session: NonNull<Session<Mapped>>,
}

/// The state of a thread's operation.
#[derive(Default)]
pub(crate) enum Open<R, T> {
    /// No operation is open.
    #[default]
    Idle,
    /// One that reads, and with libpmemobj's programs stores in place.
    Reading(R),
    Transaction(T),
    /// The session has ended.
    Closed,
}

impl<R, T> Operated<R, T> {
    pub(crate) fn new(session: Session<Mapped>) -> Self {
        Self {
            open: RefCell::new(Open::Idle),
            session: NonNull::from(Box::leak(Box::new(session))),
        }
    }

    /// The operation as it is now.
    #[inline(always)]
    pub(crate) fn open(&self) -> Ref<'_, Open<R, T>> {
        self.open.borrow()
    }

    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(&*self.open(), Open::Idle)
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(&*self.open(), Open::Closed)
    }

    #[inline(always)]
    pub(crate) fn is_in_transaction(&self) -> bool {
        matches!(&*self.open(), Open::Transaction(_))
    }

    /// Lends the session to `begin`, which puts an operation in the place of none. Where one is open, or the session has
    /// ended, `within` says what becomes of that. `open` is this one's own.
    #[inline(always)]
    fn begin_or<B>(
        &self,
        mut open: RefMut<'_, Open<R, T>>,
        begin: impl FnOnce(&mut Open<R, T>, &'static mut Session<Mapped>) -> Outcome<B>,
        within: impl FnOnce(&mut Open<R, T>) -> Outcome<B>,
    ) -> Outcome<B> {
        if !matches!(&*open, Open::Idle) {
            return within(&mut open);
        }
        // SAFETY: `new` boxed the session, and `close`, which frees it, leaves the state Closed. In state Idle the last
        // operation has been dropped, which was all that borrowed it; the next one is what `begin` makes now, in `open`.
        let session = unsafe { &mut *self.session.as_ptr() };
        begin(&mut open, session)
    }

    /// Ends the operation, if one is open, and then the session.
    pub(crate) fn close(&self) {
        let mut open = self.open.borrow_mut();
        if matches!(&*open, Open::Closed) {
            return;
        }
        *open = Open::Closed;
        // SAFETY: it came from a box in `new`, and is freed once: the state was not Closed, and is from now on. The
        // operation that borrowed it was dropped by the line above.
        drop(unsafe { Box::from_raw(self.session.as_ptr()) });
    }
}

impl<R, T> Drop for Operated<R, T> {
    fn drop(&mut self) {
        self.close();
    }
}
