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
use super::pools::{Pobj, Pop};
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
pub type Callback = extern "C" fn(pool: Pop, stage: Stage, argument: *mut c_void);
/// A callback, and the program's argument for it.
pub(crate) type Told = (Callback, *mut c_void);

/// Gives back a lock that a transaction holds, which was taken with it.
pub type Unlock = extern "C" fn(lock: *mut c_void);

/// A part of a transaction.
struct Part {
    /// Where an abort jumps to.
    environment: *mut c_void,
    /// The first failure in it.
    failed: c_int,
    /// What a failed call does.
    behavior: Behavior,
}

/// `enum pobj_tx_failure_behavior`.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Behavior {
    /// It aborts the part.
    #[default]
    Abort,
    /// It returns its failure.
    Return,
}

/// A thread's transaction, which has no parts while none is open.
struct Transaction {
    pool: Handed<Pobj>,
    /// What the program calls it.
    pop: Pop,
    /// The outermost first.
    parts: Vec<Part>,
    callback: Option<Told>,
    /// Held to the end of the outermost.
    locks: Vec<(*mut c_void, Unlock)>,
    /// Locks in what it frees.
    orphans: Orphans,
    /// The program's word.
    user_data: *mut c_void,
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

/// What a transaction that has ended leaves.
pub(crate) struct Left {
    /// Locks that it held, in the order in which they were taken.
    pub(crate) locks: Vec<(*mut c_void, Unlock)>,
    /// Locks in what it freed.
    pub(crate) orphans: Orphans,
    /// The callback, which is told last that no transaction is open.
    pub(crate) callback: Option<Told>,
}

impl Transaction {
    /// The innermost part's, or the default.
    fn behavior(&self) -> Behavior {
        self.parts
            .last()
            .map(|part| part.behavior)
            .unwrap_or_default()
    }
}

impl Stages {
    pub(crate) const fn new() -> Self {
        Self {
            stage: Cell::new(Stage::None),
            failed: Cell::new(0),
            open: RefCell::new(Transaction {
                pool: Handed::NULL,
                pop: Pop::NULL,
                parts: Vec::new(),
                callback: None,
                locks: Vec::new(),
                orphans: Orphans::NONE,
                user_data: ptr::null_mut(),
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

    /// Begins a transaction, by `begin`, which says what the program calls its pool, or a part of the one that is open.
    /// A callback that a part brings is the transaction's from then on.
    #[inline]
    pub(crate) fn begin(
        &self,
        pool: Handed<Pobj>,
        environment: *mut c_void,
        callback: Option<Told>,
        begin: impl FnOnce() -> Outcome<Pop>,
    ) -> Outcome<()> {
        self.with(|open| {
            match open.parts.is_empty() {
                true => {
                    open.pop = begin()?;
                    (open.pool, open.callback) = (pool, callback);
                    open.user_data = ptr::null_mut();
                }
                false => {
                    self.check_within(open, pool, callback)?;
                    open.callback = open.callback.or(callback);
                }
            }
            let behavior = open.behavior();
            open.parts.push(Part {
                environment,
                failed: 0,
                behavior,
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
        callback: Option<Told>,
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
        match (outer.callback, callback) {
            (Some((known, of)), Some((other, argument)))
                if !ptr::fn_addr_eq(known, other) || of != argument =>
            {
                Err(Failure::misuse(
                    "the transaction has another callback already",
                ))
            }
            _ => Ok(()),
        }
    }

    /// What could not begin is aborted at once: its stages ONABORT and FINALLY run.
    pub(crate) fn refuse(&self, pool: Handed<Pobj>, environment: *mut c_void, failed: c_int) {
        self.with(|open| {
            if open.parts.is_empty() {
                (open.pool, open.pop, open.callback) = (pool, Pop::NULL, None);
            }
            let behavior = open.behavior();
            open.parts.push(Part {
                environment,
                failed,
                behavior,
            });
        });
        self.stage.set(Stage::OnAbort);
    }

    pub(crate) fn behavior(&self) -> Behavior {
        self.with(|open| open.behavior())
    }

    /// Says what a failed call does in the innermost part, and in parts that begin within it.
    pub(crate) fn set_behavior(&self, behavior: Behavior) {
        self.with(|open| {
            if let Some(part) = open.parts.last_mut() {
                part.behavior = behavior;
            }
        });
    }

    pub(crate) fn user_data(&self) -> *mut c_void {
        self.with(|open| open.user_data)
    }

    pub(crate) fn set_user_data(&self, data: *mut c_void) {
        self.with(|open| open.user_data = data);
    }

    /// Whether a transaction is open, in whichever stage.
    pub(crate) fn is_open(&self) -> bool {
        self.with(|open| !open.parts.is_empty())
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

    /// Tells the program of a stage of the outermost part, if it asked for that.
    #[inline(always)]
    pub(crate) fn call_back(&self) {
        let (told, pop) = self.with(|open| match open.parts.len() {
            1 => (open.callback, open.pop),
            _ => (None, Pop::NULL),
        });
        if let Some((callback, argument)) = told {
            callback(pop, self.stage.get(), argument);
        }
    }

    /// Goes on to the stage behind one that is not at work.
    #[inline(always)]
    pub(crate) fn go_on(&self) {
        match self.stage.get() {
            Stage::Work => {}
            Stage::OnCommit | Stage::OnAbort => self.enter(Stage::Finally),
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

    #[inline(always)]
    pub(crate) fn left(&self) -> Left {
        self.with(|open| Left {
            locks: take(&mut open.locks),
            orphans: take(&mut open.orphans),
            callback: open.callback.take(),
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
