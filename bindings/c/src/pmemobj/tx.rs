//! Transactions: a thread has one at a time, with parts within it, and stages.
//!
//! The jumps of an abort are the header's business: no frame of this library lies between them.

use core::ffi::{c_int, c_void};
use core::ptr;

use firn_heap::RawTx;
use firn_mapped::Mapped;
use firn_media::Memory;
use firn_units::VirtAddr;

use super::local::local;
use super::lock::Orphans;
use super::pools::{Pobj, pool_with_id};
use super::thread::{self, in_transaction};
use super::{Oid, TYPE_BYTES, errno_of};
use crate::shelf::open;
use crate::status::{Failure, Outcome, Status, result_of, status_of};

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
pub type Callback = unsafe extern "C" fn(pool: *mut Pobj, stage: Stage, argument: *mut c_void);
/// Gives back a lock that a transaction holds.
pub type Unlock = unsafe extern "C" fn(lock: *mut c_void);

/// A part of a transaction.
struct Part {
    /// Where an abort jumps to.
    environment: *mut c_void,
    /// The first failure in it.
    failed: c_int,
}

/// A thread's transaction. Its stage is that of the innermost part; it has no parts while none is open.
pub(crate) struct Transaction {
    pool: *mut Pobj,
    /// The outermost first.
    parts: Vec<Part>,
    callback: Option<(Callback, *mut c_void)>,
    /// Held to the end of the outermost.
    locks: Vec<(*mut c_void, Unlock)>,
    /// Locks in what it frees.
    orphans: Orphans,
}

impl Transaction {
    pub(crate) const NONE: Self = Self {
        pool: ptr::null_mut(),
        parts: Vec::new(),
        callback: None,
        locks: Vec::new(),
        orphans: Orphans::NONE,
    };
}

/// Does something with the thread's transaction.
#[inline(always)]
fn transaction<R>(with: impl FnOnce(&mut Transaction) -> R) -> R {
    with(&mut local().transaction.borrow_mut())
}

/// The pool of the transaction that is at work.
fn at_work() -> Outcome<&'static Pobj> {
    if local().stage.get() != Stage::Work {
        return Err(Failure::misuse(
            "no transaction is in its work stage; call this after TX_BEGIN and before TX_ONABORT or similar",
        ));
    }
    let pool = transaction(|open| open.pool);
    // SAFETY: it came from the shelf, and the transaction keeps the pool from being closed. In a forked child the
    // transaction goes to its end, too, and is aborted.
    Ok(unsafe { &*pool })
}

/// Tells the program of a stage, which it asked for.
fn call_back() {
    let (told, pool) = transaction(|it| (it.callback, it.pool));
    if let Some((callback, argument)) = told {
        // SAFETY: the header asks for a function that can be called so.
        unsafe { callback(pool, local().stage.get(), argument) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_begin(
    pool: *mut Pobj,
    environment: *mut c_void,
    callback: Option<Callback>,
    argument: *mut c_void,
) -> c_int {
    let status = status_of(|| {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        transaction(|open| {
            match open.parts.is_empty() {
                true => {
                    thread::begin(it)?;
                    open.pool = pool;
                    open.callback = callback.map(|callback| (callback, argument));
                }
                false => check_within(open, pool, callback)?,
            }
            open.parts.push(Part {
                environment,
                failed: 0,
            });
            local().stage.set(Stage::Work);
            Ok(())
        })
    });
    let failed = errno_of(status);
    if failed != 0 {
        refuse(pool, environment, failed);
    }
    local().failed.set(failed);
    failed
}

/// Errors: a transaction cannot begin within the one that is open.
fn check_within(outer: &Transaction, pool: *mut Pobj, callback: Option<Callback>) -> Outcome<()> {
    if local().stage.get() != Stage::Work {
        return Err(Failure::misuse(
            "a nested transaction can begin only in the work stage of the outer one",
        ));
    }
    if outer.pool != pool {
        return Err(Failure::invalid(
            "a nested transaction must be in the same pool",
        ));
    }
    match callback {
        Some(_) => Err(Failure::invalid(
            "only the outermost transaction can have a callback",
        )),
        None => Ok(()),
    }
}

/// What could not begin is aborted at once: its stages ONABORT and FINALLY run.
fn refuse(pool: *mut Pobj, environment: *mut c_void, failed: c_int) {
    transaction(|open| {
        if open.parts.is_empty() {
            (open.pool, open.callback) = (pool, None);
        }
        open.parts.push(Part {
            environment,
            failed,
        });
    });
    local().stage.set(Stage::OnAbort);
}

/// Notes a lock that was taken, to be given back at the end; it is given back now if it is noted already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_keep_lock(lock: *mut c_void, unlock: Unlock) -> c_int {
    let status = status_of(|| {
        at_work()?;
        transaction(|open| open.locks.push((lock, unlock)));
        Ok(())
    });
    errno_of(status)
}

/// Whether the open transaction holds a lock.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_holds(lock: *mut c_void) -> c_int {
    let holds = transaction(|open| open.locks.iter().any(|(held, _)| *held == lock));
    c_int::from(holds)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_stage() -> Stage {
    local().stage.get()
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_errno() -> c_int {
    local().failed.get()
}

/// Where the innermost part's abort jumps to; null if it does not.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_environment() -> *mut c_void {
    transaction(|open| {
        let part = open.parts.last();
        part.map_or(ptr::null_mut(), |part| part.environment)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_commit() {
    result_of((), || {
        let pool = at_work()?;
        let is_outermost = transaction(|open| open.parts.len() == 1);
        let mut stage = Stage::OnCommit;
        let mut outcome = Ok(());
        if is_outermost {
            call_back();
            outcome = thread::end(pool, true);
            if let Err(failure) = &outcome {
                stage = Stage::OnAbort;
                note_failure(errno_of(failure.status()));
            }
        }
        local().stage.set(stage);
        call_back();
        outcome
    });
}

/// The innermost part has failed.
fn note_failure(failed: c_int) {
    transaction(|open| {
        if let Some(part) = open.parts.last_mut() {
            part.failed = failed;
        }
    });
    local().failed.set(failed);
}

/// Aborts the innermost part. The header jumps afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_abort(failed: c_int) {
    result_of((), || {
        let pool = at_work()?;
        note_failure(if failed == 0 {
            errno_of(Status::Aborted)
        } else {
            failed
        });
        let is_outermost = transaction(|open| open.parts.len() == 1);
        let outcome = match is_outermost {
            true => thread::end(pool, false),
            false => Ok(()),
        };
        local().stage.set(Stage::OnAbort);
        call_back();
        outcome
    });
}

/// Goes to the next stage, as TX_END's loop does, and says which it is. At work that is the commit.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_process() -> Stage {
    match firn_pmemobj_tx_stage() {
        Stage::Work => firn_pmemobj_tx_commit(),
        Stage::OnCommit | Stage::OnAbort => local().stage.set(Stage::Finally),
        Stage::Finally | Stage::None => local().stage.set(Stage::None),
    }
    firn_pmemobj_tx_stage()
}

/// Ends the innermost part. If it had failed, and there is another around it, that is to be aborted: by the header,
/// which jumps.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_end() -> c_int {
    let ended = transaction(|open| {
        if local().stage.get() == Stage::Work {
            return None;
        }
        let part = open.parts.pop()?;
        Some((part.failed, open.parts.is_empty(), open.pool))
    });
    let Some((failed, is_outermost, pool)) = ended else {
        let _ = status_of(|| {
            Err(Failure::misuse(
                "the transaction cannot be ended yet; commit or abort it first",
            ))
        });
        return errno_of(Status::Misuse);
    };
    local().failed.set(failed);
    if !is_outermost {
        local().stage.set(Stage::Work);
        return failed;
    }
    local().stage.set(Stage::None);
    call_back();
    let (locks, orphans) = transaction(|open| {
        open.callback = None;
        let Transaction { locks, orphans, .. } = open;
        (core::mem::take(locks), core::mem::take(orphans))
    });
    for (lock, unlock) in locks.into_iter().rev() {
        // SAFETY: it was taken for this transaction.
        unsafe { unlock(lock) };
    }
    // SAFETY: it came from the program, and is looked at here.
    if let Ok(pool) = unsafe { open(pool) } {
        if failed == 0 {
            pool.locks.forget(orphans);
        }
        let _ = status_of(|| pool.safepoint());
    }
    failed
}

/// `POBJ_XADD_NO_FLUSH` is taken for a wish that costs nothing to leave out. The others:
const NO_SNAPSHOT: u64 = 1 << 2;

fn add(tx: RawTx<'_, Mapped>, at: VirtAddr, len: u64, flags: u64) -> Outcome<()> {
    match flags & NO_SNAPSHOT {
        0 => Ok(tx.log(&[(at, len)])?),
        _ => Ok(tx.note(at, len)?),
    }
}

/// Adds a part of an object to the transaction: it is restored if that is aborted.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_add_range(
    oid: Oid,
    offset: u64,
    len: usize,
    flags: u64,
) -> c_int {
    let status = status_of(|| {
        let pool = at_work()?;
        if len == 0 {
            return Ok(());
        }
        let start = pool.check(oid)?;
        in_transaction(pool, |tx| {
            let at = tx.place(start).0.checked_add(offset).map(VirtAddr);
            let at = at.ok_or_else(|| {
                Failure::invalid(format!("offset {offset} is beyond the largest object"))
            })?;
            add(tx, at, len as u64, flags)
        })
    });
    errno_of(status)
}

/// Snapshots a range that is given by its address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_add_direct(
    from: *const c_void,
    len: usize,
    flags: u64,
) -> c_int {
    let status = status_of(|| {
        let pool = at_work()?;
        if len == 0 {
            return Ok(());
        }
        let at = pool.range(from, len)?;
        in_transaction(pool, |tx| add(tx, at, len as u64, flags))
    });
    errno_of(status)
}

/// Allocates within the transaction: `len` of the object's bytes are copied from `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_alloc(
    bytes: usize,
    type_num: u64,
    from: *const c_void,
    len: usize,
) -> Oid {
    result_of(Oid::NULL, || {
        let pool = at_work()?;
        in_transaction(pool, |tx| {
            let body = pool.allocate(tx, bytes as u64, type_num)?;
            if !from.is_null() && len > 0 {
                // SAFETY: the header's functions pass so many bytes.
                let from =
                    unsafe { core::slice::from_raw_parts(from.cast::<u8>(), len.min(bytes)) };
                pool.heap.medium().store_bytes(body + TYPE_BYTES, from);
            }
            Ok(pool.oid(body + TYPE_BYTES))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_realloc(oid: Oid, bytes: usize, type_num: u64) -> Oid {
    result_of(Oid::NULL, || {
        let pool = at_work()?;
        in_transaction(pool, |tx| {
            if oid.is_null() {
                let body = pool.allocate(tx, bytes as u64, type_num)?;
                return Ok(pool.oid(body + TYPE_BYTES));
            }
            let old = VirtAddr(pool.place(oid)?.0.wrapping_sub(TYPE_BYTES));
            let new = pool.reallocated(tx, old, bytes as u64, type_num)?;
            Ok(pool.oid(new + TYPE_BYTES))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_free(oid: Oid) -> c_int {
    let status = status_of(|| {
        let pool = at_work()?;
        if oid.is_null() {
            return Ok(());
        }
        if pool_with_id(oid.pool)?.id != pool.id {
            return Err(Failure::invalid(
                "the object and the transaction belong to different pools",
            ));
        }
        let body = VirtAddr(pool.place(oid)?.0.wrapping_sub(TYPE_BYTES));
        // SAFETY: the program's contract: nothing refers to the object when the transaction commits.
        let orphans = in_transaction(pool, |tx| unsafe { pool.discard(tx, body) })?;
        transaction(|open| open.orphans.add(orphans));
        Ok(())
    });
    errno_of(status)
}
