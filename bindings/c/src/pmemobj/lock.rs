//! Locks that lie in persistent memory, and are volatile.
//!
//! Their 64 bytes hold a number, and the lock itself lies in volatile memory by that number, so that the object
//! around it can move while somebody holds it. Half of the number says of which process: what another one left
//! there is a lock that nobody holds.

use core::ffi::c_void;
use core::ptr;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use firn_media::{Medium, MediumExt};

use super::pools::Pobj;
use crate::shelf::open;
use crate::status::{Failure, Outcome, result_of};

/// Bytes of a lock in persistent memory, and room for one of the system's that begins as zeros.
const LOCK_BYTES: usize = 64;

/// A lock of the system's, which begins as zeros.
#[repr(C, align(64))]
struct Volatile([u8; LOCK_BYTES]);

#[derive(Default)]
struct Locks {
    /// By their numbers; they stay where they are.
    known: HashMap<u64, usize>,
    next: u64,
}

static LOCKS: Mutex<Option<Locks>> = Mutex::new(None);

/// The upper half of this process's numbers; not zero.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    *PROCESS.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(1, |now| now.as_nanos() as u64);
        let mixed = (now ^ u64::from(std::process::id()) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32).max(1) << 32
    })
}

impl Pobj {
    /// The lock whose 64 bytes are at `lock`.
    fn lock_at(&self, lock: *mut c_void) -> Outcome<*mut c_void> {
        let at = self.range(lock, LOCK_BYTES)?;
        if at.0 % 8 != 0 {
            return Err(Failure::invalid(format!(
                "the lock at {lock:p} is not at a multiple of 8"
            )));
        }
        let medium = self.heap.medium();
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        let locks = locks.get_or_insert_default();
        let mut number = medium.load_u64(at);
        if number & !u64::from(u32::MAX) != process() {
            // Nothing of this lock is in use: no thread of this process has looked at it.
            locks.next += 1;
            number = process() | locks.next;
            medium.store_u64(at, number);
        }
        let new = || Box::into_raw(Box::new(Volatile([0; LOCK_BYTES]))).expose_provenance();
        let place = *locks.known.entry(number).or_insert_with(new);
        Ok(ptr::with_exposed_provenance_mut(place))
    }
}

/// The system's lock that stands for the one at `lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_lock(pool: *mut Pobj, lock: *mut c_void) -> *mut c_void {
    result_of(ptr::null_mut(), || {
        // SAFETY: as the header asks of pools.
        unsafe { open(pool) }?.lock_at(lock)
    })
}

/// Makes the one at `lock` a lock that nobody holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_lock_zero(pool: *mut Pobj, lock: *mut c_void) {
    result_of((), || {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        let at = it.range(lock, LOCK_BYTES)?;
        let medium = it.heap.medium();
        medium.zero(at, LOCK_BYTES as u64);
        medium.persist(at, LOCK_BYTES as u64);
        Ok(())
    });
}
