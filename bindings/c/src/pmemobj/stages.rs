//! The stages of a thread's transaction, as libpmemobj has them.
//!
//! ```text
//!   None --begin--> Work --commit--> OnCommit --+
//!                    |                          +--> Finally --end--> None, or Work of the part around
//!                    +--abort, refused--> OnAbort
//! ```
//!
//! A thread has one transaction at a time, with parts within it. The stage is that of the innermost part.

use core::cell::{Cell, RefCell};
use core::ffi::{c_int, c_void};
use core::mem::take;
use core::ptr;

use super::locks::Orphans;
use super::pools::Pobj;
use crate::handle_pool::Handed;
use crate::status::{Failure, Outcome};

/// `enum pobj_tx_stage`.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    #[default]
    None,
    Work,
    OnCommit,
    OnAbort,
    Finally,
}

/// `pmemobj_tx_callback`.
pub type Callback = extern "C" fn(pool: Handed<Pobj>, stage: Stage, argument: *mut c_void);
/// Gives back a lock that a transaction holds, which was taken with it.
pub type Unlock = extern "C" fn(lock: *mut c_void);

/// A part of a transaction.
struct Part {
    /// Where an abort jumps to.
    environment: *mut c_void,
    /// The first failure in it.
    failed: c_int,
}

/// A thread's transaction, which has no parts while none is open.
struct Transaction {
    pool: Handed<Pobj>,
    /// The outermost first.
    parts: Vec<Part>,
    callback: Option<(Callback, *mut c_void)>,
    /// Held to the end of the outermost.
    locks: Vec<(*mut c_void, Unlock)>,
    /// Locks in what it frees.
    orphans: Orphans,
}

/// A thread's transaction, and its stage.
pub(crate) struct Stages {
    stage: Cell<Stage>,
    /// What `pmemobj_tx_errno` says.
    failed: Cell<c_int>,
    open: RefCell<Transaction>,
}

/// A part that has ended.
pub(crate) struct Ended {
    pub(crate) failed: c_int,
    /// The transaction's pool, if that was its outermost part.
    pub(crate) pool: Option<Handed<Pobj>>,
}

impl Stages {
    pub(crate) const fn new() -> Self {
        Self {
            stage: Cell::new(Stage::None),
            failed: Cell::new(0),
            open: RefCell::new(Transaction {
                pool: Handed::NULL,
                parts: Vec::new(),
                callback: None,
                locks: Vec::new(),
                orphans: Orphans::NONE,
            }),
        }
    }

    #[inline(always)]
    pub(crate) fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(crate) fn errno(&self) -> c_int {
        self.failed.get()
    }

    /// Does something with the thread's transaction.
    #[inline(always)]
    fn with<R>(&self, with: impl FnOnce(&mut Transaction) -> R) -> R {
        with(&mut self.open.borrow_mut())
    }

    /// The pool of the transaction that is at work.
    #[inline(always)]
    pub(crate) fn at_work(&self) -> Outcome<Handed<Pobj>> {
        match self.stage.get() {
            Stage::Work => Ok(self.with(|open| open.pool)),
            _ => Err(Failure::misuse(
                "no transaction is in its work stage; call this after TX_BEGIN and before TX_ONABORT or similar",
            )),
        }
    }

    /// Begins a transaction, by `begin`, or a part of the one that is open.
    #[inline]
    pub(crate) fn begin(
        &self,
        pool: Handed<Pobj>,
        environment: *mut c_void,
        callback: Option<(Callback, *mut c_void)>,
        begin: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<()> {
        self.with(|open| {
            match open.parts.is_empty() {
                true => {
                    begin()?;
                    (open.pool, open.callback) = (pool, callback);
                }
                false => self.check_within(open, pool, callback.is_some())?,
            }
            let failed = 0;
            open.parts.push(Part {
                environment,
                failed,
            });
            self.stage.set(Stage::Work);
            Ok(())
        })
    }

    /// Errors: a transaction cannot begin within the one that is open.
    fn check_within(
        &self,
        outer: &Transaction,
        pool: Handed<Pobj>,
        has_callback: bool,
    ) -> Outcome<()> {
        if self.stage.get() != Stage::Work {
            return Err(Failure::misuse(
                "a nested transaction can begin only in the work stage of the outer one",
            ));
        }
        if outer.pool != pool {
            return Err(Failure::invalid(
                "a nested transaction must be in the same pool",
            ));
        }
        match has_callback {
            true => Err(Failure::invalid(
                "only the outermost transaction can have a callback",
            )),
            false => Ok(()),
        }
    }

    /// What could not begin is aborted at once: its stages ONABORT and FINALLY run.
    pub(crate) fn refuse(&self, pool: Handed<Pobj>, environment: *mut c_void, failed: c_int) {
        self.with(|open| {
            if open.parts.is_empty() {
                (open.pool, open.callback) = (pool, None);
            }
            open.parts.push(Part {
                environment,
                failed,
            });
        });
        self.stage.set(Stage::OnAbort);
    }

    /// Whether the innermost part is the outermost.
    #[inline(always)]
    pub(crate) fn is_outermost(&self) -> bool {
        self.with(|open| open.parts.len() == 1)
    }

    /// The innermost part has failed.
    pub(crate) fn fail(&self, failed: c_int) {
        self.with(|open| {
            if let Some(part) = open.parts.last_mut() {
                part.failed = failed;
            }
        });
        self.failed.set(failed);
    }

    pub(crate) fn set_errno(&self, failed: c_int) {
        self.failed.set(failed);
    }

    /// Goes to a stage, and tells the program of it.
    #[inline(always)]
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.set(stage);
        self.call_back();
    }

    /// Tells the program of the stage, if it asked for that.
    #[inline(always)]
    pub(crate) fn call_back(&self) {
        let (told, pool) = self.with(|open| (open.callback, open.pool));
        if let Some((callback, argument)) = told {
            callback(pool, self.stage.get(), argument);
        }
    }

    /// Goes on to the stage behind one that is not at work.
    #[inline(always)]
    pub(crate) fn go_on(&self) {
        match self.stage.get() {
            Stage::Work => {}
            Stage::OnCommit | Stage::OnAbort => self.stage.set(Stage::Finally),
            Stage::Finally | Stage::None => self.stage.set(Stage::None),
        }
    }

    /// Ends the innermost part, which is not at work. `None` if there is none.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<Ended> {
        if self.stage.get() == Stage::Work {
            return None;
        }
        let ended = self.with(|open| {
            let part = open.parts.pop()?;
            Some(Ended {
                failed: part.failed,
                pool: open.parts.is_empty().then_some(open.pool),
            })
        })?;
        self.failed.set(ended.failed);
        self.stage.set(match ended.pool {
            Some(_) => Stage::None,
            None => Stage::Work,
        });
        Some(ended)
    }

    /// What the transaction that has ended leaves: locks that it held, and those in what it freed.
    #[inline(always)]
    pub(crate) fn left(&self) -> (Vec<(*mut c_void, Unlock)>, Orphans) {
        self.with(|open| {
            open.callback = None;
            (take(&mut open.locks), take(&mut open.orphans))
        })
    }

    pub(crate) fn keep_lock(&self, lock: *mut c_void, unlock: Unlock) {
        self.with(|open| open.locks.push((lock, unlock)));
    }

    pub(crate) fn holds(&self, lock: *mut c_void) -> bool {
        self.with(|open| open.locks.iter().any(|(held, _)| *held == lock))
    }

    pub(crate) fn add_orphans(&self, orphans: Orphans) {
        self.with(|open| open.orphans.add(orphans));
    }

    /// Where the innermost part's abort jumps to; null if it does not.
    pub(crate) fn environment(&self) -> *mut c_void {
        self.with(|open| {
            let part = open.parts.last();
            part.map_or(ptr::null_mut(), |part| part.environment)
        })
    }
}

#[cfg(test)]
mod tests;
