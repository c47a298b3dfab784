//! Allocation, and iteration over allocated objects.

use core::ffi::{c_int, c_void};

use firn_heap::RawTx;
use firn_mapped::Mapped;
use firn_media::Memory;
use firn_units::VirtAddr;

use super::direct::not_an_object;
use super::locks::Orphans;
use super::pools::{Pobj, Pop, pool_with_id};
use super::root::{Constructor, ROOT, construct};
use super::sanitizer::{gives_up, was_given};
use super::thread::{in_operation, own_len, passing, with_room};
use super::{Oid, TYPE_BYTES};
use crate::given::InOut;
use crate::status::{Failure, Outcome, Status, result_of, status_of};

/// `PMEMOBJ_MAX_ALLOC_SIZE`.
const MAX_BYTES: u64 = 0x3_FFDF_FFC0;

impl Pobj {
    /// Bytes of the object whose body, which begins with its type's number, is at `body`. The thread's open transaction
    /// may have allocated it.
    pub(crate) fn len_of(&self, body: VirtAddr) -> Outcome<u64> {
        in_operation(self, |guard| match guard.object(body)? {
            Some((what, len)) if what == self.what => Ok(len.saturating_sub(TYPE_BYTES)),
            _ => match own_len(self, body)? {
                Some(len) => Ok(len.saturating_sub(TYPE_BYTES)),
                None => Err(not_an_object(self.oid(body + TYPE_BYTES))),
            },
        })
    }

    /// The current address of the body of the object that begins at an offset.
    ///
    /// Errors: none begins there.
    pub(crate) fn body(&self, oid: Oid) -> Outcome<VirtAddr> {
        let at = self.resolve(oid)?;
        let body = VirtAddr(at.0.wrapping_sub(TYPE_BYTES));
        self.len_of(body).map(|_| body)
    }

    /// Room for an object of this many bytes.
    ///
    /// Errors: more than libpmemobj allows, the pool is full.
    pub(super) fn take(&self, tx: RawTx<'_, Mapped>, bytes: u64) -> Outcome<VirtAddr> {
        if bytes > MAX_BYTES {
            return Err(Failure::new(
                Status::TooLarge,
                format!("an object of {bytes} bytes is too large; the maximum is {MAX_BYTES}"),
            ));
        }
        let body = tx.alloc_of(self.what, TYPE_BYTES + bytes)?;
        was_given(self);
        Ok(body)
    }

    /// Frees an object.
    ///
    /// # Safety
    ///
    /// As [`RawTx::free`].
    pub(super) unsafe fn give_back(&self, tx: RawTx<'_, Mapped>, body: VirtAddr) -> Outcome<()> {
        gives_up(self);
        // SAFETY: this function asks, as `RawTx::free` does, that nothing leads to the object at commit.
        Ok(unsafe { tx.free(body) }?)
    }

    /// Allocates, and stores the type's number.
    pub(crate) fn allocate(
        &self,
        tx: RawTx<'_, Mapped>,
        bytes: u64,
        type_num: u64,
    ) -> Outcome<VirtAddr> {
        if bytes == 0 {
            return Err(Failure::invalid("an object must have at least one byte"));
        }
        let body = self.take(tx, bytes)?;
        self.heap.medium().store_u64(body, type_num);
        if self.is_pinned(type_num) {
            self.heap.pin(body)?;
        }
        Ok(body)
    }

    /// Stores an object's OID where the program wants it, with the transaction if that lies in a pool.
    pub(crate) fn store_oid(
        &self,
        tx: RawTx<'_, Mapped>,
        to: InOut<'_, Oid>,
        oid: Oid,
    ) -> Outcome<()> {
        match self.address(to.pointer()) {
            Some(at) => {
                let at = tx.resolve(at);
                tx.log(&[(at, size_of::<Oid>() as u64)])?;
                tx.store(at, bytemuck::cast_slice(&[oid.pool, oid.offset]))?;
            }
            // Does nothing with null.
            None => to.put(oid),
        }
        Ok(())
    }

    /// Copies the first bytes of an object to another.
    fn copy(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        let mut bytes = vec![0; len as usize];
        let medium = self.heap.medium();
        medium.load_bytes(from, &mut bytes);
        medium.store_bytes(to, &bytes);
    }

    /// A longer or shorter copy of the object.
    pub(crate) fn reallocated(
        &self,
        tx: RawTx<'_, Mapped>,
        old: VirtAddr,
        bytes: u64,
        type_num: u64,
    ) -> Outcome<VirtAddr> {
        let len = self.len_of(old)?;
        let new = self.allocate(tx, bytes, type_num)?;
        self.copy(old + TYPE_BYTES, new + TYPE_BYTES, len.min(bytes));
        self.take_locks_along(old, new, len.min(bytes));
        // SAFETY: libpmemobj asks the program to use only the new object from now on.
        unsafe { self.give_back(tx, old) }?;
        Ok(new)
    }
}

/// Allocates, calls the constructor, makes the object durable, and stores the OID: all of it or nothing.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_alloc(
    pool: Pop,
    to: InOut<'_, Oid>,
    bytes: usize,
    type_num: u64,
    constructor: Option<Constructor>,
    argument: *mut c_void,
) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let allocate = || {
            it.atomically(|tx| {
                let body = it.allocate(tx, bytes as u64, type_num)?;
                construct(pool, constructor, argument, it.pointer(body + TYPE_BYTES))?;
                it.store_oid(tx, to, it.oid(body + TYPE_BYTES))
            })
        };
        with_room(it, || match constructor {
            None => passing(it, allocate),
            // It has a pointer.
            Some(_) => allocate(),
        })
    })
}

/// Resizes an object, or allocates or frees it: all of it or nothing.
///
/// # Safety
///
/// As libpmemobj asks: the program does not use the old object any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_realloc(
    pool: Pop,
    to: InOut<'_, Oid>,
    bytes: usize,
    type_num: u64,
) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let Some(old) = to.get() else {
            return Err(Failure::invalid(
                "the pointer to the OID to be changed is null",
            ));
        };
        let mut orphans = Orphans::NONE;
        let mut change = |tx: RawTx<'_, Mapped>| match (old.is_null(), bytes) {
            (true, 0) => Ok(()),
            (true, _) => {
                let body = it.allocate(tx, bytes as u64, type_num)?;
                it.store_oid(tx, to, it.oid(body + TYPE_BYTES))
            }
            (false, 0) => {
                // SAFETY: libpmemobj asks the program what the heap asks: it does not use the freed object any more.
                orphans = unsafe { it.discard(tx, it.body(old)?) }?;
                it.store_oid(tx, to, Oid::NULL)
            }
            (false, _) => {
                let new = it.reallocated(tx, it.body(old)?, bytes as u64, type_num)?;
                it.store_oid(tx, to, it.oid(new + TYPE_BYTES))
            }
        };
        with_room(it, || passing(it, || it.atomically(&mut change)))?;
        it.locks.forget(orphans);
        Ok(())
    })
}

/// # Safety
///
/// As libpmemobj asks: the program does not use the old object any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_free(to: InOut<'_, Oid>) -> Status {
    status_of(|| {
        let Some(old) = to.get() else {
            return Err(Failure::invalid(
                "the pointer to the OID to be freed is null",
            ));
        };
        if old.is_null() {
            return Ok(());
        }
        let it = pool_with_id(old.pool)?;
        let free = |tx: RawTx<'_, Mapped>| {
            // SAFETY: libpmemobj asks the program what the heap asks: it does not use the freed object any more.
            let orphans = unsafe { it.discard(tx, it.body(old)?) }?;
            it.store_oid(tx, to, Oid::NULL)?;
            Ok(orphans)
        };
        let orphans = passing(it, || it.atomically(free))?;
        it.locks.forget(orphans);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_usable_size(oid: Oid) -> usize {
    result_of(0, || {
        if oid.is_null() {
            return Ok(0);
        }
        let it = pool_with_id(oid.pool)?;
        passing(it, || Ok(it.len_of(it.body(oid)?)? as usize))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_type_num(oid: Oid) -> u64 {
    result_of(0, || {
        let it = pool_with_id(oid.pool)?;
        passing(it, || {
            let body = it.body(oid)?;
            Ok(it.heap.medium().load_u64(body))
        })
    })
}

impl Pobj {
    /// The program's next object after an address. The root object is skipped.
    fn next(&self, after: VirtAddr) -> Outcome<Oid> {
        in_operation(self, |guard| {
            let root = firn_heap::Obj::<firn_heap::Untyped, _>::of_root(guard.view(), ROOT)?;
            let root = root.map(|object| object.address() + 8);
            let mut after = after;
            while let Some(body) = guard.next_object(after)? {
                let is_object = matches!(guard.object(body)?, Some((what, _)) if what == self.what);
                if is_object && Some(body) != root {
                    return Ok(self.oid(body + TYPE_BYTES));
                }
                after = body;
            }
            Ok(Oid::NULL)
        })
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_first(pool: Pop) -> Oid {
    result_of(Oid::NULL, || {
        let it = pool.open()?;
        passing(it, || it.next(VirtAddr(0)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_next(oid: Oid) -> Oid {
    result_of(Oid::NULL, || {
        if oid.is_null() {
            return Ok(Oid::NULL);
        }
        let it = pool_with_id(oid.pool)?;
        passing(it, || it.next(it.resolve(oid)?))
    })
}

/// Pins objects of a type, existing and future ones.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_pin_type(pool: Pop, type_num: u64) -> c_int {
    let status = status_of(|| {
        let it = pool.open()?;
        it.pin(type_num);
        passing(it, || {
            let mut at = it.next(VirtAddr(0))?;
            while !at.is_null() {
                let body = VirtAddr(at.offset - TYPE_BYTES);
                if it.heap.medium().load_u64(body) == type_num {
                    it.heap.pin(body)?;
                }
                at = it.next(VirtAddr(at.offset))?;
            }
            Ok(())
        })
    });
    super::errno_of(status)
}
