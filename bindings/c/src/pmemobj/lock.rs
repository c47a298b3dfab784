//! Locks that lie in persistent memory, and are volatile.
//!
//! Their 64 bytes lead to the lock itself, which lies in volatile memory, so that the object around it can move while a
//! thread holds it (`locks`). What another process left there, or an earlier opening of the pool, is a free lock, and
//! so is a copy that a program makes of a structure with a lock. A lock is forgotten with its object, once the
//! transaction that frees the object has committed, and with the pool.

use core::ffi::c_void;
use core::ptr;

use firn_heap::RawTx;
use firn_mapped::Mapped;
use firn_media::{MediumExt, Memory};
use firn_units::{VirtAddr, WORD_BYTES};

use super::TYPE_BYTES;
use super::locks::{LOCK_BYTES, Orphans, WORDS_BYTES, Words};
use super::pools::{Pobj, Pop};
use super::thread::{in_operation, passing};
use crate::status::{Failure, Outcome, result_of};

/// A lock's words in a pool.
struct InPool<'p> {
    pool: &'p Pobj,
    at: VirtAddr,
}

impl Words for InPool<'_> {
    fn load(&self, word: usize) -> u64 {
        self.pool.heap.medium().load_u64(self.word(word))
    }

    fn store(&self, word: usize, content: u64) {
        self.pool.heap.medium().store_u64(self.word(word), content);
    }

    fn at(&self) -> u64 {
        self.at.0
    }

    fn now(&self, at: u64) -> Outcome<u64> {
        let there = || in_operation(self.pool, |guard| Ok(guard.resolve_to_read(VirtAddr(at)).0));
        passing(self.pool, there)
    }
}

impl InPool<'_> {
    fn word(&self, word: usize) -> VirtAddr {
        self.at + word as u64 * WORD_BYTES
    }
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
        self.locks.of(&InPool { pool: self, at })
    }

    /// The places in an object of `len` bytes where a lock's words may be.
    fn places_in(&self, body: VirtAddr, len: u64) -> impl Iterator<Item = InPool<'_>> {
        let last = (len + 1).saturating_sub(WORDS_BYTES);
        let offsets = (0..last).step_by(WORD_BYTES as usize);
        offsets.map(move |offset| InPool {
            pool: self,
            at: body + TYPE_BYTES + offset,
        })
    }

    /// Locks in an object are now in its copy, which takes its place.
    pub(super) fn take_locks_along(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        if !self.locks.are_used() {
            return;
        }
        for words in self.places_in(to, len) {
            self.locks.follow(&words, (from + (words.at - to)).0);
        }
    }

    /// Frees an object with the locks in it, to be forgotten once the transaction has committed.
    ///
    /// # Safety
    ///
    /// As [`RawTx::free`].
    pub(super) unsafe fn discard(&self, tx: RawTx<'_, Mapped>, body: VirtAddr) -> Outcome<Orphans> {
        let orphans = match self.locks.are_used() {
            true => self.locks.among(self.places_in(body, self.len_of(body)?)),
            false => Orphans::NONE,
        };
        // SAFETY: this function asks, as `RawTx::free` does, that nothing leads to the object at commit.
        unsafe { self.give_back(tx, body) }?;
        Ok(orphans)
    }
}

/// The system's lock that stands for the one at `lock`.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_lock(pool: Pop, lock: *mut c_void) -> *mut c_void {
    result_of(ptr::null_mut(), || pool.open()?.lock_at(lock))
}

/// Makes the lock at `lock` free.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_lock_zero(pool: Pop, lock: *mut c_void) {
    result_of((), || {
        let it = pool.open()?;
        let at = it.range(lock, LOCK_BYTES)?;
        let medium = it.heap.medium();
        medium.zero(at, LOCK_BYTES as u64);
        medium.persist(at, LOCK_BYTES as u64);
        Ok(())
    });
}
