//! Addresses of objects.

use core::ffi::{c_int, c_void};
use core::ptr;

use firn_units::VirtAddr;

use super::Oid;
use super::cache::InProgram;
use super::pools::{Pobj, Pop, pool_around, pool_with_id};
use super::thread::{fill, in_operation};
use crate::status::{Failure, Outcome, Status, result_of, status_of};

impl Pobj {
    /// The address of the object's byte that an OID names.
    ///
    /// Errors: in another pool; nowhere; beyond the pool's end.
    pub(crate) fn check(&self, oid: Oid) -> Outcome<VirtAddr> {
        if oid.pool != self.id {
            return Err(Failure::invalid("the object belongs to another pool"));
        }
        if oid.is_null() {
            return Err(Failure::invalid("the object is OID_NULL"));
        }
        if oid.offset >= self.capacity {
            return Err(not_an_object(oid));
        }
        Ok(VirtAddr(oid.offset))
    }

    /// The address at which an object's byte may be stored to until the operation ends.
    pub(crate) fn resolve(&self, oid: Oid) -> Outcome<VirtAddr> {
        let at = self.check(oid)?;
        in_operation(self, |guard| Ok(guard.resolve(at)))
    }
}

#[cold]
pub(crate) fn not_an_object(oid: Oid) -> Failure {
    Failure::new(
        Status::NotAllocated,
        format!(
            "no object is allocated at offset {:#x}; it was freed, or never allocated",
            oid.offset
        ),
    )
}

/// The slow path of `pmemobj_direct`: the thread is outside an operation, the object is in another pool than the last
/// one, or it may have moved.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_direct(
    id: u64,
    offset: u64,
    cache: InProgram,
    to_read: c_int,
) -> *mut c_void {
    let oid = Oid { pool: id, offset };
    result_of(ptr::null_mut(), || {
        if oid.is_null() {
            return Ok(ptr::null_mut());
        }
        let pool = pool_with_id(oid.pool)?;
        if oid.offset >= pool.capacity {
            return Err(not_an_object(oid));
        }
        fill(pool, cache)?;
        in_operation(pool, |guard| {
            let at = VirtAddr(oid.offset);
            let at = match to_read {
                0 => guard.resolve(at),
                _ => guard.resolve_to_read(at),
            };
            Ok(pool.pointer(at))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_safepoint(pool: Pop) -> Status {
    status_of(|| pool.open()?.safepoint())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_oid(pointer: *const c_void) -> Oid {
    result_of(Oid::NULL, || {
        let pool = pool_around(pointer)?;
        let at = pool.range(pointer, 0)?;
        Ok(pool.oid(at))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_pool_by_oid(oid: Oid) -> Pop {
    result_of(Pop::NULL, || Ok(pool_with_id(oid.pool)?.handle()))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_pool_by_ptr(pointer: *const c_void) -> Pop {
    result_of(Pop::NULL, || Ok(pool_around(pointer)?.handle()))
}
