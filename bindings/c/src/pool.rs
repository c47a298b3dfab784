//! Pools.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use firn_heap::collector::BackgroundCollector;
use firn_heap::{CopyError, PoolKind, PoolOptions};
use firn_mapped::{FileSystems, Mapped, MappedOptions};
use firn_media::Domain;

use crate::collection::{Collects, Wholly};
use crate::describe::{Type, descriptor, text};
use crate::shelf::{Shelf, Shelved, open};
use crate::status::{Failure, Outcome, Status, result_of, status_of};

/// `firn_pool`.
pub struct Pool {
    mark: AtomicU64,
    pub(crate) heap: firn_heap::Pool<Mapped>,
    pub(crate) collector: Mutex<Option<BackgroundCollector<Mapped>>>,
    pub(crate) collects: Collects,
    pub(crate) wholly: Wholly,
    /// Sessions and handles.
    pub(crate) users: AtomicUsize,
}

impl Shelved for Pool {
    const NAME: &'static str = "pool";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.heap.is_ours()
    }
}

static SHELF: Shelf<Pool> = Shelf::new();

impl Pool {
    pub(crate) fn collector(&self) -> MutexGuard<'_, Option<BackgroundCollector<Mapped>>> {
        self.collector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// `firn_options`. What are enumerations in C are numbers here: a program may pass any.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub layout: *const c_char,
    pub max_bytes: u64,
    pub capacity: u64,
    pub sessions: u32,
    pub kind: c_int,
    pub domain: c_int,
    pub any_file_system: c_int,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            layout: core::ptr::null(),
            max_bytes: 0,
            capacity: 0,
            sessions: 0,
            kind: 0,
            domain: 0,
            any_file_system: 0,
        }
    }
}

/// What a program's options say.
///
/// # Safety
///
/// The pointer is null or leads to options whose layout is null or text.
unsafe fn options(of: *const Options) -> Outcome<(PoolOptions, MappedOptions)> {
    // SAFETY: the caller says so.
    let of = unsafe { of.as_ref() }.copied().unwrap_or_default();
    let layout = match of.layout.is_null() {
        true => String::new(),
        // SAFETY: the caller says so of the layout.
        false => unsafe { text(of.layout, "the layout") }?,
    };
    let mut heap = PoolOptions::new(&layout);
    heap.max_bytes = (of.max_bytes > 0).then_some(of.max_bytes);
    if of.sessions > 0 {
        heap.lanes = of.sessions as usize;
    }
    heap.kind = match of.kind {
        0 => PoolKind::Traced,
        1 => PoolKind::Explicit,
        kind => {
            return Err(Failure::invalid(format!(
                "the pool's kind must be 0 or 1, not {kind}"
            )));
        }
    };
    let mut mapped = MappedOptions::default();
    if of.capacity > 0 {
        mapped = mapped.capacity(of.capacity);
    }
    mapped = match of.domain {
        0 => mapped,
        1 => mapped.assume_persistent(Domain::Adr),
        2 => mapped.assume_persistent(Domain::Eadr),
        domain => {
            return Err(Failure::invalid(format!(
                "the domain must be 0, 1 or 2, not {domain}"
            )));
        }
    };
    if of.any_file_system != 0 {
        mapped = mapped.file_systems(FileSystems::Any);
    }
    Ok((heap, mapped))
}

/// # Safety
///
/// The pointer is null or leads to bytes that end with a zero, for as long as the path is used.
pub(crate) unsafe fn path<'a>(pointer: *const c_char) -> Outcome<&'a Path> {
    if pointer.is_null() {
        return Err(Failure::invalid("the path is null"));
    }
    // SAFETY: the caller says so.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Hands a pool out.
///
/// # Safety
///
/// `to` leads to room for a pointer.
unsafe fn hand_out(heap: firn_heap::Pool<Mapped>, collects: Collects, to: *mut *mut Pool) {
    let pool = SHELF.hand_out(Pool {
        mark: AtomicU64::new(0),
        heap,
        collector: Mutex::new(None),
        collects,
        wholly: Wholly::default(),
        users: AtomicUsize::new(0),
    });
    // SAFETY: the caller says so.
    unsafe { to.write(pool.as_ptr()) };
}

fn check_room<T>(to: *mut *mut T) -> Outcome<()> {
    match to.is_null() {
        true => Err(Failure::invalid(
            "the pointer that receives the pool is null",
        )),
        false => Ok(()),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_create(
    at: *const c_char,
    how: *const Options,
    pool: *mut *mut Pool,
) -> Status {
    status_of(|| {
        check_room(pool)?;
        let collects = Collects::asked_for()?;
        // SAFETY: as the header asks of the options and the path.
        let (heap, mapped) = unsafe { options(how) }?;
        if at.is_null() {
            let made = firn_heap::Pool::create(Mapped::anonymous(0, &mapped)?, &heap)?;
            // SAFETY: it is not null, and the header asks for room.
            unsafe { hand_out(made, collects, pool) };
            return Ok(());
        }
        // SAFETY: as above.
        let at = unsafe { path(at) }?;
        let made = firn_heap::Pool::create(Mapped::create(at, 0, &mapped)?, &heap)?;
        // SAFETY: as above.
        unsafe { hand_out(made, collects, pool) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_open(
    at: *const c_char,
    how: *const Options,
    pool: *mut *mut Pool,
) -> Status {
    status_of(|| {
        check_room(pool)?;
        let collects = Collects::asked_for()?;
        // SAFETY: as the header asks of the options and the path.
        let ((heap, mapped), at) = unsafe { (options(how)?, path(at)?) };
        let found = firn_heap::Pool::open(Mapped::open(at, &mapped)?, &heap)?;
        // SAFETY: it is not null, and the header asks for room.
        unsafe { hand_out(found, collects, pool) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_open_read_only(
    at: *const c_char,
    how: *const Options,
    pool: *mut *mut Pool,
) -> Status {
    status_of(|| {
        check_room(pool)?;
        // SAFETY: as the header asks of the options and the path.
        let ((heap, mapped), at) = unsafe { (options(how)?, path(at)?) };
        let medium = Mapped::open_read_only(at, &mapped)?;
        let found = firn_heap::Pool::open_read_only(medium, &heap.layout)?;
        // SAFETY: it is not null, and the header asks for room.
        unsafe { hand_out(found, Collects::WhenAsked, pool) };
        Ok(())
    })
}

/// `firn_salvaged`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Salvaged {
    pub objects: u64,
    pub bytes: u64,
    pub lost_references: u64,
    pub lost_roots: u64,
    pub findings: u64,
}

/// What hears of each loss.
pub type Tell = unsafe extern "C" fn(what: *const c_char, context: *mut c_void);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_salvage(
    at: *const c_char,
    new: *const c_char,
    how: *const Options,
    tell: Option<Tell>,
    context: *mut c_void,
    numbers: *mut Salvaged,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of the options and the paths.
        let ((heap, mapped), at, new) = unsafe { (options(how)?, path(at)?, path(new)?) };
        let target = Mapped::create(new, 0, &mapped)?;
        let torn = Mapped::open_private(at, &mapped)?;
        let (pool, salvaged) =
            firn_heap::Pool::salvage(torn, target, &heap.layout, &mut |_| {}).map_err(of_copy)?;
        pool.close()?;
        let roots = salvaged.lost_roots.iter();
        let lost = (salvaged.findings.iter().map(ToString::to_string))
            .chain(roots.map(|root| format!("root `{root}`, and what only it leads to, is lost")));
        for what in lost {
            let what = CString::new(what.replace('\0', "\u{fffd}")).unwrap_or_default();
            if let Some(tell) = tell {
                // SAFETY: the header asks for a function that can be called so; the text lives until it returns.
                unsafe { tell(what.as_ptr(), context) };
            }
        }
        if !numbers.is_null() {
            let found = Salvaged {
                objects: salvaged.objects,
                bytes: salvaged.bytes,
                lost_references: salvaged.lost_references,
                lost_roots: salvaged.lost_roots.len() as u64,
                findings: salvaged.findings.len() as u64,
            };
            // SAFETY: it is not null, and the header asks for room.
            unsafe { numbers.write(found) };
        }
        Ok(())
    })
}

fn of_copy(error: CopyError) -> Failure {
    match error {
        CopyError::Target(error) => error.into(),
        CopyError::Objects(error) => error.into(),
        other => Failure::new(Status::Damaged, other.to_string()),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_close(pool: *mut Pool) -> Status {
    status_of(|| {
        if pool.is_null() {
            return Ok(());
        }
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        let users = it.users.load(Ordering::Acquire);
        if users > 0 {
            return Err(Failure::new(
                Status::Busy,
                format!("{users} sessions and handles of the pool are open; close them first"),
            ));
        }
        // What made its thread give up does not keep a pool from being closed.
        drop(it.collector().take());
        it.heap.clone().close()?;
        // SAFETY: it is open, and the header asks that nobody uses it meanwhile.
        drop(unsafe { SHELF.take_back(pool) });
        Ok(())
    })
}

/// Bytes beyond which a pool does not grow; zero where only its capacity says, and of a pool that is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_limit(pool: *mut Pool) -> u64 {
    result_of(0, || {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        Ok(it.heap.limit_bytes().unwrap_or(0))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_sync(pool: *mut Pool) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        it.heap.sync()?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_register(pool: *mut Pool, of: *const Type) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of pools and types.
        let (it, descriptor) = unsafe { (open(pool)?, descriptor(of)?) };
        it.heap.register_described(descriptor)?;
        Ok(())
    })
}

/// `firn_convert`.
pub type Convert = unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_migrate(
    pool: *mut Pool,
    from: *const Type,
    to: *const Type,
    convert: Option<Convert>,
    argument: *mut c_void,
    objects: *mut u64,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of pools and types.
        let (it, types) = unsafe { (open(pool)?, [descriptor(from)?, descriptor(to)?]) };
        let Some(convert) = convert else {
            return Err(Failure::invalid("the conversion function is null"));
        };
        let turned = it.heap.migrate_described(types, |old, new| {
            // SAFETY: the function reads the bytes of an object of the one type and writes those of one of the
            // other, as the header asks of it; both slices begin at a word and are as long.
            unsafe { convert(old.as_ptr().cast(), new.as_mut_ptr().cast(), argument) };
        })?;
        // SAFETY: null or room for a number, as the header asks.
        if let Some(objects) = unsafe { objects.as_mut() } {
            *objects = turned;
        }
        Ok(())
    })
}
