//! Keeping a pool compact.

use core::ffi::c_int;

use firn_heap::collector::{CollectOptions, PageSize};
use firn_mapped::Mapped;
use firn_media::MediumExt;
use firn_units::VirtAddr;

use super::pools::{Pobj, Watching};
use super::thread::{in_operation, leave};
use super::{Oid, TYPE_BYTES, errno_of};
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
    /// Collects. A collector that watches ends what it does, and goes on afterwards. Returns how many objects move.
    ///
    /// Errors: the thread has a transaction open.
    fn collect(
        &self,
        collect: impl FnOnce(&firn_heap::Pool<Mapped>) -> Result<u64, firn_heap::Error>,
    ) -> Outcome<u64> {
        leave(self)?;
        let mut watching = self.collector();
        let paused = match watching.take() {
            Some(it) => {
                it.collector.stop()?;
                Some(it.options)
            }
            None => None,
        };
        let collected = collect(&self.heap);
        if let Some(options) = paused {
            *watching = Some(Watching::start(&self.heap, options)?);
        }
        self.guard_what_was_left();
        Ok(collected?)
    }

    /// Moves objects with these bodies together, and nothing else: huge pages become free where everything in them is
    /// listed, then small ones.
    fn collect_listed(&self, bodies: &[VirtAddr]) -> Outcome<()> {
        self.collect(|heap| {
            let mut moved = 0;
            for pages in [PageSize::Huge, PageSize::Small] {
                let options = CollectOptions {
                    target: LISTED_TARGET,
                    pages,
                    release_blocks: true,
                    ..CollectOptions::default()
                };
                moved += heap.collect_listed(&options, bodies)?.planned;
            }
            Ok(moved)
        })?;
        Ok(())
    }
}

/// Bytes of pages over bytes of objects at which a list of objects lies well enough.
const LISTED_TARGET: f64 = 1.05;

/// OIDs of a pool that the program lists.
struct List<'a> {
    pool: &'a Pobj,
    /// Where they lie: in the pool, or in the program's memory.
    places: Vec<Place>,
    /// Where their objects are, in ascending order, each once.
    objects: Vec<VirtAddr>,
}

/// Where an OID lies. One in an object of the pool moves with that.
enum Place {
    InPool(VirtAddr),
    Outside(*mut Oid),
}

impl<'a> List<'a> {
    /// # Safety
    ///
    /// There are so many pointers; each is null or leads to an OID.
    unsafe fn of(pool: &'a Pobj, oids: *const *mut Oid, count: usize) -> Outcome<Self> {
        if oids.is_null() {
            return Err(Failure::invalid("the table of OIDs is null"));
        }
        let (mut places, mut objects) = (Vec::new(), Vec::new());
        in_operation(pool, |guard| {
            for index in 0..count {
                // SAFETY: the caller says that there are so many.
                let pointer = unsafe { *oids.add(index) };
                // SAFETY: the caller says so of each.
                let Some(oid) = (unsafe { pointer.as_ref() }) else {
                    continue;
                };
                if oid.is_null() || oid.pool != pool.id {
                    continue;
                }
                objects.push(guard.place_to_read(pool.check(*oid)?));
                places.push(match pool.address(pointer.cast()) {
                    Some(at) => Place::InPool(at),
                    None => Place::Outside(pointer),
                });
            }
            Ok(())
        })?;
        objects.sort_unstable();
        objects.dedup();
        Ok(Self {
            pool,
            places,
            objects,
        })
    }

    /// Where the objects' bodies are, as the heap knows them.
    fn bodies(&self) -> Vec<VirtAddr> {
        let body = |at: &VirtAddr| at.0.checked_sub(TYPE_BYTES).map(VirtAddr);
        self.objects.iter().filter_map(body).collect()
    }

    /// Says in each OID where its object is now, and how many objects have moved.
    ///
    /// # Safety
    ///
    /// The pointers still lead to OIDs.
    unsafe fn update(&self) -> Outcome<usize> {
        let pool = self.pool;
        in_operation(pool, |guard| {
            for place in &self.places {
                let (pointer, in_pool) = match *place {
                    Place::InPool(at) => {
                        let at = guard.place(at);
                        (pool.pointer(at).cast(), Some(at))
                    }
                    Place::Outside(pointer) => (pointer, None),
                };
                // SAFETY: the caller says so; what lies in the pool was found where it is now.
                let oid: &mut Oid = unsafe { &mut *pointer };
                let now = guard.place_to_read(VirtAddr(oid.offset));
                if now.0 != oid.offset {
                    oid.offset = now.0;
                    if let Some(at) = in_pool {
                        pool.heap.medium().persist(at, size_of::<Oid>() as u64);
                    }
                }
            }
            let has_moved = |at: &&VirtAddr| guard.place_to_read(**at) != **at;
            Ok(self.objects.iter().filter(has_moved).count())
        })
    }
}

/// Moves the objects together that these OIDs name, and nothing else, and says in each OID where its object is now. Without
/// any nothing is done, as with libpmemobj.
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
        let mut found = Defragmented::default();
        if count > 0 {
            // SAFETY: the header asks for so many pointers.
            let list = unsafe { List::of(it, oids, count) }?;
            found.total = list.objects.len();
            it.collect_listed(&list.bodies())?;
            // SAFETY: as above; nobody gives OIDs back meanwhile, as the header asks.
            found.relocated = unsafe { list.update() }?;
            leave(it)?;
        }
        if let Some(result) = result {
            *result = found;
        }
        Ok(())
    });
    match status {
        Status::Ok => 0,
        _ => {
            // SAFETY: it is this thread's.
            unsafe { *libc::__errno_location() = errno_of(status) };
            -1
        }
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

/// Collects everything now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_collect(
    pool: *mut Pobj,
    how: *const Collecting,
    moved: *mut u64,
) -> c_int {
    errno_of(status_of(|| {
        // SAFETY: as the header asks of pools, of how, and of the number.
        let (it, how, moved) = unsafe { (open(pool)?, how.as_ref(), moved.as_mut()) };
        let options = collector_options(how)?;
        let objects = it.collect(|heap| {
            let collected = heap.collect(&CollectOptions {
                release_blocks: options.release_blocks,
                ..options.collect
            })?;
            Ok(collected.planned)
        })?;
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
