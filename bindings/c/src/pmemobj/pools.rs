//! Pools.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use firn_heap::TypeId;
use firn_heap::collector::{BackgroundCollector, CollectorOptions};
use firn_mapped::Mapped;
use firn_media::Space;
use firn_units::VirtAddr;

use super::Oid;
use super::local::local;
use super::locks::Locks;
use super::thread::{Slot, forget_pointers_in_children, leave};
use super::vacated::Vacated;
use crate::collection::{Collects, Wholly};
use crate::handle_pool::{Handed, HandlePool, Pooled};
use crate::status::{Failure, Outcome, object_of, result_of};

/// The name of the type of all objects.
pub(super) const TYPE: &str = "pmemobj object";

/// A background collector of a pool, and its options.
pub(crate) struct Watching {
    pub(crate) options: CollectorOptions,
    pub(crate) collector: BackgroundCollector<Mapped>,
}

impl Watching {
    pub(crate) fn start(
        heap: &firn_heap::Pool<Mapped>,
        options: CollectorOptions,
    ) -> Outcome<Self> {
        let collector = heap.start_collector(&options)?;
        Ok(Self { options, collector })
    }
}

/// `PMEMobjpool`.
pub struct Pobj {
    mark: AtomicU64,
    pub(crate) heap: firn_heap::Pool<Mapped>,
    pub(crate) id: u64,
    pub(crate) base: u64,
    pub(crate) capacity: u64,
    /// The type of all objects.
    pub(crate) what: TypeId,
    /// The root object's body and the program's bytes of it, once it was asked for. The lock ensures that one thread
    /// makes it.
    pub(super) root: Mutex<Option<(VirtAddr, u64)>>,
    /// Numbers of types whose objects may not move.
    pinned: RwLock<Vec<u64>>,
    /// Whether there are any.
    pins: AtomicBool,
    pub(crate) collector: Mutex<Option<Watching>>,
    collects: Collects,
    wholly: Wholly,
    pub(crate) vacated: Vacated,
    pub(crate) locks: Locks,
    /// Each thread's part of the pool.
    pub(crate) threads: Mutex<Vec<Arc<Slot>>>,
    user_data: AtomicPtr<c_void>,
}

impl Pooled for Pobj {
    const NAME: &'static str = "pool";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.heap.is_ours()
    }
}

/// `PMEMobjpool *`: the address at which the pool is mapped. Programs for libpmemobj add offsets to it.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pop(*mut c_void);

impl Pop {
    pub(crate) const NULL: Self = Self(ptr::null_mut());

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pool. Its memory stays when it is closed.
    ///
    /// Errors: none is open there, or it belongs to the process from which this one was forked.
    #[inline]
    pub(crate) fn open(self) -> Outcome<&'static Pobj> {
        match local().last_used.get().0.open() {
            Ok(last) if last.base == self.0.addr() as u64 => Ok(last),
            _ => self.look_up(),
        }
    }

    #[cold]
    fn look_up(self) -> Outcome<&'static Pobj> {
        if self.is_null() {
            return Err(Failure::invalid("the pool is null"));
        }
        let found = among_open(|_, pool| pool.base == self.0.addr() as u64);
        found.unwrap_or_else(|| {
            Err(Failure::invalid(format!(
                "{:p} is no open pool; it was closed, or was never one",
                self.0
            )))
        })
    }
}

static FREE_HANDLES: HandlePool<Pobj> = HandlePool::new();

/// Open pools, by their ids.
static POOLS: RwLock<Vec<(u64, Handed<Pobj>)>> = RwLock::new(Vec::new());

/// The pool with an id. Its memory stays when it is closed.
#[inline]
pub(crate) fn pool_with_id(id: u64) -> Outcome<&'static Pobj> {
    match local().last_used.get().0.open() {
        Ok(last) if last.id == id => Ok(last),
        _ => look_up(id),
    }
}

#[cold]
fn look_up(id: u64) -> Outcome<&'static Pobj> {
    among_open(|known, _| known == id).unwrap_or_else(|| {
        Err(Failure::invalid(format!(
            "no open pool has the id {id:#x}; its pool was closed, or the OID is invalid"
        )))
    })
}

/// The open pool of which this is true, by its id and the pool.
fn among_open(is_it: impl Fn(u64, &Pobj) -> bool) -> Option<Outcome<&'static Pobj>> {
    let pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: closing a pool first removes it from this list, which is locked here.
    let found = pools
        .iter()
        .find(|(id, pool)| is_it(*id, unsafe { pool.there() }));
    found.map(|(_, pool)| pool.open())
}

/// The pool around an address, and the address there, for a signal handler, which may not wait: `None` also while pools
/// are being opened or closed.
fn around_now(address: usize) -> Option<(&'static firn_heap::Pool<Mapped>, VirtAddr)> {
    let pools = POOLS.try_read().ok()?;
    pools.iter().find_map(|(_, pool)| {
        // SAFETY: closing a pool first removes it from this list, which is locked here.
        let pool = unsafe { pool.there() };
        let at = (address as u64).wrapping_sub(pool.base);
        (at < pool.capacity).then_some((&pool.heap, VirtAddr(at)))
    })
}

/// The pool in whose memory a byte lies.
pub(crate) fn pool_around(pointer: *const c_void) -> Outcome<&'static Pobj> {
    let pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    for (_, pool) in pools.iter() {
        let pool = pool.open()?;
        if pool.address(pointer).is_some() {
            return Ok(pool);
        }
    }
    Err(Failure::invalid(format!(
        "{pointer:p} is not in an open pool"
    )))
}

/// Hands a pool out, so that all threads may use it from now on.
pub(super) fn hand_out(heap: firn_heap::Pool<Mapped>) -> Outcome<Handed<Pobj>> {
    forget_pointers_in_children();
    let what = heap.register_pairs(TYPE)?;
    let collects = Collects::asked_for()?;
    let collector = match collects {
        Collects::Beside => Some(Watching::start(&heap, CollectorOptions::default())?),
        Collects::WhenAsked | Collects::AtSafepoints => None,
    };
    let medium = heap.medium();
    let (base, capacity) = (medium.base_address() as u64, medium.capacity());
    let id = heap.pair_id();
    let pool = FREE_HANDLES.hand_out(Pobj {
        mark: AtomicU64::new(0),
        id,
        base,
        capacity,
        what,
        root: Mutex::new(None),
        pinned: RwLock::default(),
        pins: AtomicBool::new(false),
        collector: Mutex::new(collector),
        collects,
        wholly: Wholly::default(),
        vacated: Vacated::new(around_now)?,
        locks: Locks::default(),
        threads: Mutex::new(Vec::new()),
        user_data: AtomicPtr::new(ptr::null_mut()),
        heap,
    });
    let mut pools = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    pools.push((id, pool));
    Ok(pool)
}

/// Takes back a pool whose heap has been closed.
///
/// # Safety
///
/// No thread uses it meanwhile, and no reference to it is left.
pub(super) unsafe fn take_back(pool: Handed<Pobj>, id: u64) -> Outcome<()> {
    let mut pools = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|(known, _)| *known != id);
    drop(pools);
    // SAFETY: the list does not have it any more, and the caller ensures that no thread that found it uses it.
    drop(unsafe { FREE_HANDLES.take_back(pool) }?);
    Ok(())
}

impl Pobj {
    /// The address of a byte in the pool; `None` if it lies outside.
    pub(crate) fn address(&self, pointer: *const c_void) -> Option<VirtAddr> {
        let at = (pointer.addr() as u64).wrapping_sub(self.base);
        (at < self.capacity).then_some(VirtAddr(at))
    }

    /// The address of a range of `len` bytes in the pool.
    pub(crate) fn range(&self, pointer: *const c_void, len: usize) -> Outcome<VirtAddr> {
        let len = len as u64;
        match self.address(pointer) {
            Some(at)
                if at
                    .0
                    .checked_add(len)
                    .is_some_and(|end| end <= self.heap.medium().len()) =>
            {
                Ok(at)
            }
            _ => Err(Failure::invalid(format!(
                "{len} bytes from {pointer:p} on do not lie in the pool"
            ))),
        }
    }

    pub(crate) fn pointer(&self, at: VirtAddr) -> *mut c_void {
        ptr::with_exposed_provenance_mut((self.base + at.0) as usize)
    }

    pub(crate) fn collector(&self) -> MutexGuard<'_, Option<Watching>> {
        self.collector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread holds no pointers: its operation ends, and with `FIRN_COLLECT=safepoints` everything moves.
    pub(crate) fn safepoint(&self) -> Outcome<()> {
        leave(self)?;
        match self.collects {
            Collects::AtSafepoints => self.wholly.collect(&self.heap),
            Collects::WhenAsked | Collects::Beside => Ok(()),
        }?;
        self.vacated.guard(&self.heap);
        Ok(())
    }

    /// What the program calls it.
    #[inline(always)]
    pub(crate) fn handle(&self) -> Pop {
        Pop(ptr::with_exposed_provenance_mut(self.base as usize))
    }

    /// The place of its memory, in the handle pool.
    #[inline(always)]
    pub(crate) fn handed(&self) -> Handed<Self> {
        // SAFETY: only `hand_out` makes one, in the handle pool.
        unsafe { Handed::new(ptr::from_ref(self).cast_mut()) }
    }

    pub(crate) fn oid(&self, at: VirtAddr) -> Oid {
        Oid {
            pool: self.id,
            offset: at.0,
        }
    }

    pub(crate) fn threads(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether objects of a type may not move.
    #[inline]
    pub(crate) fn is_pinned(&self, type_num: u64) -> bool {
        let pinned = || self.pinned.read().unwrap_or_else(PoisonError::into_inner);
        self.pins.load(Ordering::Acquire) && pinned().contains(&type_num)
    }

    /// Pins objects of a type that are allocated from now on.
    pub(crate) fn pin(&self, type_num: u64) {
        let pinned = self.pinned.write();
        pinned
            .unwrap_or_else(PoisonError::into_inner)
            .push(type_num);
        self.pins.store(true, Ordering::Release);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_set_user_data(pool: Pop, data: *mut c_void) {
    result_of((), || {
        pool.open()?.user_data.store(data, Ordering::Release);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_get_user_data(pool: Pop) -> *mut c_void {
    let data = object_of(|| Ok(pool.open()?.user_data.load(Ordering::Acquire).cast_const()));
    data.cast_mut()
}
