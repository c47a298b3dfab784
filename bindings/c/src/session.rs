//! Sessions: a thread's access to a pool, and its open operation.

use core::any::TypeId;
use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use core::sync::atomic::AtomicU64;
use std::rc::Rc;

use firn_heap::{Error, Layout, Obj, Reading, Target, Tx, Untyped, View};
use firn_mapped::Mapped;
use firn_media::{Memory, Runtime, Space, Ticket};
use firn_units::VirtAddr;

use crate::collection::Collects;
use crate::containers::Found;
use crate::describe::Type;
use crate::given::{In, Out};
use crate::handle_pool::{Handed, HandlePool, Pooled};
use crate::operation::{Of, Typed, this_thread};
use crate::pool::{By, Pool, Used};
use crate::status::{Failure, Outcome, Status, result_of, status_of};
use crate::types::Types;

/// Bytes before an object.
const HEADER_BYTES: u64 = 8;
/// Addresses of objects' headers are multiples of this.
const ALIGNMENT: u64 = 16;

const QUIET: u64 = 1;
const MOVING: u64 = 2;
const STORED: u64 = 4;

/// `firn_session`, followed by the fields that the header does not show.
#[repr(C)]
pub struct Session {
    objects: *const u8,
    mask: u64,
    pool_bits: u64,
    flags: Cell<u64>,
    // The library's own from here on.
    mark: AtomicU64,
    thread: usize,
    base: u64,
    capacity: u64,
    pub(crate) operation: Typed,
    types: Types,
    /// How many operations there were.
    operations: Cell<u64>,
    /// Whether everything moves when an operation has ended.
    moves_everything: bool,
    /// Objects that an operation has looked up, by their addresses.
    known: [Cell<Option<Known>>; KNOWN],
    /// Memory for the results of calls on collections.
    pub(crate) found: RefCell<Found>,
    // Declared after the operation, which ends in it.
    pool: Used,
}

/// An object that was found to exist and to be of its type, in a read-only operation: this stays true there.
#[derive(Clone, Copy, PartialEq)]
struct Known {
    operation: u64,
    at: usize,
    of: TypeId,
}

/// Number of objects remembered.
const KNOWN: usize = 8;

impl Pooled for Session {
    const NAME: &'static str = "session";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.heap().is_ours()
    }
}

static FREE_HANDLES: HandlePool<Session> = HandlePool::new();

/// The session that a program's pointer leads to, on its thread.
#[inline(always)]
pub(crate) fn session<'a>(handed: Handed<Session>) -> Outcome<&'a Session> {
    let it = handed.open()?;
    match it.thread == this_thread() {
        true => Ok(it),
        false => Err(wrong_thread()),
    }
}

#[cold]
fn wrong_thread() -> Failure {
    Failure::misuse("the session belongs to another thread; open one on this thread")
}

impl Session {
    #[inline(always)]
    pub(crate) fn heap(&self) -> &firn_heap::Pool<Mapped> {
        &self.pool.heap
    }

    #[inline(always)]
    pub(crate) fn pool(&self) -> &Used {
        &self.pool
    }

    /// The address of an object's bytes.
    pub(crate) fn pointer<'g, T, V: View<'g>>(&self, object: Obj<'g, T, V>) -> *const c_void {
        self.objects
            .wrapping_add(object.address().0 as usize)
            .cast()
    }

    /// An object's pointer; null for none.
    pub(crate) fn pointer_or_null<'g, T, V: View<'g>>(
        &self,
        object: Option<Obj<'g, T, V>>,
    ) -> *const c_void {
        object.map_or(core::ptr::null(), |object| self.pointer(object))
    }

    /// The address of a byte in the pool; `None` if it lies outside.
    #[inline(always)]
    pub(crate) fn address(&self, pointer: *const c_void) -> Option<VirtAddr> {
        self.address_of(pointer.addr())
    }

    /// The pool address for an address of the process; `None` if it lies outside.
    #[inline(always)]
    pub(crate) fn address_of(&self, address: usize) -> Option<VirtAddr> {
        let at = (address as u64).wrapping_sub(self.base);
        (at < self.capacity).then_some(VirtAddr(at))
    }

    /// The object whose bytes a program's pointer leads to.
    pub(crate) fn object<'g, V: View<'g, Medium = Mapped>>(
        &self,
        view: V,
        pointer: *const c_void,
    ) -> Outcome<Obj<'g, Untyped, V>> {
        match self.address(pointer) {
            Some(at) if at.0 > HEADER_BYTES => Ok(Obj::at(view, VirtAddr(at.0 - HEADER_BYTES))?),
            _ => Err(not_here(pointer)),
        }
    }

    /// The object of this type whose bytes a program's pointer leads to. A read-only operation checks it once.
    #[inline(always)]
    pub(crate) fn typed<'g, T: Target + 'static, V: View<'g, Medium = Mapped>>(
        &self,
        view: V,
        pointer: *const c_void,
    ) -> Outcome<Obj<'g, T, V>> {
        let known = Known {
            operation: self.operations.get(),
            at: pointer.addr(),
            of: TypeId::of::<T>(),
        };
        let place = &self.known[pointer.addr() / ALIGNMENT as usize % KNOWN];
        if place.get() == Some(known)
            && let Some(at) = self.address(pointer)
        {
            return Ok(Obj::known(view, VirtAddr(at.0 - HEADER_BYTES)));
        }
        let found = self.object(view, pointer)?.typed()?;
        if !self.operation.is_in_transaction() {
            place.set(Some(known));
        }
        Ok(found)
    }

    /// The object of a pointer; `None` for null.
    pub(crate) fn object_or_null<'g, V: View<'g, Medium = Mapped>>(
        &self,
        view: V,
        pointer: *const c_void,
    ) -> Outcome<Option<Obj<'g, Untyped, V>>> {
        match pointer.is_null() {
            true => Ok(None),
            false => self.object(view, pointer).map(Some),
        }
    }

    /// Calls `body` in the transaction. If it fails, the transaction cannot be committed.
    #[inline]
    pub(crate) fn change<R>(&self, body: impl FnOnce(Tx<'_, Mapped>) -> Outcome<R>) -> Outcome<R> {
        self.operation.change(|tx| {
            self.flags.set(self.flags.get() | STORED);
            body(tx)
        })
    }

    /// An argument of a call that changes something. If the argument is refused, the call has failed, and the
    /// transaction cannot be committed.
    #[inline]
    pub(crate) fn given<R>(&self, argument: Outcome<R>) -> Outcome<R> {
        if let Err(failure) = &argument {
            self.operation.fail(failure);
        }
        argument
    }

    /// The outcome of a call that reads. If the call would have had to wait, its transaction has not seen the data, and
    /// is not committed.
    #[inline(always)]
    pub(crate) fn looked<R>(&self, outcome: Outcome<R>) -> Outcome<R> {
        if let Err(failure) = &outcome {
            self.operation.failed_to_read(failure);
        }
        outcome
    }

    /// Calls `body` in a reading operation.
    #[inline]
    pub(crate) fn reading<R>(
        &self,
        body: impl FnOnce(Reading<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        self.operation.reading(body)
    }

    /// The layout of a program's type in the pool, registered if it is new.
    #[inline(always)]
    pub(crate) fn layout(&self, of: In<'static, Type>) -> Outcome<Rc<Layout>> {
        self.types.layout(self.heap(), of)
    }

    /// The registry's layout of an object's type.
    #[inline]
    pub(crate) fn layout_of<'g, V: View<'g>>(
        &self,
        object: Obj<'g, Untyped, V>,
    ) -> Outcome<Rc<Layout>> {
        let known = self.types.numbered(self.heap(), object.type_id());
        known.ok_or_else(|| {
            Failure::new(
                Status::WrongType,
                "the object has none of the program's types: it holds bytes, or is an array of references",
            )
        })
    }

    #[inline]
    fn begin_read(&self) -> Outcome<()> {
        self.operation.begin_read(|moving| self.begun(moving))
    }

    #[inline]
    fn end_read(&self) -> Outcome<()> {
        let ended = self.operation.end_read()?;
        self.ended(ended);
        Ok(())
    }

    #[inline]
    fn begin_transaction(&self) -> Outcome<()> {
        self.operation
            .begin_transaction(|moving| self.begun(moving))
    }

    /// Commits, and waits until that is as durable as the pool's level says: outside the operation, so that nobody else
    /// waits for the disk.
    #[inline]
    fn commit(&self) -> Outcome<()> {
        let ticket = self.commit_deferred()?;
        let medium = self.heap().medium();
        Ok(medium
            .wait_at(ticket, medium.level())
            .map_err(Error::from)?)
    }

    #[inline]
    fn commit_deferred(&self) -> Outcome<Ticket> {
        let (ended, result) = self.operation.commit();
        self.ended(ended);
        result
    }

    fn abort(&self) -> Outcome<()> {
        let ended = self.operation.abort()?;
        self.ended(ended);
        Ok(())
    }

    /// Notes that an operation has begun.
    #[inline(always)]
    fn begun(&self, moving: bool) {
        self.operations.set(self.operations.get() + 1);
        self.flags.set(if moving { MOVING } else { 0 });
    }

    /// If the operation has ended, the thread holds no pointers, and with `FIRN_COLLECT=safepoints` everything moves.
    #[inline(always)]
    fn ended(&self, what: Of) {
        if let Of::Part = what {
            return;
        }
        self.flags.set(QUIET);
        if self.moves_everything {
            // A failed collection does not change the operation's outcome.
            let _ = self.pool.wholly.collect(self.heap());
        }
    }

    /// Rolls back transactions and nested parts until only `depth` are open.
    fn abort_to(&self, depth: usize) {
        while self.operation.depth() > depth && self.abort().is_ok() {}
    }
}

#[cold]
fn not_here(pointer: *const c_void) -> Failure {
    match pointer.is_null() {
        true => Failure::invalid("the object is null"),
        false => Failure::new(
            Status::NotAllocated,
            format!(
                "{pointer:p} is not an object of this pool; use pointers that were obtained in this operation"
            ),
        ),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_session_open(pool: Handed<Pool>, to: Out<'_, Handed<Session>>) -> Status {
    status_of(|| {
        if to.is_null() {
            return Err(Failure::invalid(
                "the pointer that receives the session is null",
            ));
        }
        let it = pool.open()?;
        let session = it.heap.session()?;
        let medium = it.heap.medium();
        let base = medium.base_address();
        let objects = core::ptr::with_exposed_provenance::<u8>(base);
        to.put(FREE_HANDLES.hand_out(Session {
            objects: objects.wrapping_add(HEADER_BYTES as usize),
            mask: (medium.capacity() - 1) & !(ALIGNMENT - 1),
            pool_bits: it.heap.reference_bits(),
            flags: Cell::new(QUIET),
            mark: AtomicU64::new(0),
            thread: this_thread(),
            base: base as u64,
            capacity: medium.capacity(),
            operation: Typed::new(session),
            types: Types::default(),
            operations: Cell::new(0),
            moves_everything: it.collects == Collects::AtSafepoints,
            known: Default::default(),
            found: RefCell::default(),
            pool: Used::new(it, By::Session),
        }));
        Ok(())
    })
}

/// # Safety
///
/// As the header asks: no thread uses the session meanwhile, or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_session_close(pointer: Handed<Session>) -> Status {
    status_of(|| {
        if pointer.is_null() {
            return Ok(());
        }
        if !session(pointer)?.operation.is_idle() {
            return Err(Failure::misuse(
                "an operation is open; end it before closing the session",
            ));
        }
        // SAFETY: this is the session's thread, and none of its calls is under way: no operation is open, and library
        // functions that call the program do so inside one or hold nothing of the session.
        drop(unsafe { FREE_HANDLES.take_back(pointer) }?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_read_begin(pointer: Handed<Session>) -> Status {
    status_of(|| session(pointer)?.begin_read())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_read_end(pointer: Handed<Session>) -> Status {
    status_of(|| session(pointer)?.end_read())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_tx_begin(pointer: Handed<Session>) -> Status {
    status_of(|| session(pointer)?.begin_transaction())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_tx_commit(pointer: Handed<Session>) -> Status {
    status_of(|| session(pointer)?.commit())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_tx_commit_deferred(
    pointer: Handed<Session>,
    ticket: Out<'_, u64>,
) -> Status {
    status_of(|| {
        let committed = session(pointer)?.commit_deferred()?;
        if !ticket.is_null() {
            ticket.put(committed.0);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_tx_abort(pointer: Handed<Session>) -> Status {
    status_of(|| session(pointer)?.abort())
}

/// The body of a transaction. It returns a number, not a [`Status`]: a program may return any.
pub type Body = extern "C" fn(session: Handed<Session>, argument: *mut c_void) -> u32;

#[unsafe(no_mangle)]
pub extern "C" fn firn_transaction(
    pointer: Handed<Session>,
    body: Option<Body>,
    argument: *mut c_void,
) -> u32 {
    let mut returned = None;
    let status = status_of(|| {
        let it = session(pointer)?;
        let body = body.ok_or_else(|| Failure::invalid("the transaction's body is null"))?;
        let depth = it.operation.depth();
        let mut attempt = 0;
        loop {
            it.begin_transaction()?;
            let status = body(pointer, argument);
            if it.operation.depth() != depth + 1 {
                it.abort_to(depth);
                return Err(Failure::misuse(
                    "the body of a transaction left a begin or an end unmatched",
                ));
            }
            let outcome = match status == Status::Ok as u32 {
                true => it.commit().map_err(|failure| {
                    let status = failure.status() as u32;
                    (status, Some(failure))
                }),
                false => it.abort().map_or_else(
                    |f| Err((f.status() as u32, Some(f))),
                    |()| Err((status, None)),
                ),
            };
            match outcome {
                Ok(()) => return Ok(()),
                Err((status, _)) if status == Status::Conflict as u32 && depth == 0 => {
                    it.heap().medium().pause(attempt);
                    attempt += 1;
                }
                Err((_, Some(failure))) => return Err(failure),
                Err((status, None)) => {
                    returned = Some(status);
                    return Ok(());
                }
            }
        }
    });
    returned.unwrap_or(status as u32)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_lock_shared(pointer: Handed<Session>, lock: u64) -> Status {
    status_of(|| session(pointer)?.operation.lock_shared(lock))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_lock_exclusive(pointer: Handed<Session>, lock: u64) -> Status {
    status_of(|| session(pointer)?.change(|tx| Ok(tx.lock_exclusive(lock)?)))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_new_lock(pointer: Handed<Session>) -> u64 {
    result_of(0, || Ok(session(pointer)?.heap().medium().random_u64()))
}
