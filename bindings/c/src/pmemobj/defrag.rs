//! Keeping a pool compact.

use core::ffi::c_int;

use firn_heap::collector::{CollectOptions, CollectorOptions};
use firn_media::MediumExt;
use firn_units::VirtAddr;

use super::pools::{Pobj, Watching};
use super::thread::{in_operation, leave};
use super::{Oid, errno_of};
use crate::collection::{Collecting, collector_options};
use crate::shelf::open;
use crate::status::{Failure, Outcome, Status, status_of};

/// `struct pobj_defrag_result`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Defragmented {
    pub total: usize,
    pub relocated: usize,
}

impl Pobj {
    /// Collects. A collector that watches ends what it does, and goes on afterwards.
    fn collect(&self, options: &CollectorOptions) -> Outcome<u64> {
        leave(self)?;
        let mut watching = self.collector();
        let paused = match watching.take() {
            Some(it) => {
                it.collector.stop()?;
                Some(it.options)
            }
            None => None,
        };
        let collected = self.heap.collect(&CollectOptions {
            release_blocks: options.release_blocks,
            ..options.collect
        });
        if let Some(options) = paused {
            *watching = Some(Watching::start(&self.heap, options)?);
        }
        self.guard_what_was_left();
        Ok(collected?.planned)
    }
}

impl Pobj {
    /// Where an OID lies that the program had a pointer to before objects were moved.
    fn moved(&self, pointer: *mut Oid) -> Outcome<*mut Oid> {
        match self.address(pointer.cast()) {
            Some(at) => in_operation(self, |guard| Ok(self.pointer(guard.place(at)).cast())),
            None => Ok(pointer),
        }
    }
}

/// Collects, and says in each of these OIDs where its object is now. Pointers that the thread has are no longer good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_defrag(
    pool: *mut Pobj,
    oids: *mut *mut Oid,
    count: usize,
    result: *mut Defragmented,
) -> c_int {
    let status = status_of(|| {
        // SAFETY: as the header asks of pools, and of the result.
        let (it, result) = unsafe { (open(pool)?, result.as_mut()) };
        let mut options = CollectorOptions::default();
        options.collect.target = 1.05;
        it.collect(&options)?;
        let mut found = Defragmented::default();
        for index in 0..count {
            if oids.is_null() {
                return Err(Failure::invalid("the table of OIDs is null"));
            }
            // SAFETY: the header asks for so many pointers.
            let at = it.moved(unsafe { *oids.add(index) })?;
            // SAFETY: each is null or leads to an OID, and to where it lies now if that is in the pool.
            let Some(oid) = (unsafe { at.as_mut() }) else {
                continue;
            };
            if oid.is_null() || oid.pool != it.id {
                continue;
            }
            found.total += 1;
            let now = in_operation(it, |guard| Ok(guard.place_to_read(VirtAddr(oid.offset))))?;
            if now.0 != oid.offset {
                found.relocated += 1;
                oid.offset = now.0;
                if let Some(at) = it.address(core::ptr::from_ref(oid).cast()) {
                    it.heap.medium().persist(at, size_of::<Oid>() as u64);
                }
            }
        }
        if let Some(result) = result {
            *result = found;
        }
        leave(it)
    });
    match status {
        Status::Ok => 0,
        _ => -1,
    }
}

/// How the pool is kept compact from now on; by itself no longer, if that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_collecting(pool: *mut Pobj, how: *const Collecting) -> c_int {
    errno_of(status_of(|| {
        // SAFETY: as the header asks of pools, and of how.
        let (it, how) = unsafe { (open(pool)?, how.as_ref()) };
        let mut collector = it.collector();
        leave(it)?;
        if let Some(watching) = collector.take() {
            watching.collector.stop()?;
        }
        if how.is_some() {
            *collector = Some(Watching::start(&it.heap, collector_options(how)?)?);
        }
        Ok(())
    }))
}

/// Collects now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_collect(
    pool: *mut Pobj,
    how: *const Collecting,
    moved: *mut u64,
) -> c_int {
    errno_of(status_of(|| {
        // SAFETY: as the header asks of pools, of how, and of the number.
        let (it, how, moved) = unsafe { (open(pool)?, how.as_ref(), moved.as_mut()) };
        let objects = it.collect(&collector_options(how)?)?;
        if let Some(moved) = moved {
            *moved = objects;
        }
        Ok(())
    }))
}

/// Gives back what ended cycles keep: the program says that it has no OIDs outside the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_forget_oids(pool: *mut Pobj) -> c_int {
    errno_of(status_of(|| {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        leave(it)?;
        it.let_in();
        Ok(it.heap.forget_addresses()?)
    }))
}

/// Bytes of pages that hold objects over those of objects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_ratio(pool: *mut Pobj, pages: c_int) -> f64 {
    crate::status::result_of(0.0, || {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        Ok(it.heap.ratio(crate::collection::page_size(pages)?))
    })
}
