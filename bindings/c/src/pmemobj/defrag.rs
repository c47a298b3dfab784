//! Compacting a pool.

use core::ffi::c_int;
use core::mem::offset_of;
use std::collections::BTreeMap;

use firn_heap::collector::CollectOptions;
use firn_heap::{Gathering, Moved, Pool, RawTx};
use firn_mapped::Mapped;
use firn_units::{VirtAddr, WORD_BYTES};

use super::pools::{Pobj, Pop, Watching};
use super::thread::{in_operation, leave};
use super::{Oid, TYPE_BYTES, errno_of};
use crate::collection::{Collecting, collector_options, page_size};
use crate::given::{In, InOut, Out, Source};
use crate::status::{Failure, Outcome, Status, result_of, status_of};

/// `struct pobj_defrag_result`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Defragmented {
    pub total: usize,
    pub relocated: usize,
}

impl Pobj {
    /// Collects, or moves objects otherwise. A background collector first ends its work, and continues afterwards.
    ///
    /// Errors: the thread has a transaction open.
    fn collect<R>(&self, collect: impl FnOnce(&Pool<Mapped>) -> Outcome<R>) -> Outcome<R> {
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
        self.vacated.guard(&self.heap);
        collected
    }

    /// Moves together the objects that these OIDs name.
    fn gather<'t>(&self, oids: impl Iterator<Item = InOut<'t, Oid>>) -> Outcome<Defragmented> {
        self.collect(|heap| {
            // A cycle that a crash interrupted completes its planned moves first.
            heap.collection(&CollectOptions::default())?.finish()?;
            let list = List::of(self, oids)?;
            let total = list.bodies.len();
            let relocated = list.gather(self)?;
            leave(self)?;
            Ok(Defragmented { total, relocated })
        })
    }
}

/// OIDs of a pool that the program lists.
struct List<'t> {
    /// The place of each OID, and the address of its object's body, as the heap knows it, when it was looked up.
    oids: Vec<(Place<'t>, VirtAddr)>,
    /// The bodies, in ascending order, each once.
    bodies: Vec<VirtAddr>,
}

/// The place of an OID.
enum Place<'t> {
    /// In the pool: it moves with the object that contains it.
    InPool(VirtAddr),
    /// In the program's memory.
    Outside(InOut<'t, Oid>),
}

impl<'t> List<'t> {
    fn of(pool: &Pobj, table: impl Iterator<Item = InOut<'t, Oid>>) -> Outcome<Self> {
        let (mut oids, mut bodies) = (Vec::new(), Vec::new());
        in_operation(pool, |guard| {
            for listed in table {
                let Some(oid) = listed.get() else { continue };
                if oid.is_null() || oid.pool != pool.id {
                    continue;
                }
                let in_pool = pool.address(listed.pointer());
                let object = guard.resolve_to_read(pool.check(oid)?);
                // It may name its object's address before a collection.
                if object.0 != oid.offset && in_pool.is_none() {
                    listed.put(pool.oid(object));
                }
                let Some(body) = object.0.checked_sub(TYPE_BYTES).map(VirtAddr) else {
                    continue;
                };
                bodies.push(body);
                let place = match in_pool {
                    Some(at) => Place::InPool(guard.resolve(at)),
                    None => Place::Outside(listed),
                };
                oids.push((place, body));
            }
            Ok(())
        })?;
        bodies.sort_unstable();
        bodies.dedup();
        oids.sort_unstable_by_key(|(_, body)| *body);
        Ok(Self { oids, bodies })
    }

    /// The OIDs that name the object with this body.
    fn of_object(&self, body: VirtAddr) -> impl Iterator<Item = &Place<'t>> {
        let first = self.oids.partition_point(|(_, other)| *other < body);
        let those = self.oids[first..].iter();
        those
            .take_while(move |(_, other)| *other == body)
            .map(|(place, _)| place)
    }

    /// Moves the objects together, and stores the new addresses in their OIDs. Returns how many have moved.
    fn gather(&self, pool: &Pobj) -> Outcome<usize> {
        let mut gathering = in_operation(pool, |guard| Ok(Gathering::new(guard, &self.bodies)?))?;
        let mut all = BTreeMap::new();
        loop {
            let moved = pool.atomically(|tx| {
                let moved = gathering.step(tx)?.unwrap_or_default();
                all.extend(moved.iter().map(|moved| (moved.from, *moved)));
                self.store_in_pool(tx, &moved, &all)?;
                Ok(moved)
            })?;
            if moved.is_empty() {
                return Ok(all.len());
            }
            for moved in &moved {
                pool.take_locks_along(moved.from, moved.to, moved.len - TYPE_BYTES);
                self.store_outside(pool, moved);
            }
        }
    }

    /// Stores an object's address in those of its OIDs that lie in the program's memory.
    fn store_outside(&self, pool: &Pobj, moved: &Moved) {
        for place in self.of_object(moved.from) {
            if let Place::Outside(oid) = place {
                oid.put(pool.oid(moved.to + TYPE_BYTES));
            }
        }
    }

    /// Stores objects' addresses in those of their OIDs that lie in the pool, wherever these lie by now.
    fn store_in_pool(
        &self,
        tx: RawTx<'_, Mapped>,
        moved: &[Moved],
        all: &BTreeMap<VirtAddr, Moved>,
    ) -> Outcome<()> {
        for moved in moved {
            for place in self.of_object(moved.from) {
                let Place::InPool(at) = *place else { continue };
                let offset = resolve_now(at, all) + offset_of!(Oid, offset) as u64;
                tx.log(&[(offset, WORD_BYTES)])?;
                tx.store(offset, &(moved.to + TYPE_BYTES).0.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

/// The address of a byte of the pool once these objects have moved.
fn resolve_now(at: VirtAddr, all: &BTreeMap<VirtAddr, Moved>) -> VirtAddr {
    match all.range(..=at).next_back() {
        Some((_, with)) if at - with.from < with.len => with.to + (at - with.from),
        _ => at,
    }
}

/// Moves together the objects that these OIDs name, and nothing else, and stores the new addresses in the OIDs. Without
/// any OIDs it does nothing, as with libpmemobj.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_defrag(
    pool: Pop,
    oids: Source<'_, InOut<'_, Oid>>,
    count: usize,
    result: Out<'_, Defragmented>,
) -> c_int {
    let status = status_of(|| {
        let it = pool.open()?;
        let found = match count {
            0 => Defragmented::default(),
            _ if oids.is_null() => return Err(Failure::invalid("the table of OIDs is null")),
            // SAFETY: the header promises `count` pointers; and `oids` is not null.
            _ => it.gather(unsafe { oids.each(count) })?,
        };
        result.put(found);
        Ok(())
    });
    match status {
        Status::Ok => 0,
        _ => {
            // SAFETY: the system's function always returns the address of this thread's `errno`.
            unsafe { *libc::__errno_location() = errno_of(status) };
            -1
        }
    }
}

/// Sets how the pool is kept compact from now on; null ends automatic compaction.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_collecting(pool: Pop, how: In<'_, Collecting>) -> c_int {
    errno_of(status_of(|| {
        let (it, how) = (pool.open()?, how.get());
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
pub extern "C" fn firn_pmemobj_collect(
    pool: Pop,
    how: In<'_, Collecting>,
    moved: Out<'_, u64>,
) -> c_int {
    errno_of(status_of(|| {
        let it = pool.open()?;
        let options = collector_options(how.get())?;
        let objects = it.collect(|heap| {
            let collected = heap.collect(&CollectOptions {
                release_blocks: options.release_blocks,
                ..options.collect
            })?;
            Ok(collected.planned)
        })?;
        moved.put(objects);
        Ok(())
    }))
}

/// Releases what ended cycles retain: the program declares that it has no OIDs outside the pool.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_forget_oids(pool: Pop) -> c_int {
    errno_of(status_of(|| {
        let it = pool.open()?;
        leave(it)?;
        it.vacated.let_in(&it.heap);
        Ok(it.heap.drop_forwarding()?)
    }))
}

/// Bytes of pages that hold objects over those of objects.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_ratio(pool: Pop, pages: c_int) -> f64 {
    result_of(0.0, || Ok(pool.open()?.heap.ratio(page_size(pages)?)))
}
