//! Transactions: a thread has one at a time, with parts within it, and stages.
//!
//! The jumps of an abort are the header's business: no frame of this library lies between them.

use core::cell::RefCell;
use core::ffi::{c_int, c_void};
use core::ptr;

use firn_media::Medium;
use firn_units::VirtAddr;

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

struct Transaction {
    pool: *mut Pobj,
    stage: Stage,
    /// The outermost first.
    parts: Vec<Part>,
    callback: Option<(Callback, *mut c_void)>,
    /// Held to the end of the outermost.
    locks: Vec<(*mut c_void, Unlock)>,
}

thread_local! {
    static OPEN: RefCell<Option<Transaction>> = const { RefCell::new(None) };
    /// What `pmemobj_tx_errno` says.
    static FAILED: RefCell<c_int> = const { RefCell::new(0) };
}

fn set_failed(failed: c_int) {
    FAILED.with(|last| *last.borrow_mut() = failed);
}

/// The pool of the transaction that is at work.
fn at_work() -> Outcome<&'static Pobj> {
    let pool = OPEN.with_borrow(|transaction| match transaction {
        Some(it) if it.stage == Stage::Work => Some(it.pool),
        _ => None,
    });
    let Some(pool) = pool else {
        return Err(Failure::misuse(
            "no transaction is at work; this belongs behind TX_BEGIN, in front of TX_ONABORT and its like",
        ));
    };
    // SAFETY: the transaction keeps the pool from being closed.
    unsafe { open(pool) }
}

/// Tells the program of a stage, which it asked for.
fn call_back() {
    let told = OPEN.with_borrow(|transaction| {
        let it = transaction.as_ref()?;
        let (callback, argument) = it.callback?;
        Some((callback, it.pool, it.stage, argument))
    });
    if let Some((callback, pool, stage, argument)) = told {
        // SAFETY: the header asks for a function that can be called so.
        unsafe { callback(pool, stage, argument) };
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
        OPEN.with_borrow_mut(|transaction| {
            let part = Part {
                environment,
                failed: 0,
            };
            match transaction {
                Some(outer) if outer.stage != Stage::Work => Err(Failure::misuse(
                    "a transaction begins within another only while that is at work",
                )),
                Some(outer) if outer.pool != pool => Err(Failure::invalid(
                    "a transaction within another is in the same pool",
                )),
                Some(outer) => {
                    if callback.is_some() {
                        return Err(Failure::invalid(
                            "only the outermost transaction has a callback",
                        ));
                    }
                    outer.parts.push(part);
                    Ok(())
                }
                None => {
                    thread::begin(it)?;
                    *transaction = Some(Transaction {
                        pool,
                        stage: Stage::Work,
                        parts: vec![part],
                        callback: callback.map(|callback| (callback, argument)),
                        locks: Vec::new(),
                    });
                    Ok(())
                }
            }
        })
    });
    let failed = errno_of(status);
    if failed != 0 {
        refuse(pool, environment, failed);
    }
    set_failed(failed);
    failed
}

/// What could not begin is aborted at once: its stages ONABORT and FINALLY run.
fn refuse(pool: *mut Pobj, environment: *mut c_void, failed: c_int) {
    OPEN.with_borrow_mut(|transaction| {
        let it = transaction.get_or_insert_with(|| Transaction {
            pool,
            stage: Stage::OnAbort,
            parts: Vec::new(),
            callback: None,
            locks: Vec::new(),
        });
        it.stage = Stage::OnAbort;
        it.parts.push(Part {
            environment,
            failed,
        });
    });
}

/// Notes a lock that was taken, to be given back at the end; it is given back now if it is noted already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_keep_lock(lock: *mut c_void, unlock: Unlock) -> c_int {
    let status = status_of(|| {
        at_work()?;
        OPEN.with_borrow_mut(|transaction| {
            if let Some(it) = transaction {
                it.locks.push((lock, unlock));
            }
        });
        Ok(())
    });
    errno_of(status)
}

/// Whether the open transaction holds a lock.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_holds(lock: *mut c_void) -> c_int {
    let holds = OPEN.with_borrow(|transaction| {
        let locks = transaction.iter().flat_map(|it| &it.locks);
        locks.into_iter().any(|(held, _)| *held == lock)
    });
    c_int::from(holds)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_stage() -> Stage {
    OPEN.with_borrow(|transaction| transaction.as_ref().map_or(Stage::None, |it| it.stage))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_errno() -> c_int {
    FAILED.with(|failed| *failed.borrow())
}

/// Where the innermost part's abort jumps to; null if it does not.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_environment() -> *mut c_void {
    OPEN.with_borrow(|transaction| {
        let part = transaction.as_ref().and_then(|it| it.parts.last());
        part.map_or(ptr::null_mut(), |part| part.environment)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_commit() {
    result_of((), || {
        let pool = at_work()?;
        let is_outermost = OPEN.with_borrow(|it| it.as_ref().is_some_and(|it| it.parts.len() == 1));
        let mut stage = Stage::OnCommit;
        let mut outcome = Ok(());
        if is_outermost {
            call_back();
            outcome = thread::end(pool, true);
            if let Err(failure) = &outcome {
                stage = Stage::OnAbort;
                note_failure(errno_of(failure.status));
            }
        }
        set_stage(stage);
        call_back();
        outcome
    });
}

fn set_stage(stage: Stage) {
    OPEN.with_borrow_mut(|transaction| {
        if let Some(it) = transaction {
            it.stage = stage;
        }
    });
}

/// The innermost part has failed.
fn note_failure(failed: c_int) {
    OPEN.with_borrow_mut(|transaction| {
        if let Some(part) = transaction.as_mut().and_then(|it| it.parts.last_mut()) {
            part.failed = failed;
        }
    });
    set_failed(failed);
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
        let is_outermost = OPEN.with_borrow(|it| it.as_ref().is_some_and(|it| it.parts.len() == 1));
        let outcome = match is_outermost {
            true => thread::end(pool, false),
            false => Ok(()),
        };
        set_stage(Stage::OnAbort);
        call_back();
        outcome
    });
}

/// Goes to the next stage, as TX_END's loop does, except for the end of the work, which is a commit.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_next_stage() {
    let next = match firn_pmemobj_tx_stage() {
        Stage::OnCommit | Stage::OnAbort => Stage::Finally,
        _ => Stage::None,
    };
    set_stage(next);
}

/// Ends the innermost part. If it had failed, and there is another around it, that is to be aborted: by the header,
/// which jumps.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_end() -> c_int {
    let ended = OPEN.with_borrow_mut(|transaction| {
        let it = transaction.as_mut()?;
        if it.stage == Stage::Work {
            return None;
        }
        let part = it.parts.pop()?;
        if !it.parts.is_empty() {
            it.stage = Stage::Work;
        }
        Some((part.failed, it.parts.is_empty(), it.pool))
    });
    let Some((failed, is_outermost, pool)) = ended else {
        let _ = status_of(|| {
            Err(Failure::misuse(
                "no transaction is to be ended; commit or abort it first",
            ))
        });
        return errno_of(Status::Misuse);
    };
    set_failed(failed);
    if is_outermost {
        set_stage(Stage::None);
        call_back();
        let transaction = OPEN.with_borrow_mut(Option::take);
        for (lock, unlock) in transaction.into_iter().flat_map(|it| it.locks).rev() {
            // SAFETY: it was taken for this transaction.
            unsafe { unlock(lock) };
        }
        // SAFETY: it came from the program, and is looked at here.
        if let Ok(pool) = unsafe { open(pool) } {
            let _ = status_of(|| pool.safepoint());
        }
    }
    failed
}

/// `POBJ_XADD_NO_FLUSH` is taken for a wish that costs nothing to leave out. The others:
const NO_SNAPSHOT: u64 = 1 << 2;

impl Pobj {
    fn add(&self, at: VirtAddr, len: u64, flags: u64) -> Outcome<()> {
        in_transaction(self, |tx| match flags & NO_SNAPSHOT {
            0 => Ok(tx.log(&[(at, len)])?),
            _ => Ok(tx.note(at, len)?),
        })
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
        let start = pool.place(oid)?;
        let at = start.0.checked_add(offset).map(VirtAddr);
        let at = at
            .ok_or_else(|| Failure::invalid(format!("offset {offset} lies behind every object")))?;
        pool.range(pool.pointer(at), len)?;
        pool.add(at, len as u64, flags)
    });
    errno_of(status)
}

/// The same by address.
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
        pool.add(at, len as u64, flags)
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
                "the object belongs to another pool than the transaction",
            ));
        }
        let body = VirtAddr(pool.place(oid)?.0.wrapping_sub(TYPE_BYTES));
        // SAFETY: the program's contract: nothing refers to the object when the transaction commits.
        in_transaction(pool, |tx| Ok(unsafe { tx.free(body) }?))
    });
    errno_of(status)
}
