//! The root object, and the program's functions that fill objects.

use core::ffi::{c_int, c_void};
use std::sync::PoisonError;

use firn_heap::{Obj, Untyped};
use firn_media::Memory;
use firn_units::VirtAddr;

use super::pools::{Pobj, Pop};
use super::thread::{in_operation, passing};
use super::{Oid, TYPE_BYTES};
use crate::status::{Failure, Outcome, Status, result_of};

/// The name of the root under which the program's root object lies.
pub(crate) const ROOT: &str = "pmemobj root";

impl Pobj {
    /// The root object's body, as the heap knows it.
    fn root_body(&self) -> Outcome<Option<VirtAddr>> {
        in_operation(self, |guard| {
            let found = Obj::<Untyped, _>::of_root(guard.view(), ROOT)?;
            Ok(found.map(|object| object.address() + TYPE_BYTES))
        })
    }

    pub(super) fn pin_root(&self) -> Outcome<()> {
        if let Some(body) = self.root_body()? {
            self.heap.pin(body)?;
        }
        Ok(())
    }

    /// The root object, if it is known and has at least `bytes` bytes. It never moves while the pool is open.
    fn known_root(&self, bytes: u64) -> Option<Oid> {
        let known = *self.root.lock().unwrap_or_else(PoisonError::into_inner);
        let (body, _) = known.filter(|&(_, len)| bytes <= len)?;
        Some(self.oid(body + TYPE_BYTES))
    }

    /// The root object. Creates it if it is missing, and extends it if it is too short.
    pub(crate) fn root_of(
        &self,
        bytes: u64,
        construct: &mut dyn FnMut(*mut c_void) -> Outcome<()>,
    ) -> Outcome<Oid> {
        let mut known = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.root_body()?;
        let old_len = match old {
            Some(body) => self.len_of(body)?,
            None => 0,
        };
        let body = match old {
            Some(body) if bytes <= old_len => body,
            _ if bytes == 0 => {
                return Err(Failure::invalid("the root object needs at least one byte"));
            }
            _ => {
                let new = self.replace_root(old.map(|body| (body, old_len)), bytes, construct)?;
                self.heap.pin(new)?;
                new
            }
        };
        *known = Some((body, bytes.max(old_len)));
        Ok(self.oid(body + TYPE_BYTES))
    }

    fn replace_root(
        &self,
        old: Option<(VirtAddr, u64)>,
        bytes: u64,
        construct: &mut dyn FnMut(*mut c_void) -> Outcome<()>,
    ) -> Outcome<VirtAddr> {
        self.atomically(|tx| {
            let new = self.take(tx, bytes)?;
            if let Some((body, len)) = old {
                let mut content = vec![0; len as usize];
                let medium = self.heap.medium();
                medium.load_bytes(body + TYPE_BYTES, &mut content);
                medium.store_bytes(new + TYPE_BYTES, &content);
                self.take_locks_along(body, new, len);
                // SAFETY: the root names the new object, and the program uses only that one from now on.
                unsafe { self.give_back(tx, body) }?;
            }
            construct(self.pointer(new + TYPE_BYTES))?;
            tx.set_root(ROOT, Some(new))?;
            Ok(new)
        })
    }
}

/// The program's function to fill a new object. Any result but zero undoes the allocation.
pub type Constructor =
    extern "C" fn(pool: Pop, object: *mut c_void, argument: *mut c_void) -> c_int;

/// Calls a constructor, if there is one.
pub(crate) fn construct(
    pool: Pop,
    constructor: Option<Constructor>,
    argument: *mut c_void,
    object: *mut c_void,
) -> Outcome<()> {
    let Some(constructor) = constructor else {
        return Ok(());
    };
    match constructor(pool, object, argument) {
        0 => Ok(()),
        _ => Err(Failure::new(Status::Aborted, "the constructor failed")),
    }
}

/// # Safety
///
/// As libpmemobj asks: if the root object has become longer, the program uses only the new one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_root(
    pool: Pop,
    bytes: usize,
    constructor: Option<Constructor>,
    argument: *mut c_void,
) -> Oid {
    result_of(Oid::NULL, || {
        let it = pool.open()?;
        if let Some(root) = it.known_root(bytes as u64) {
            return Ok(root);
        }
        let root = || {
            it.root_of(bytes as u64, &mut |object| {
                construct(pool, constructor, argument, object)
            })
        };
        match constructor {
            None => passing(it, root),
            // It has a pointer.
            Some(_) => root(),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_root_size(pool: Pop) -> usize {
    result_of(0, || {
        let it = pool.open()?;
        passing(it, || match it.root_body()? {
            Some(body) => Ok(it.len_of(body)? as usize),
            None => Ok(0),
        })
    })
}
