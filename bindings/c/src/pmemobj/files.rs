//! Pools in files: made, opened, closed, checked.

use core::ffi::c_int;
use std::path::Path;

use firn_heap::{LogKind, OpenError, PoolKind, PoolOptions};
use firn_mapped::{FileSystems, Mapped, MappedOptions};
use firn_media::{Domain, Space};

use super::errno_of;
use super::pools::{Pop, TYPE, hand_out, take_back};
use super::thread::passing;
use crate::given::Text;
use crate::pool::layout;
use crate::status::{Failure, Outcome, firn_last_status, result_of};

/// Failures of pools are numbers of `errno.h`, from the thread's last status.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_errno() -> c_int {
    errno_of(firn_last_status())
}

fn options(layout: &str) -> PoolOptions {
    PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        ..PoolOptions::new(layout)
    }
}

/// The options that map a pool of `bytes` bytes. They reserve addresses for retained frames too, and follow the
/// environment variables, because a program written for libpmemobj passes no options.
fn mapped_options(bytes: u64) -> Outcome<MappedOptions> {
    let addresses = MappedOptions::DEFAULT_CAPACITY.max(bytes.saturating_mul(ADDRESSES));
    let mut options = MappedOptions::default().capacity(addresses);
    match std::env::var("FIRN_ANY_FILE_SYSTEM").as_deref() {
        Err(_) | Ok("" | "0") => {}
        Ok("1") => options = options.file_systems(FileSystems::Any),
        Ok(other) => {
            return Err(Failure::invalid(format!(
                "FIRN_ANY_FILE_SYSTEM must be `0` or `1`, not `{other}`"
            )));
        }
    }
    match std::env::var("FIRN_ASSUME_PERSISTENT").as_deref() {
        Err(_) | Ok("") => Ok(options),
        Ok("adr") => Ok(options.domain(Domain::Adr)),
        Ok("eadr") => Ok(options.domain(Domain::Eadr)),
        Ok(other) => Err(Failure::invalid(format!(
            "FIRN_ASSUME_PERSISTENT must be `adr` or `eadr`, not `{other}`"
        ))),
    }
}

/// The options of a new pool. A program written for libpmemobj flushes as for persistent memory, after each store that
/// matters; with a log on a disk each flush is a write. So there is one only where that is asked for.
fn of_new_pool(mut options: MappedOptions) -> Outcome<MappedOptions> {
    options.log.by_default = false;
    match std::env::var("FIRN_DURABLE").as_deref() {
        _ if options.domain.is_some() => Ok(options),
        Err(_) | Ok("" | "0") => Ok(options),
        Ok("1") => Ok(options.domain(Domain::Logged)),
        Ok(other) => Err(Failure::invalid(format!(
            "FIRN_DURABLE must be `0` or `1`, not `{other}`"
        ))),
    }
}

fn handed_out(heap: firn_heap::Pool<Mapped>) -> Outcome<Pop> {
    let it = hand_out(heap)?.open()?;
    passing(it, || it.pin_root())?;
    Ok(it.handle())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_create(at: Text<'_>, of: Text<'_>, bytes: usize, mode: u32) -> Pop {
    result_of(Pop::NULL, || {
        let (at, layout) = (at.path()?, layout(of)?);
        let mut options = options(layout);
        // The length of an existing, empty file says how long the pool may become.
        let there = std::fs::metadata(at).ok();
        let most = match (bytes, &there) {
            (0, Some(file)) if file.len() > 0 => file.len(),
            (0, _) => {
                return Err(Failure::invalid(
                    "a new pool needs a size of at least PMEMOBJ_MIN_POOL",
                ));
            }
            (bytes, _) => bytes as u64,
        };
        if !(LEAST_POOL..=MOST_BYTES).contains(&most) {
            return Err(Failure::invalid(format!(
                "a pool of {most} bytes cannot be made; it must have {LEAST_POOL} (PMEMOBJ_MIN_POOL) to {MOST_BYTES} bytes"
            )));
        }
        options.max_bytes = Some(most.max(LEAST_BYTES));
        let mapped = of_new_pool(mapped_options(most)?)?.mode(mode & PERMISSIONS);
        let medium = match bytes {
            0 => Mapped::create_over(at, 0, &mapped)?,
            _ => Mapped::create(at, 0, &mapped)?,
        };
        let made = firn_heap::Pool::create_unpublished(medium, &options)?;
        // A pool that cannot be handed out must not be found either.
        let named = made
            .register_pairs(TYPE)
            .and_then(|_| made.publish().map(|()| made.clone()));
        handed_out(named.inspect_err(|_| made.abandon())?)
    })
}

/// Address space of a pool over its bytes: four times for emptied frames that are retained, and a power of two above.
const ADDRESSES: u64 = 8;

/// Those bits of a file's mode that `pmemobj_create` sets.
const PERMISSIONS: u32 = 0o777;

/// `PMEMOBJ_MIN_POOL`.
const LEAST_POOL: u64 = 8 << 20;

/// Most bytes of a pool: addresses of an x86 process have 47 bits.
const MOST_BYTES: u64 = (1 << 46) / ADDRESSES;

/// Least bytes of a pool: a program asks for the bytes of its objects, and the pool has tables besides.
const LEAST_BYTES: u64 = 32 << 20;

/// Opens a pool, with the limit that it was made with. Without a layout any will do; an empty one is a layout.
fn open_heap(at: &Path, of: Text<'_>) -> Outcome<firn_heap::Pool<Mapped>> {
    let wanted = layout(of)?;
    // Zero if there is no file; opening it will report that.
    let length = std::fs::metadata(at).map_or(0, |file| file.len());
    let medium = Mapped::open(at, &mapped_options(length)?)?;
    if !of.is_null()
        && let Some(found) = firn_heap::stored_layout(&medium)
        && found != wanted
    {
        let (pool, expected) = (medium.name(), wanted.to_owned());
        return Err(OpenError::Layout {
            pool,
            found,
            expected,
        }
        .into());
    }
    let limit = firn_heap::stored_limit(&medium).unwrap_or(0);
    // This gives retained frames addresses, too.
    let medium = match limit.saturating_mul(ADDRESSES) > medium.capacity() {
        true => {
            drop(medium);
            Mapped::open(at, &mapped_options(limit)?)?
        }
        false => medium,
    };
    Ok(firn_heap::Pool::open(medium, &options(wanted))?)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_open(at: Text<'_>, of: Text<'_>) -> Pop {
    result_of(Pop::NULL, || handed_out(open_heap(at.path()?, of)?))
}

/// # Safety
///
/// As the header asks: no thread uses the pool meanwhile, or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_close(pool: Pop) {
    result_of((), || {
        if pool.is_null() {
            return Ok(());
        }
        let it = pool.open()?;
        for slot in it.threads().iter() {
            slot.check_no_transaction()?;
        }
        // The collector's stops wait for operations: those of this thread and of others end before it.
        for slot in it.threads().drain(..) {
            slot.end();
        }
        drop(it.collector().take());
        it.vacated.let_in(&it.heap);
        it.heap.clone().close()?;
        // SAFETY: no thread has an operation in it any more, and the header asks that no other call is under way.
        unsafe { take_back(it.handed(), it.id) }
    });
}

/// One if a pool is sound, zero if not, minus one if that cannot be determined.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_check(at: Text<'_>, of: Text<'_>) -> c_int {
    result_of(-1, || {
        let pool = open_heap(at.path()?, of)?;
        let findings = pool.check()?;
        pool.close()?;
        Ok(c_int::from(findings.is_empty()))
    })
}
