//! Locks that lie in persistent memory, and are volatile.
//!
//! Their 64 bytes hold a number, and the lock itself lies in volatile memory under that number, so that the object
//! around it can move while a thread holds it. A process never uses a number twice, and numbers begin at random: a
//! number left by another process, or by an earlier opening of the pool, is a free lock. A lock is forgotten with its
//! object, once the transaction that frees the object has committed, and with the pool.

use core::ffi::c_void;
use core::ptr;

use firn_heap::RawTx;
use firn_mapped::Mapped;
use firn_media::{MediumExt, Memory};
use firn_units::{VirtAddr, WORD_BYTES};

use super::TYPE_BYTES;
use super::locks::{LOCK_BYTES, Orphans};
use super::object::in_tx_len;
use super::pools::Pobj;
use crate::handle_pool::Handed;
use crate::status::{Failure, Outcome, result_of};

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
        let number_it = |number| medium.store_u64(at, number);
        Ok(self.locks.of_word(|| medium.load_u64(at), number_it))
    }

    /// Frees an object with the locks in it, to be forgotten once the transaction has committed.
    ///
    /// # Safety
    ///
    /// As [`RawTx::free`].
    pub(super) unsafe fn discard(&self, tx: RawTx<'_, Mapped>, body: VirtAddr) -> Outcome<Orphans> {
        let orphans = match self.locks.are_used() {
            true => self.locks_in(body, in_tx_len(self, tx, body)?),
            false => Orphans::NONE,
        };
        // SAFETY: this function asks, as `RawTx::free` does, that nothing leads to the object at commit.
        unsafe { self.give_back(tx, body) }?;
        Ok(orphans)
    }

    /// The words that may be numbers of locks.
    fn locks_in(&self, body: VirtAddr, len: u64) -> Orphans {
        let medium = self.heap.medium();
        let words = 0..len / WORD_BYTES;
        Orphans::among(words.map(|word| medium.load_u64(body + TYPE_BYTES + word * WORD_BYTES)))
    }
}

/// The system's lock that stands for the one at `lock`.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_lock(pool: Handed<Pobj>, lock: *mut c_void) -> *mut c_void {
    result_of(ptr::null_mut(), || pool.open()?.lock_at(lock))
}

/// Makes the lock at `lock` free.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_lock_zero(pool: Handed<Pobj>, lock: *mut c_void) {
    result_of((), || {
        let it = pool.open()?;
        let at = it.range(lock, LOCK_BYTES)?;
        let medium = it.heap.medium();
        medium.zero(at, LOCK_BYTES as u64);
        medium.persist(at, LOCK_BYTES as u64);
        Ok(())
    });
}
