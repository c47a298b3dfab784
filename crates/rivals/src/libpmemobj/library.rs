//! The opened library and a safe face on it. Its unsafe code rests on this:
//!
//! - the declarations are the headers' (`declarations.rs`);
//! - the library stays open while [`Library`] lives, the pool while [`Pool`] lives, and everything
//!   made from a pool borrows it;
//! - libpmemobj locks internally, so that any thread may call it; a transaction call in the wrong
//!   stage ends the process with a message;
//! - an [`Object`] is freed at most once: freeing consumes it, and a pool whose transaction failed,
//!   which may have taken back objects that the caller holds, is poisoned and frees no more.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::Failure;
use super::declarations::{
    Constructor, DefragResult, OID_NULL, Oid, POBJ_XADD_NO_SNAPSHOT, RawPool, TX_PARAM_NONE,
    TX_STAGE_WORK,
};

macro_rules! calls {
    ($($name:ident: $type:ty,)*) => {
        struct Calls { $($name: $type,)* }

        impl Calls {
            fn look_up(library: &libloading::Library, path: &str) -> Result<Self, Failure> {
                Ok(Self { $(
                    // SAFETY: the type is the header's declaration of this very name.
                    $name: *unsafe { library.get::<$type>(stringify!($name)) }
                        .map_err(|error| Failure::no_function(path, stringify!($name), &error))?,
                )* })
            }
        }
    };
}
super::declarations::with_calls!(calls);

/// The opened library.
pub struct Library {
    calls: Calls,
    _open: libloading::Library,
}

impl Library {
    /// Opens `name` as dlopen finds it.
    ///
    /// Errors: it is not installed, or lacks a function.
    pub fn open(name: &str) -> Result<Self, Failure> {
        // SAFETY: libpmemobj's initialisers read the environment and set up its own state; they
        // ask nothing of the process that loads them.
        let open = unsafe { libloading::Library::new(name) };
        let open = open.map_err(|error| Failure::not_installed(name, "libpmemobj1", &error))?;
        Ok(Self {
            calls: Calls::look_up(&open, name)?,
            _open: open,
        })
    }

    #[cold]
    fn refused(&self, call: &'static str) -> Failure {
        // SAFETY: the call returns a NUL-terminated string of this thread, valid until its next error.
        let said = unsafe { CStr::from_ptr((self.calls.pmemobj_errormsg)()) };
        Failure::Refused {
            call,
            said: said.to_string_lossy().into_owned(),
        }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        (code == 0).then_some(()).ok_or_else(|| self.refused(call))
    }
}

/// A pool whose file has no name any more: it vanishes when the process ends, in whatever way.
pub struct Pool<'l> {
    library: &'l Library,
    base: NonNull<u8>,
    poisoned: AtomicBool,
    /// Whether to abort the next transaction after its body.
    #[cfg(test)]
    pub(super) abort_next: AtomicBool,
}

// SAFETY: `base` is only passed to libpmemobj, which locks internally, and used to compute addresses.
unsafe impl Sync for Pool<'_> {}

impl<'l> Pool<'l> {
    /// Makes a pool in a file that does not exist yet.
    pub(super) fn create(library: &'l Library, path: &CStr, bytes: usize) -> Result<Self, Failure> {
        let (create, layout) = (library.calls.pmemobj_create, c"firn-rivals");
        // SAFETY: both strings end with NUL and live through the call.
        let base = unsafe { create(path.as_ptr(), layout.as_ptr(), bytes, 0o600) };
        let base = NonNull::new(base.cast()).ok_or_else(|| library.refused("pmemobj_create"))?;
        Ok(Self {
            library,
            base,
            poisoned: AtomicBool::new(false),
            #[cfg(test)]
            abort_next: AtomicBool::new(false),
        })
    }

    /// Allocates a zeroed object outside of a transaction.
    pub(super) fn zalloc(&self, bytes: usize) -> Result<Object<'_>, Failure> {
        let (mut oid, zalloc) = (OID_NULL, self.library.calls.pmemobj_zalloc);
        // SAFETY: the pool is open; `oid` is a valid place outside of it, which is allowed.
        let code = unsafe { zalloc(self.raw(), &mut oid, bytes, 0) };
        self.library.check("pmemobj_zalloc", code)?;
        Ok(self.object(oid, bytes))
    }

    /// Frees an object outside of a transaction.
    pub fn free(&self, object: Object<'_>) -> Result<(), Failure> {
        self.check_sound()?;
        let mut oid = object.oid;
        // SAFETY: the object was allocated, and is consumed here; `oid` may lie outside the pool.
        unsafe { (self.library.calls.pmemobj_free)(&mut oid) };
        Ok(())
    }

    /// Begins a transaction of this thread.
    #[inline]
    pub(super) fn tx_begin(&self) -> Result<(), Failure> {
        self.check_sound()?;
        let begin = self.library.calls.pmemobj_tx_begin;
        // SAFETY: the pool is open; without a jump buffer a failure is returned, not jumped out of.
        let code = unsafe { begin(self.raw(), null_mut(), TX_PARAM_NONE) };
        self.library.check("pmemobj_tx_begin", code)
    }

    /// Commits it.
    #[inline]
    pub(super) fn tx_commit(&self) -> Result<(), Failure> {
        let calls = &self.library.calls;
        // SAFETY: no memory is passed; a wrong stage ends the process.
        let code = unsafe {
            (calls.pmemobj_tx_commit)();
            (calls.pmemobj_tx_end)()
        };
        self.library.check("pmemobj_tx_end", code)
    }

    /// Aborts the transaction, however far it has come, and poisons the pool.
    #[cold]
    pub(super) fn tx_give_up(&self) {
        self.poisoned.store(true, Relaxed);
        let calls = &self.library.calls;
        // SAFETY: no memory is passed. Abort is called in the one stage that allows it; end is called in one of the
        // others, all of which allow it.
        unsafe {
            if (calls.pmemobj_tx_stage)() == TX_STAGE_WORK {
                (calls.pmemobj_tx_abort)(0);
            }
            (calls.pmemobj_tx_end)();
        }
    }

    /// Declares the pool sound after an abort, if the caller holds none of the objects that the abort took back.
    #[cfg(test)]
    pub(super) fn forgive(&self) {
        self.poisoned.store(false, Relaxed);
    }

    /// Snapshots a part of an object in this thread's transaction.
    #[inline]
    pub(super) fn tx_snapshot(&self, of: &Object, at: usize, bytes: usize) -> Result<(), Failure> {
        self.tx_add_range(of.at(at, bytes), bytes)
    }

    /// Allocates in this thread's transaction.
    #[inline]
    pub(super) fn tx_alloc(&self, bytes: usize) -> Result<Object<'_>, Failure> {
        Ok(self.object(self.tx_alloc_oid(bytes)?, bytes))
    }

    /// Allocates in this thread's transaction, and returns the reference that links hold.
    #[inline]
    pub(super) fn tx_alloc_oid(&self, bytes: usize) -> Result<Oid, Failure> {
        // SAFETY: no memory is passed; a wrong stage ends the process.
        let oid = unsafe { (self.library.calls.pmemobj_tx_alloc)(bytes, 0) };
        if oid.off == 0 {
            return Err(self.library.refused("pmemobj_tx_alloc"));
        }
        Ok(oid)
    }

    /// Frees in this thread's transaction.
    #[inline]
    pub(super) fn tx_free(&self, object: Object<'_>) -> Result<(), Failure> {
        // SAFETY: the object was allocated, and is consumed here.
        unsafe { self.tx_free_oid(object.oid) }
    }

    /// Frees in this thread's transaction the object that a reference names.
    ///
    /// # Safety
    /// `oid` names a live object of this pool, and that object is not used again.
    #[inline]
    pub(super) unsafe fn tx_free_oid(&self, oid: Oid) -> Result<(), Failure> {
        self.check_sound()?;
        // SAFETY: the object lives and is not used again, by this function's contract; a wrong stage ends the process.
        let code = unsafe { (self.library.calls.pmemobj_tx_free)(oid) };
        self.library.check("pmemobj_tx_free", code)
    }

    /// Snapshots bytes of the pool in this thread's transaction.
    #[inline]
    pub(super) fn tx_add_range(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Failure> {
        let add = self.library.calls.pmemobj_tx_add_range_direct;
        // SAFETY: a range outside of the pool is refused; a wrong stage ends the process.
        let code = unsafe { add(start.as_ptr().cast(), bytes) };
        self.library.check("pmemobj_tx_add_range_direct", code)
    }

    /// Makes this thread's commit write back bytes of the pool that hold nothing an abort would need.
    #[inline]
    pub(super) fn tx_add_unused(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Failure> {
        let add = self.library.calls.pmemobj_tx_xadd_range_direct;
        // SAFETY: a range outside of the pool is refused; a wrong stage ends the process.
        let code = unsafe { add(start.as_ptr().cast(), bytes, POBJ_XADD_NO_SNAPSHOT) };
        self.library.check("pmemobj_tx_xadd_range_direct", code)
    }

    /// Packs objects, and has every reference that is listed name its object's new place.
    ///
    /// # Safety
    /// Each is the place of a reference in this pool that names a live object; no other reference
    /// to any of these objects is used again, and no other thread uses them meanwhile.
    pub(super) unsafe fn defrag(
        &self,
        references: &mut [*mut Oid],
    ) -> Result<DefragResult, Failure> {
        self.check_sound()?;
        let mut result = DefragResult::default();
        let (at, count) = (references.as_mut_ptr(), references.len());
        // SAFETY: every reference of the list may be changed, by this function's contract; list and result live through the
        // call.
        let code =
            unsafe { (self.library.calls.pmemobj_defrag)(self.raw(), at, count, &mut result) };
        self.library.check("pmemobj_defrag", code)?;
        Ok(result)
    }

    /// The address of the pool's first byte.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    #[inline]
    fn check_sound(&self) -> Result<(), Failure> {
        let poisoned = self.poisoned.load(Relaxed);
        (!poisoned).then_some(()).ok_or(Failure::Poisoned)
    }

    fn raw(&self) -> RawPool {
        self.base.as_ptr().cast()
    }

    /// `pmemobj_direct`, without looking up the pool by its number: there is only this one.
    #[inline]
    fn object(&self, oid: Oid, bytes: usize) -> Object<'_> {
        // SAFETY: an allocated object lies in the pool's mapping, `off` bytes from its base.
        let start = unsafe { self.base.add(oid.off as usize) };
        Object {
            oid,
            start,
            bytes,
            pool: PhantomData,
        }
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        // SAFETY: opened by `create`, and nothing that borrows it is left.
        unsafe { (self.library.calls.pmemobj_close)(self.raw()) };
    }
}

/// An allocated object that only this handle can free. Dropping it leaks it.
pub struct Object<'p> {
    oid: Oid,
    start: NonNull<u8>,
    bytes: usize,
    pool: PhantomData<&'p Pool<'p>>,
}

impl Object<'_> {
    /// Sets every byte.
    #[inline]
    pub fn fill(&mut self, byte: u8) {
        // SAFETY: the object is this many bytes long, and this handle is the only one to it.
        unsafe { self.start.write_bytes(byte, self.bytes) };
    }

    /// Bytes from the pool's base: what a link holds.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.oid.off
    }

    /// The reference that links hold.
    pub(super) fn oid(&self) -> Oid {
        self.oid
    }

    /// The word at byte `at`, which is a multiple of eight.
    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: in bounds and aligned, as `at` checks. While this handle is shared, Rust accesses atomic words only,
        // and the library writes only on behalf of the thread that stores.
        unsafe { self.at(at, size_of::<u64>()).cast().as_ref() }
    }

    #[inline]
    fn at(&self, at: usize, bytes: usize) -> NonNull<u8> {
        assert!(
            at.is_multiple_of(8) && at + bytes <= self.bytes,
            "{at}, {bytes} bytes on: outside"
        );
        // SAFETY: in bounds, as asserted.
        unsafe { self.start.add(at) }
    }
}

/// Slots in the pool, each of which holds an object's OID or the null OID.
pub struct Slots<'p> {
    pool: &'p Pool<'p>,
    places: Object<'p>,
}

impl<'p> Slots<'p> {
    /// Allocates `count` empty slots.
    pub fn new(pool: &'p Pool<'p>, count: usize) -> Result<Self, Failure> {
        Ok(Self {
            pool,
            places: pool.zalloc(count * size_of::<Oid>())?,
        })
    }

    /// Allocates an object and publishes it in a slot, atomically. The slot's former content is forgotten.
    pub fn alloc(&mut self, slot: usize, bytes: usize) -> Result<(), Failure> {
        let (library, at) = (self.pool.library, self.at(slot));
        let alloc = library.calls.pmemobj_alloc;
        // SAFETY: the pool is open, the slot lies in it, and no constructor is given.
        let code = unsafe { alloc(self.pool.raw(), at, bytes, 0, None, null_mut()) };
        library.check("pmemobj_alloc", code)
    }

    /// Frees the object of a slot, if there is one, and empties the slot, atomically.
    pub fn free(&mut self, slot: usize) {
        // SAFETY: only the library writes to slots: it holds the null OID, or one that `alloc`
        // published and nothing else can free.
        unsafe { (self.pool.library.calls.pmemobj_free)(self.at(slot)) };
    }

    fn at(&self, slot: usize) -> *mut Oid {
        let bytes = size_of::<Oid>();
        self.places.at(slot * bytes, bytes).as_ptr().cast()
    }
}

impl Drop for Slots<'_> {
    fn drop(&mut self) {
        // SAFETY: this is the only handle to the slots, and it is being dropped.
        unsafe { (self.pool.library.calls.pmemobj_free)(&mut self.places.oid) };
    }
}
