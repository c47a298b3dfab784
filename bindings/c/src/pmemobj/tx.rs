//! Transactions: a thread has one at a time, with parts within it, and stages.
//!
//! The header performs the jumps of an abort: no frame of this library lies between them.

use core::ffi::{c_int, c_void};

use firn_heap::RawTx;
use firn_mapped::Mapped;
use firn_media::Memory;
use firn_units::VirtAddr;

use super::flags::{self, check_flags};
use super::local::local;
use super::pools::{Pobj, Pop, pool_with_id};
use super::stages::{Callback, Stage, Stages, Unlock};
use super::thread::{self, in_transaction};
use super::{Oid, TYPE_BYTES, errno_of};
use crate::given::Source;
use crate::handle_pool::Handed;
use crate::status::{Failure, Outcome, Status, result_of, status_of};

#[inline(always)]
fn stages() -> &'static Stages {
    &local().stages
}

/// Stops the process, as libpmemobj does: a program that calls this here takes itself to be in a transaction, and would
/// go on with stores that nothing undoes.
#[cold]
fn stop(call: &str, why: &str) -> ! {
    eprintln!("firn: {call}: {why}");
    std::process::abort()
}

/// The pool of the transaction that is in its work stage. Without one the process stops.
#[inline(always)]
pub(super) fn at_work(call: &str) -> &'static Pobj {
    match stages().at_work() {
        // SAFETY: the transaction began in the pool, and keeps it from being closed. In a forked child it may be the
        // parent's; there too the transaction runs to its end, and is aborted.
        Ok(pool) => unsafe { pool.there() },
        Err(failure) => stop(call, failure.message()),
    }
}

/// Without an open transaction, in whichever stage, the process stops.
pub(super) fn check_open(call: &str) {
    if !stages().is_open() {
        stop(call, "no transaction is open");
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_begin(
    pop: Pop,
    environment: *mut c_void,
    callback: Option<Callback>,
    argument: *mut c_void,
) -> c_int {
    let mut pool = Handed::NULL;
    let begun = pop.open().and_then(|it| {
        pool = it.handed();
        let callback = callback.map(|callback| (callback, argument));
        let begin = || thread::begin(it).map(|()| pop);
        stages().begin(pool, environment, callback, begin)
    });
    // Where none is open, it is a function that fills an object which begins one.
    if let Err(failure) = &begun
        && failure.status() == Status::Misuse
        && stages().stage() != Stage::None
    {
        stop("pmemobj_tx_begin", failure.message());
    }
    let failed = errno_of(status_of(|| begun));
    if failed != 0 {
        stages().refuse(pool, environment, failed);
    }
    stages().set_errno(failed);
    failed
}

/// Notes a lock that was taken, to be given back at the end; if it is noted already, it is given back now.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_keep_lock(lock: *mut c_void, unlock: Unlock) -> c_int {
    let status = status_of(|| {
        at_work("pmemobj_tx_lock");
        stages().keep_lock(lock, unlock);
        Ok(())
    });
    errno_of(status)
}

/// Errors: no kind of lock; unknown flags.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_check_lock(kind: c_int, flags: u64) -> c_int {
    /// `TX_PARAM_MUTEX` and `TX_PARAM_RWLOCK`.
    const KINDS: [c_int; 2] = [1, 2];
    let status = status_of(|| {
        let pool = at_work("pmemobj_tx_lock");
        check_flags(pool, flags, flags::NO_ABORT)?;
        match KINDS.contains(&kind) {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "a lock is of kind TX_PARAM_MUTEX (1) or TX_PARAM_RWLOCK (2), not {kind}"
            ))),
        }
    });
    errno_of(status)
}

/// Whether the open transaction holds a lock.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_holds(lock: *mut c_void) -> c_int {
    c_int::from(stages().holds(lock))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_stage() -> Stage {
    stages().stage()
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_errno() -> c_int {
    stages().errno()
}

/// The jump target of the innermost part's abort; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_environment() -> *mut c_void {
    stages().environment()
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_commit() {
    result_of((), || {
        let pool = at_work("pmemobj_tx_commit");
        let stages = stages();
        let mut stage = Stage::OnCommit;
        let mut outcome = Ok(());
        if stages.is_outermost() {
            stages.call_back();
            outcome = thread::end(pool, true);
            if let Err(failure) = &outcome {
                stage = Stage::OnAbort;
                stages.fail(errno_of(failure.status()));
            }
        }
        stages.enter(stage);
        outcome
    });
}

/// Aborts the innermost part. The header jumps afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_abort(failed: c_int) {
    result_of((), || {
        let pool = at_work("pmemobj_tx_abort");
        let stages = stages();
        stages.fail(match failed {
            0 => errno_of(Status::Aborted),
            failed => failed,
        });
        let outcome = match stages.is_outermost() {
            true => thread::end(pool, false),
            false => Ok(()),
        };
        stages.enter(Stage::OnAbort);
        outcome
    });
}

/// Goes to the next stage, as TX_END's loop does, and returns it. From the work stage this is the commit.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_process() -> Stage {
    check_open("pmemobj_tx_process");
    match stages().stage() {
        Stage::Work => firn_pmemobj_tx_commit(),
        _ => stages().go_on(),
    }
    stages().stage()
}

/// Ends the innermost part. If it had failed, and there is another around it, the header must abort that: it jumps.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_end() -> c_int {
    let stages = stages();
    if let Stage::OnCommit | Stage::OnAbort = stages.stage() {
        stages.enter(Stage::Finally);
    }
    let Some(ended) = stages.end() else {
        let why = "no transaction can be ended; begin one, and commit or abort it first";
        stop("pmemobj_tx_end", why);
    };
    let Some(pool) = ended.pool else {
        return ended.failed;
    };
    let left = stages.left();
    for (lock, unlock) in left.locks.into_iter().rev() {
        unlock(lock);
    }
    if let Ok(pool) = pool.open() {
        if ended.failed == 0 {
            pool.locks.forget(left.orphans);
        }
        let _ = status_of(|| pool.safepoint());
    }
    if let Some((callback, argument)) = left.callback {
        callback(Pop::NULL, Stage::None, argument);
    }
    ended.failed
}

fn add(tx: RawTx<'_, Mapped>, at: VirtAddr, len: u64, flags: u64) -> Outcome<()> {
    match flags & flags::NO_SNAPSHOT {
        0 => Ok(tx.log(&[(at, len)])?),
        _ => Ok(tx.note(at, len)?),
    }
}

/// Adds a part of an object to the transaction: an abort restores it.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_add_range(
    oid: Oid,
    offset: u64,
    len: usize,
    flags: u64,
) -> c_int {
    let status = status_of(|| {
        let pool = at_work("pmemobj_tx_add_range");
        check_flags(pool, flags, flags::ADD)?;
        if len == 0 {
            return Ok(());
        }
        let start = pool.check(oid)?;
        in_transaction(pool, |tx| {
            let at = tx.resolve(start).0.checked_add(offset).map(VirtAddr);
            let at = at.ok_or_else(|| {
                Failure::invalid(format!("offset {offset} is beyond the largest object"))
            })?;
            add(tx, at, len as u64, flags)
        })
    });
    errno_of(status)
}

/// Snapshots a range given by its address.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_add_direct(from: *const c_void, len: usize, flags: u64) -> c_int {
    let status = status_of(|| {
        let pool = at_work("pmemobj_tx_add_range_direct");
        check_flags(pool, flags, flags::ADD)?;
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
pub extern "C" fn firn_pmemobj_tx_alloc(
    bytes: usize,
    type_num: u64,
    flags: u64,
    from: Source<'_>,
    len: usize,
) -> Oid {
    result_of(Oid::NULL, || {
        let pool = at_work("pmemobj_tx_alloc");
        check_flags(pool, flags, flags::ALLOC)?;
        in_transaction(pool, |tx| {
            let body = pool.allocate(tx, bytes as u64, type_num)?;
            // SAFETY: the header's functions pass `len` bytes; the object has `bytes`.
            if let Some(from) = unsafe { from.of_object(len.min(bytes)) } {
                pool.heap.medium().store_bytes(body + TYPE_BYTES, from);
            }
            Ok(pool.oid(body + TYPE_BYTES))
        })
    })
}

/// # Safety
///
/// As libpmemobj asks: the program does not use the old object any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_realloc(oid: Oid, bytes: usize, type_num: u64) -> Oid {
    result_of(Oid::NULL, || {
        let pool = at_work("pmemobj_tx_realloc");
        in_transaction(pool, |tx| {
            if oid.is_null() {
                let body = pool.allocate(tx, bytes as u64, type_num)?;
                return Ok(pool.oid(body + TYPE_BYTES));
            }
            let old = VirtAddr(pool.resolve(oid)?.0.wrapping_sub(TYPE_BYTES));
            let new = pool.reallocated(tx, old, bytes as u64, type_num)?;
            Ok(pool.oid(new + TYPE_BYTES))
        })
    })
}

/// # Safety
///
/// As libpmemobj asks: the program does not use the old object any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_tx_free(oid: Oid, flags: u64) -> c_int {
    let status = status_of(|| {
        let pool = at_work("pmemobj_tx_free");
        check_flags(pool, flags, flags::NO_ABORT)?;
        if oid.is_null() {
            return Ok(());
        }
        if pool_with_id(oid.pool)?.id != pool.id {
            return Err(Failure::invalid(
                "the object and the transaction belong to different pools",
            ));
        }
        let body = VirtAddr(pool.resolve(oid)?.0.wrapping_sub(TYPE_BYTES));
        // SAFETY: libpmemobj asks the program what the heap asks: it does not use the freed object any more.
        let orphans = in_transaction(pool, |tx| unsafe { pool.discard(tx, body) })?;
        stages().add_orphans(orphans);
        Ok(())
    });
    errno_of(status)
}
