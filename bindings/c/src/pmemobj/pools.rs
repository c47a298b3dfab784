//! Pools.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use firn_heap::collector::{BackgroundCollector, CollectorOptions};
use firn_heap::{LogKind, Obj, PoolKind, PoolOptions, TypeId, Untyped};
use firn_mapped::{FileSystems, Mapped, MappedOptions};
use firn_media::{Domain, Memory, Space};
use firn_units::VirtAddr;

use super::left::Left;
use super::local::local;
use super::lock::Locks;
use super::thread::{Slot, forget_pointers_in_children, in_operation, leave, passing};
use super::{Oid, TYPE_BYTES, errno_of};
use crate::collection::{Collects, Wholly};
use crate::describe::text;
use crate::pool::path;
use crate::shelf::{Shelf, Shelved, open};
use crate::status::{Failure, Outcome, Status, firn_last_status, object_of, result_of};

/// The name of the type of all objects.
const TYPE: &str = "pmemobj object";
/// The name of the root under which the program's root object lies.
pub(crate) const ROOT: &str = "pmemobj root";

/// A collector that watches a pool, and how.
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
    /// One root object, made by one thread.
    root: Mutex<()>,
    /// Numbers of types whose objects may not move.
    pinned: RwLock<Vec<u64>>,
    /// Whether there are any.
    pins: AtomicBool,
    pub(crate) collector: Mutex<Option<Watching>>,
    collects: Collects,
    wholly: Wholly,
    pub(crate) left: Left,
    pub(crate) locks: Locks,
    /// What each thread has of it.
    pub(crate) threads: Mutex<Vec<Arc<Slot>>>,
    user_data: AtomicPtr<c_void>,
}

impl Shelved for Pobj {
    const NAME: &'static str = "pool";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.heap.is_ours()
    }
}

static SHELF: Shelf<Pobj> = Shelf::new();

/// Open pools, by their ids.
static POOLS: RwLock<Vec<(u64, Known)>> = RwLock::new(Vec::new());

#[derive(Clone, Copy)]
struct Known(*const Pobj);
// SAFETY: pools are used by all threads.
unsafe impl Send for Known {}
// SAFETY: as above.
unsafe impl Sync for Known {}

/// The pool with an id. Its memory stays when it is closed.
#[inline]
pub(crate) fn pool_with_id(id: u64) -> Outcome<&'static Pobj> {
    // SAFETY: it is null, or came from the shelf.
    match unsafe { open(local().here.get().0) } {
        Ok(last) if last.id == id => Ok(last),
        _ => look_up(id),
    }
}

fn look_up(id: u64) -> Outcome<&'static Pobj> {
    let pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    let found = pools.iter().find(|(known, _)| *known == id);
    match found {
        // SAFETY: it came from the shelf.
        Some((_, Known(pool))) => unsafe { open(*pool) },
        None => Err(Failure::invalid(format!(
            "no open pool has the id {id:#x}; its pool was closed, or the OID is invalid"
        ))),
    }
}

/// The pool around an address, for a signal handler, which may not wait: `None` also while pools are opened or closed.
pub(crate) fn pool_around_now(address: usize) -> Option<&'static Pobj> {
    let pools = POOLS.try_read().ok()?;
    let known = pools.iter().map(|(_, Known(pool))| {
        // SAFETY: it came from the shelf.
        unsafe { pool.as_ref() }
    });
    let around = |pool: &&Pobj| (address as u64).wrapping_sub(pool.base) < pool.capacity;
    known.flatten().find(around)
}

/// The pool in whose memory a byte lies.
pub(crate) fn pool_around(pointer: *const c_void) -> Outcome<&'static Pobj> {
    let pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    for (_, Known(pool)) in pools.iter() {
        // SAFETY: it came from the shelf.
        let pool = unsafe { open(*pool) }?;
        if pool.address(pointer).is_some() {
            return Ok(pool);
        }
    }
    Err(Failure::invalid(format!(
        "{pointer:p} is not in an open pool"
    )))
}

impl Pobj {
    /// Where in the pool a byte lies; `None` for one outside.
    pub(crate) fn address(&self, pointer: *const c_void) -> Option<VirtAddr> {
        let at = (pointer.addr() as u64).wrapping_sub(self.base);
        (at < self.capacity).then_some(VirtAddr(at))
    }

    /// Where a range of `len` bytes lies in the pool.
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
        self.guard_what_was_left();
        Ok(())
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

    /// Keeps objects of a type that are allocated from now on where they are.
    pub(crate) fn pin(&self, type_num: u64) {
        let pinned = self.pinned.write();
        pinned
            .unwrap_or_else(PoisonError::into_inner)
            .push(type_num);
        self.pins.store(true, Ordering::Release);
    }
}

/// Failures of pools are those of `errno.h`, by the thread's last status.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_errno() -> c_int {
    errno_of(firn_last_status())
}

fn options(layout: &str) -> PoolOptions {
    PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        ..PoolOptions::new(layout)
    }
}

/// How a pool of so many bytes is mapped: with addresses for what is emptied and kept, and as a program that was not
/// written for Firn says in its environment.
fn mapped_options(bytes: u64) -> Outcome<MappedOptions> {
    let addresses = MappedOptions::DEFAULT_CAPACITY.max(bytes.saturating_mul(ADDRESSES));
    let mut options = MappedOptions::default().capacity(addresses);
    match std::env::var("FIRN_ANY_FILE_SYSTEM").as_deref() {
        Err(_) | Ok("" | "0") => {}
        Ok("1") => options = options.file_systems(FileSystems::Any),
        Ok(other) => {
            return Err(Failure::invalid(format!(
                "FIRN_ANY_FILE_SYSTEM must be `0` or `1`, not `{other}`"
            )));
        }
    }
    match std::env::var("FIRN_ASSUME_PERSISTENT").as_deref() {
        Err(_) | Ok("") => Ok(options),
        Ok("adr") => Ok(options.assume_persistent(Domain::Adr)),
        Ok("eadr") => Ok(options.assume_persistent(Domain::Eadr)),
        Ok(other) => Err(Failure::invalid(format!(
            "FIRN_ASSUME_PERSISTENT must be `adr` or `eadr`, not `{other}`"
        ))),
    }
}

fn hand_out(heap: firn_heap::Pool<Mapped>) -> Outcome<*mut Pobj> {
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
    let pool = SHELF.hand_out(Pobj {
        mark: AtomicU64::new(0),
        id,
        base,
        capacity,
        what,
        root: Mutex::new(()),
        pinned: RwLock::default(),
        pins: AtomicBool::new(false),
        collector: Mutex::new(collector),
        collects,
        wholly: Wholly::default(),
        left: Left::new()?,
        locks: Locks::default(),
        threads: Mutex::new(Vec::new()),
        user_data: AtomicPtr::new(ptr::null_mut()),
        heap,
    });
    let mut pools = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    pools.push((id, Known(pool.as_ptr())));
    drop(pools);
    // SAFETY: it was handed out just now.
    let it = unsafe { pool.as_ref() };
    passing(it, || it.pin_root())?;
    Ok(pool.as_ptr())
}

/// # Safety
///
/// The pointer is null or leads to text.
unsafe fn layout(of: *const c_char) -> Outcome<String> {
    match of.is_null() {
        true => Ok(String::new()),
        // SAFETY: the caller says so.
        false => unsafe { text(of, "the layout") },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_create(
    at: *const c_char,
    of: *const c_char,
    bytes: usize,
    mode: u32,
) -> *mut Pobj {
    result_of(ptr::null_mut(), || {
        // SAFETY: as the header asks of the path and the layout.
        let (at, layout) = unsafe { (path(at)?, layout(of)?) };
        let mut options = options(&layout);
        // A file that is there, and empty, says by its length how long the pool may become.
        let there = std::fs::metadata(at).ok();
        let most = match (bytes, &there) {
            (0, Some(file)) if file.len() > 0 => file.len(),
            (0, _) => {
                return Err(Failure::invalid(
                    "a new pool needs a size of at least PMEMOBJ_MIN_POOL",
                ));
            }
            (bytes, _) => bytes as u64,
        };
        options.max_bytes = Some(most.max(LEAST_BYTES));
        let mapped = mapped_options(most)?.mode(mode & PERMISSIONS);
        let medium = match bytes {
            0 => Mapped::create_over(at, 0, &mapped)?,
            _ => Mapped::create(at, 0, &mapped)?,
        };
        let made = firn_heap::Pool::create_unpublished(medium, &options)?;
        // What keeps it from being handed out keeps it from being found, too.
        let named = made
            .register_pairs(TYPE)
            .and_then(|_| made.publish().map(|()| made.clone()));
        hand_out(named.inspect_err(|_| made.abandon())?)
    })
}

/// How many times as many addresses a pool has as bytes: four for what is emptied and kept, and a power of two above.
const ADDRESSES: u64 = 8;

/// Those bits of a file's mode that `pmemobj_create` sets.
const PERMISSIONS: u32 = 0o777;

/// Bytes that a pool takes at least: what the program asks for is what its objects take, and the pool has tables.
const LEAST_BYTES: u64 = 32 << 20;

/// Opens a pool, with the limit that it was made with.
fn open_heap(at: &Path, layout: &str) -> Outcome<firn_heap::Pool<Mapped>> {
    // Zero where there is no file, which opening it will tell.
    let length = std::fs::metadata(at).map_or(0, |file| file.len());
    let medium = Mapped::open(at, &mapped_options(length)?)?;
    let limit = firn_heap::stored_limit(&medium).unwrap_or(0);
    // So that what is emptied and kept has addresses, too.
    let medium = match limit.saturating_mul(ADDRESSES) > medium.capacity() {
        true => {
            drop(medium);
            Mapped::open(at, &mapped_options(limit)?)?
        }
        false => medium,
    };
    Ok(firn_heap::Pool::open(medium, &options(layout))?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_open(at: *const c_char, of: *const c_char) -> *mut Pobj {
    result_of(ptr::null_mut(), || {
        // SAFETY: as the header asks of the path and the layout.
        let (at, layout) = unsafe { (path(at)?, layout(of)?) };
        hand_out(open_heap(at, &layout)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_close(pool: *mut Pobj) {
    result_of((), || {
        if pool.is_null() {
            return Ok(());
        }
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        for slot in it.threads().iter() {
            slot.check_no_transaction()?;
        }
        drop(it.collector().take());
        for slot in it.threads().drain(..) {
            slot.end();
        }
        it.let_in();
        it.heap.clone().close()?;
        let mut pools = POOLS.write().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|(id, _)| *id != it.id);
        drop(pools);
        // SAFETY: it is open, and the header asks that nobody uses it meanwhile.
        drop(unsafe { SHELF.take_back(pool) });
        Ok(())
    });
}

/// One if a pool is sound, zero if not, minus one if that cannot be found out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_check(at: *const c_char, of: *const c_char) -> c_int {
    result_of(-1, || {
        // SAFETY: as the header asks of the path and the layout.
        let (at, layout) = unsafe { (path(at)?, layout(of)?) };
        let pool = open_heap(at, &layout)?;
        let findings = pool.check()?;
        pool.close()?;
        Ok(c_int::from(findings.is_empty()))
    })
}

impl Pobj {
    /// The root object's body, as the heap knows it.
    fn root_body(&self) -> Outcome<Option<VirtAddr>> {
        in_operation(self, |guard| {
            let found = Obj::<Untyped, _>::of_root(guard.view(), ROOT)?;
            Ok(found.map(|object| object.address() + TYPE_BYTES))
        })
    }

    fn pin_root(&self) -> Outcome<()> {
        if let Some(body) = self.root_body()? {
            self.heap.pin(body)?;
        }
        Ok(())
    }

    /// The root object, of at least so many bytes; made, or made longer, if it is not.
    pub(crate) fn root_of(
        &self,
        bytes: u64,
        construct: &mut dyn FnMut(*mut c_void) -> Outcome<()>,
    ) -> Outcome<Oid> {
        let _one = self.root.lock().unwrap_or_else(PoisonError::into_inner);
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
                // SAFETY: the root names the new object, which is what the program uses from now on.
                unsafe { self.give_back(tx, body) }?;
            }
            construct(self.pointer(new + TYPE_BYTES))?;
            tx.set_root(ROOT, Some(new))?;
            Ok(new)
        })
    }

    pub(crate) fn oid(&self, at: VirtAddr) -> Oid {
        Oid {
            pool: self.id,
            offset: at.0,
        }
    }
}

/// What a program calls to fill a new object. Anything but zero undoes the allocation.
pub type Constructor =
    unsafe extern "C" fn(pool: *mut Pobj, object: *mut c_void, argument: *mut c_void) -> c_int;

/// Calls a constructor, if there is one.
pub(crate) fn construct(
    pool: *mut Pobj,
    constructor: Option<Constructor>,
    argument: *mut c_void,
    object: *mut c_void,
) -> Outcome<()> {
    let Some(constructor) = constructor else {
        return Ok(());
    };
    // SAFETY: the header asks for a function that can be called so.
    match unsafe { constructor(pool, object, argument) } {
        0 => Ok(()),
        _ => Err(Failure::new(Status::Aborted, "the constructor failed")),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_root(
    pool: *mut Pobj,
    bytes: usize,
    constructor: Option<Constructor>,
    argument: *mut c_void,
) -> Oid {
    result_of(Oid::NULL, || {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
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
pub unsafe extern "C" fn firn_pmemobj_root_size(pool: *mut Pobj) -> usize {
    result_of(0, || {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        passing(it, || match it.root_body()? {
            Some(body) => Ok(it.len_of(body)? as usize),
            None => Ok(0),
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_set_user_data(pool: *mut Pobj, data: *mut c_void) {
    result_of((), || {
        // SAFETY: as the header asks of pools.
        unsafe { open(pool) }?
            .user_data
            .store(data, Ordering::Release);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_pmemobj_get_user_data(pool: *mut Pobj) -> *mut c_void {
    let data = object_of(|| {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        Ok(it.user_data.load(Ordering::Acquire).cast_const())
    });
    data.cast_mut()
}
