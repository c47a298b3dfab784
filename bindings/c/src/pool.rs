//! Pools.

use core::ffi::{c_int, c_void};
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use firn_heap::collector::BackgroundCollector;
use firn_heap::{CopyError, Error, PoolKind, PoolOptions};
use firn_mapped::{FileSystems, Mapped, MappedOptions};
use firn_media::{Domain, Level, MediumError, Memory, Ticket};

use crate::collection::{Collects, Wholly};
use crate::describe::{Type, descriptor};
use crate::given::{In, Out, Text};
use crate::handle_pool::{Handed, HandlePool, Pooled};
use crate::status::{Failure, Outcome, Status, result_of, status_of};

/// `firn_pool`.
pub struct Pool {
    mark: AtomicU64,
    pub(crate) heap: firn_heap::Pool<Mapped>,
    pub(crate) collector: Mutex<Option<BackgroundCollector<Mapped>>>,
    pub(crate) collects: Collects,
    pub(crate) wholly: Wholly,
    sessions: AtomicUsize,
    handles: AtomicUsize,
}

impl Pool {
    fn users(&self, by: By) -> &AtomicUsize {
        match by {
            By::Session => &self.sessions,
            By::Handle => &self.handles,
        }
    }
}

/// What uses a pool.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Session,
    Handle,
}

/// A use of a pool by a session or a handle. The pool stays open as long.
pub(crate) struct Used {
    pool: *const Pool,
    by: By,
}

impl Used {
    pub(crate) fn new(pool: &Pool, by: By) -> Self {
        pool.users(by).fetch_add(1, Ordering::AcqRel);
        Self { pool, by }
    }
}

impl Deref for Used {
    type Target = Pool;

    #[inline(always)]
    fn deref(&self) -> &Pool {
        // SAFETY: the pool lies in the handle pool, whose memory stays, and `firn_close` refuses to take it from there
        // while it counts this user.
        unsafe { &*self.pool }
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.users(self.by).fetch_sub(1, Ordering::AcqRel);
    }
}

impl Pooled for Pool {
    const NAME: &'static str = "pool";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.heap.is_ours()
    }
}

static FREE_HANDLES: HandlePool<Pool> = HandlePool::new();

impl Pool {
    pub(crate) fn collector(&self) -> MutexGuard<'_, Option<BackgroundCollector<Mapped>>> {
        self.collector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// `firn_options`. The enumerations of C are numbers here: a program may pass any.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub layout: Text<'a>,
    pub max_bytes: u64,
    pub capacity: u64,
    pub sessions: u32,
    pub kind: c_int,
    pub domain: c_int,
    pub any_file_system: c_int,
    pub level: c_int,
    pub group_ms: u32,
    pub memory_bytes: u64,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            layout: Text::NULL,
            max_bytes: 0,
            capacity: 0,
            sessions: 0,
            kind: 0,
            domain: 0,
            any_file_system: 0,
            level: 0,
            group_ms: 0,
            memory_bytes: 0,
        }
    }
}

/// The layout's name; null is an empty name.
pub(crate) fn layout(of: Text<'_>) -> Outcome<&str> {
    match of.is_null() {
        true => Ok(""),
        false => of.text("the layout"),
    }
}

/// Options of the heap and the mapping, from a program's.
fn options(of: In<'_, Options<'_>>) -> Outcome<(PoolOptions, MappedOptions)> {
    let of = of.get().unwrap_or_default();
    let mut heap = PoolOptions::new(layout(of.layout)?);
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
        1 => mapped.domain(Domain::Adr),
        2 => mapped.domain(Domain::Eadr),
        3 => mapped.domain(Domain::Process),
        4 => mapped.domain(Domain::Logged),
        domain => {
            return Err(Failure::invalid(format!(
                "the domain must be from 0 to 4, not {domain}"
            )));
        }
    };
    mapped = mapped.level(match of.level {
        0 => Level::Sync,
        1 => Level::Written,
        2 => Level::Group(Duration::from_millis(of.group_ms.into())),
        level => {
            return Err(Failure::invalid(format!(
                "the level must be 0, 1 or 2, not {level}"
            )));
        }
    });
    mapped.log.memory_bytes = (of.memory_bytes > 0).then_some(of.memory_bytes);
    if of.any_file_system != 0 {
        mapped = mapped.file_systems(FileSystems::Any);
    }
    Ok((heap, mapped))
}

/// Hands a pool out.
fn hand_out(heap: firn_heap::Pool<Mapped>, collects: Collects) -> Handed<Pool> {
    FREE_HANDLES.hand_out(Pool {
        mark: AtomicU64::new(0),
        heap,
        collector: Mutex::new(None),
        collects,
        wholly: Wholly::default(),
        sessions: AtomicUsize::new(0),
        handles: AtomicUsize::new(0),
    })
}

fn check_room<T>(to: &Out<'_, T>) -> Outcome<()> {
    match to.is_null() {
        true => Err(Failure::invalid(
            "the pointer that receives the pool is null",
        )),
        false => Ok(()),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_create(
    at: Text<'_>,
    how: In<'_, Options<'_>>,
    pool: Out<'_, Handed<Pool>>,
) -> Status {
    status_of(|| {
        check_room(&pool)?;
        let collects = Collects::asked_for()?;
        let (heap, mapped) = options(how)?;
        let medium = match at.is_null() {
            true => Mapped::anonymous(0, &mapped)?,
            false => Mapped::create(at.path()?, 0, &mapped)?,
        };
        let made = firn_heap::Pool::create(medium, &heap)?;
        pool.put(hand_out(made, collects));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_wait_durable(pool: Handed<Pool>, ticket: u64) -> Status {
    status_of(|| {
        let medium = pool.open()?.heap.medium();
        Ok(medium.wait_durable(Ticket(ticket)).map_err(Error::from)?)
    })
}

/// What a C program gets back with a call; it answers for what that leads to, in whatever thread.
struct With(*mut c_void);

// SAFETY: the pointer is not used here. `firn_when_durable` says that the call comes in another thread.
unsafe impl Send for With {}

impl With {
    fn given(self) -> *mut c_void {
        self.0
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_when_durable(
    pool: Handed<Pool>,
    ticket: u64,
    call: Option<extern "C" fn(*mut c_void, Status)>,
    with: *mut c_void,
) -> Status {
    status_of(|| {
        let medium = pool.open()?.heap.medium();
        let call = call.ok_or_else(|| Failure::invalid("there is nothing to call: it is null"))?;
        let with = With(with);
        let known = Box::new(move |durable: Result<(), MediumError>| {
            call(
                with.given(),
                status_of(|| Ok(durable.map_err(Error::from)?)),
            );
        });
        medium.when_durable(Ticket(ticket), known);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_newest_ticket(pool: Handed<Pool>) -> u64 {
    result_of(0, || Ok(pool.open()?.heap.medium().commit().0))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_durable_ticket(pool: Handed<Pool>) -> u64 {
    result_of(0, || Ok(pool.open()?.heap.medium().durable().0))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_open(
    at: Text<'_>,
    how: In<'_, Options<'_>>,
    pool: Out<'_, Handed<Pool>>,
) -> Status {
    status_of(|| {
        check_room(&pool)?;
        let collects = Collects::asked_for()?;
        let ((heap, mapped), at) = (options(how)?, at.path()?);
        let found = firn_heap::Pool::open(Mapped::open(at, &mapped)?, &heap)?;
        pool.put(hand_out(found, collects));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_open_read_only(
    at: Text<'_>,
    how: In<'_, Options<'_>>,
    pool: Out<'_, Handed<Pool>>,
) -> Status {
    status_of(|| {
        check_room(&pool)?;
        let ((heap, mapped), at) = (options(how)?, at.path()?);
        let medium = Mapped::open_read_only(at, &mapped)?;
        let found = firn_heap::Pool::open_read_only(medium, &heap.layout)?;
        pool.put(hand_out(found, Collects::WhenAsked));
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

/// Called for each loss. The text lives until the function returns.
pub type Tell = extern "C" fn(what: Text<'_>, context: *mut c_void);

#[unsafe(no_mangle)]
pub extern "C" fn firn_salvage(
    at: Text<'_>,
    new: Text<'_>,
    how: In<'_, Options<'_>>,
    tell: Option<Tell>,
    context: *mut c_void,
    numbers: Out<'_, Salvaged>,
) -> Status {
    status_of(|| {
        let ((heap, mapped), at, new) = (options(how)?, at.path()?, new.path()?);
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
            let what: &CStr = &what;
            if let Some(tell) = tell {
                tell(what.into(), context);
            }
        }
        numbers.put(Salvaged {
            objects: salvaged.objects,
            bytes: salvaged.bytes,
            lost_references: salvaged.lost_references,
            lost_roots: salvaged.lost_roots.len() as u64,
            findings: salvaged.findings.len() as u64,
        });
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

/// Errors: sessions or handles are open.
fn refuse_used(pool: &Pool) -> Outcome<()> {
    let open = |by| pool.users(by).load(Ordering::Acquire);
    let count = |open: usize, name: &str| match open {
        1 => format!("1 {name} of the pool is"),
        _ => format!("{open} {name}s of the pool are"),
    };
    let (sessions, handles) = (open(By::Session), open(By::Handle));
    let mut told = Vec::new();
    if sessions > 0 {
        let open = count(sessions, "session");
        told.push(format!(
            "{open} open: close each in its thread (firn_session_close)"
        ));
    }
    if handles > 0 {
        let open = count(handles, "handle");
        told.push(format!("{open} there: drop them (firn_handle_drop)"));
    }
    match told.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(
            Status::Busy,
            format!("{}; then close the pool", told.join("; ")),
        )),
    }
}

/// # Safety
///
/// As the header asks: no thread uses the pool meanwhile, or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_close(pool: Handed<Pool>) -> Status {
    status_of(|| {
        if pool.is_null() {
            return Ok(());
        }
        let it = pool.open()?;
        refuse_used(it)?;
        // If the collector's thread gave up, that does not keep a pool from being closed.
        drop(it.collector().take());
        it.heap.clone().close()?;
        // SAFETY: no session or handle refers to it (checked), and the header asks that no other call is under way.
        drop(unsafe { FREE_HANDLES.take_back(pool) }?);
        Ok(())
    })
}

/// Bytes beyond which a pool does not grow; zero if only its capacity limits it, and for an invalid pool.
#[unsafe(no_mangle)]
pub extern "C" fn firn_limit(pool: Handed<Pool>) -> u64 {
    result_of(0, || Ok(pool.open()?.heap.limit_bytes().unwrap_or(0)))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_sync(pool: Handed<Pool>) -> Status {
    status_of(|| Ok(pool.open()?.heap.sync()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_register(pool: Handed<Pool>, of: In<'static, Type>) -> Status {
    status_of(|| {
        let (it, descriptor) = (pool.open()?, descriptor(of)?);
        it.heap.register_described(descriptor)?;
        Ok(())
    })
}

/// `firn_convert`.
pub type Convert = extern "C" fn(*const c_void, *mut c_void, *mut c_void);

#[unsafe(no_mangle)]
pub extern "C" fn firn_migrate(
    pool: Handed<Pool>,
    from: In<'static, Type>,
    to: In<'static, Type>,
    convert: Option<Convert>,
    argument: *mut c_void,
    objects: Out<'_, u64>,
) -> Status {
    status_of(|| {
        let (it, types) = (pool.open()?, [descriptor(from)?, descriptor(to)?]);
        let Some(convert) = convert else {
            return Err(Failure::invalid("the conversion function is null"));
        };
        // Both slices begin at a word, and are as long as an object of their type.
        let turned = it.heap.migrate_described(types, |old, new| {
            convert(old.as_ptr().cast(), new.as_mut_ptr().cast(), argument);
        })?;
        objects.put(turned);
        Ok(())
    })
}
