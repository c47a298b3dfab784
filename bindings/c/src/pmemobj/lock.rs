//! Locks that lie in persistent memory, and are volatile.
//!
//! Their 64 bytes hold a number, and the lock itself lies in volatile memory by that number, so that the object
//! around it can move while somebody holds it. Numbers are not given twice by a process, and begin at random: what
//! another process left, or an earlier opening of the pool, is a lock that nobody holds. A lock is forgotten with its
//! object, when the transaction that frees that has committed, and with the pool.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use firn_heap::RawTx;
use firn_mapped::Mapped;
use firn_media::{MediumExt, Memory};
use firn_units::{VirtAddr, WORD_BYTES};

use super::TYPE_BYTES;
use super::object::in_tx_len;
use super::pools::Pobj;
use super::sanitizer::forgets_lock;
use crate::shelf::open;
use crate::status::{Failure, Outcome, result_of};

/// Bytes of a lock in persistent memory, and room for one of the system's that begins as zeros.
const LOCK_BYTES: usize = 64;

/// A lock of the system's, which begins as zeros.
#[repr(C, align(64))]
struct Volatile([u8; LOCK_BYTES]);

/// Where a lock of the system's lies. That stays a place of locks: one that is used when it has been forgotten is
/// another lock, and not other memory.
struct Place(*mut Volatile);

// SAFETY: what lies there is for all threads.
unsafe impl Send for Place {}

/// Places of locks that were forgotten.
static SPARE: Mutex<Vec<Place>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Place>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    fn taken() -> Self {
        let Some(place) = spare().pop() else {
            return Self(Box::into_raw(Box::new(Volatile([0; LOCK_BYTES]))));
        };
        // SAFETY: it came from the line above, and is nobody's lock.
        unsafe { place.0.write(Volatile([0; LOCK_BYTES])) };
        place
    }
}

/// The locks of an open pool that were used, by their numbers.
#[derive(Default)]
pub(crate) struct Locks {
    known: Mutex<HashMap<u64, Place>>,
    /// Whether there was ever one.
    are_used: AtomicBool,
}

/// The numbers of locks in an object that a transaction frees: they are forgotten if it commits.
#[must_use]
#[derive(Default)]
pub(crate) struct Orphans(Vec<u64>);

impl Orphans {
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn add(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

impl Locks {
    fn known(&self) -> MutexGuard<'_, HashMap<u64, Place>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn forget(&self, orphans: Orphans) {
        if orphans.0.is_empty() {
            return;
        }
        let mut known = self.known();
        let places = orphans.0.iter().filter_map(|number| known.remove(number));
        put_by(places);
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        put_by(self.known().drain().map(|(_, place)| place));
    }
}

fn put_by(places: impl Iterator<Item = Place>) {
    spare().extend(places.inspect(|place| forgets_lock(place.0.cast())));
}

/// How many numbers were given.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// The first number of this process, which is not zero, nor is any that follows in its lifetime.
fn first() -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    *FIRST.get_or_init(|| RandomState::new().hash_one(std::process::id()) >> 1 | 1)
}

/// Whether this process has given a number.
fn is_given(number: u64) -> bool {
    number.wrapping_sub(first()) < GIVEN.load(Ordering::Relaxed)
}

impl Pobj {
    /// The lock whose 64 bytes are at `lock`.
    fn lock_at(&self, lock: *mut c_void) -> Outcome<*mut c_void> {
        let at = self.range(lock, LOCK_BYTES)?;
        if at.0 % WORD_BYTES != 0 {
            return Err(Failure::invalid(format!(
                "the lock at {lock:p} is not at a multiple of {WORD_BYTES}"
            )));
        }
        let medium = self.heap.medium();
        let mut known = self.locks.known();
        let mut number = medium.load_u64(at);
        if !is_given(number) {
            // Nothing of this lock is in use: no thread of this process has looked at it.
            number = first() + GIVEN.fetch_add(1, Ordering::Relaxed);
            medium.store_u64(at, number);
        }
        let place = known.entry(number).or_insert_with(|| {
            self.locks.are_used.store(true, Ordering::Release);
            Place::taken()
        });
        Ok(place.0.cast())
    }

    /// Frees an object with the locks in it, which are to be forgotten when the transaction has committed.
    ///
    /// # Safety
    ///
    /// As [`RawTx::free`].
    pub(super) unsafe fn discard(&self, tx: RawTx<'_, Mapped>, body: VirtAddr) -> Outcome<Orphans> {
        let orphans = match self.locks.are_used.load(Ordering::Acquire) {
            true => self.locks_in(body, in_tx_len(self, tx, body)?),
            false => Orphans::NONE,
        };
        // SAFETY: the caller says so.
        unsafe { self.give_back(tx, body) }?;
        Ok(orphans)
    }

    /// Whatever may be a lock's number.
    fn locks_in(&self, body: VirtAddr, len: u64) -> Orphans {
        let medium = self.heap.medium();
        let words = 0..len / WORD_BYTES;
        let numbers = words.map(|word| medium.load_u64(body + TYPE_BYTES + word * WORD_BYTES));
        Orphans(numbers.filter(|&number| is_given(number)).collect())
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
