//! Sessions: a thread's access to a pool, and the operation that it has open.

use core::any::TypeId;
use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use core::mem::{ManuallyDrop, transmute};
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::rc::Rc;

use firn_heap::{Guard, Layout, Obj, OpenTransaction, ReadLock, Reading, Savepoint, Tx};
use firn_heap::{Target, Untyped, View};
use firn_mapped::Mapped;
use firn_media::{Runtime, Space};
use firn_units::VirtAddr;

use crate::collection::Collects;
use crate::containers::Found;
use crate::describe::{Type, descriptor};
use crate::pool::Pool;
use crate::shelf::{Shelf, Shelved, open};
use crate::status::{Failure, Outcome, Status, status_of};

/// Bytes in front of an object.
const HEADER_BYTES: u64 = 8;
/// What the addresses of objects' headers are multiples of.
const ALIGNMENT: u64 = 16;

const QUIET: u64 = 1;
const MOVING: u64 = 2;
const STORED: u64 = 4;

/// `firn_session`, and behind what the header shows of it what it does not.
#[repr(C)]
pub struct Session {
    objects: *const u8,
    mask: u64,
    pool_bits: u64,
    flags: Cell<u64>,
    // From here on the library's own.
    mark: AtomicU64,
    thread: usize,
    pub(crate) pool: *const Pool,
    base: u64,
    capacity: u64,
    // In front of what it borrows from.
    pub(crate) operation: RefCell<Operation>,
    session: ManuallyDrop<Box<firn_heap::Session<Mapped>>>,
    types: RefCell<Types>,
    /// How many operations there were.
    operations: Cell<u64>,
    /// Whether everything moves when an operation has ended.
    moves_everything: bool,
    /// Objects that an operation has looked at, by where they lie.
    known: [Cell<Option<Known>>; KNOWN],
    /// What calls for collections find.
    pub(crate) found: RefCell<Found>,
}

/// An object that was found to be there and of its type, in an operation that only reads: there it stays so.
#[derive(Clone, Copy, PartialEq)]
struct Known {
    operation: u64,
    at: usize,
    of: TypeId,
}

/// Objects of which that is kept.
const KNOWN: usize = 8;

impl Shelved for Session {
    const NAME: &'static str = "session";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.heap().is_ours()
    }
}

static SHELF: Shelf<Session> = Shelf::new();

/// A number of this thread, which no other has while it lives: the address of its control block, which the psABI of
/// x86-64 puts in the first word of it.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
fn this_thread() -> usize {
    let block: usize;
    // SAFETY: every thread has a control block as long as it runs; nothing is stored.
    unsafe {
        core::arch::asm!(
            "mov {}, fs:[0]",
            out(reg) block,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    block
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
thread_local! {
    static THREAD: u8 = const { 0 };
}

/// A number of this thread, which no other has while it lives.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn this_thread() -> usize {
    THREAD
        .try_with(|byte| core::ptr::from_ref(byte).addr())
        .unwrap_or(0)
}

/// What a session has open.
#[derive(Default)]
pub(crate) enum Operation {
    /// Nothing.
    #[default]
    None,
    Read(Read),
    Transaction(Transaction),
}

/// An operation that reads.
pub(crate) struct Read {
    // In front of the guard: given back before the operation ends.
    locks: Vec<ReadLock<'static, Mapped>>,
    guard: Guard<'static, Mapped>,
    /// Begins without an end.
    depth: u32,
}

/// A transaction.
pub(crate) struct Transaction {
    /// Parts of it that are open, the innermost last.
    parts: Vec<Part>,
    open: OpenTransaction<'static, Mapped>,
    /// The first failure outside of its parts.
    failed: Option<Failure>,
    /// Begins of reading without an end.
    reads: u32,
}

struct Part {
    savepoint: Savepoint<'static, Mapped>,
    failed: Option<Failure>,
}

impl Transaction {
    pub(crate) fn tx(&self) -> Tx<'_, Mapped> {
        self.open.tx()
    }

    fn fail(&mut self, failure: &Failure) {
        let failed = match self.parts.last_mut() {
            Some(part) => &mut part.failed,
            None => &mut self.failed,
        };
        failed.get_or_insert_with(|| failure.clone());
    }
}

/// Does something with the view of the operation that is open, whichever it is.
macro_rules! with_view {
    ($session:expr, |$view:ident| $body:expr) => {
        match &*$session.operation.borrow() {
            $crate::session::Operation::None => Err($crate::session::outside()),
            $crate::session::Operation::Read(read) => {
                let $view = read.view();
                $body
            }
            $crate::session::Operation::Transaction(transaction) => {
                let $view = transaction.tx();
                $body
            }
        }
    };
}
pub(crate) use with_view;

impl Read {
    pub(crate) fn view(&self) -> Reading<'_, Mapped> {
        self.guard.view()
    }
}

#[cold]
pub(crate) fn outside() -> Failure {
    Failure::misuse("no operation is open; call firn_read_begin or firn_tx_begin first")
}

#[cold]
fn no_transaction() -> Failure {
    Failure::misuse("no transaction is open; call firn_tx_begin first")
}

/// Types that the session has met.
#[derive(Default)]
struct Types {
    /// By the table of the program.
    described: HashMap<usize, Rc<Layout>>,
    last: Option<(usize, Rc<Layout>)>,
    /// By their number in the pool.
    numbered: Vec<Option<Rc<Layout>>>,
}

/// The session that a program's pointer leads to, on its thread.
///
/// # Safety
///
/// The pointer is null or came from [`firn_session_open`].
#[inline(always)]
pub(crate) unsafe fn session<'a>(pointer: *const Session) -> Outcome<&'a Session> {
    // SAFETY: the caller says so.
    let it = unsafe { open(pointer) }?;
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
    pub(crate) fn heap(&self) -> &firn_heap::Pool<Mapped> {
        // SAFETY: the pool counts this session, and is not closed before it.
        unsafe { &(*self.pool).heap }
    }

    pub(crate) fn pool(&self) -> &Pool {
        // SAFETY: as above.
        unsafe { &*self.pool }
    }

    /// Where the bytes of an object are.
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

    /// Where in the pool a byte lies; `None` for one outside.
    pub(crate) fn address(&self, pointer: *const c_void) -> Option<VirtAddr> {
        let at = (pointer.addr() as u64).wrapping_sub(self.base);
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

    /// The object of this type whose bytes a program's pointer leads to. An operation that only reads looks once.
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
        if !self.is_in_transaction() {
            place.set(Some(known));
        }
        Ok(found)
    }

    /// The object behind a pointer; `None` for null.
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

    /// Does something in the transaction. If it fails the transaction cannot be committed.
    #[inline]
    pub(crate) fn change<R>(&self, body: impl FnOnce(Tx<'_, Mapped>) -> Outcome<R>) -> Outcome<R> {
        let mut operation = self.operation.borrow_mut();
        let Operation::Transaction(transaction) = &mut *operation else {
            return Err(no_transaction());
        };
        self.flags.set(self.flags.get() | STORED);
        let result = body(transaction.tx());
        if let Err(failure) = &result {
            transaction.fail(failure);
        }
        result
    }

    /// An argument of a call that changes something. If it is refused the call has failed, and the transaction cannot be
    /// committed.
    #[inline]
    pub(crate) fn given<R>(&self, argument: Outcome<R>) -> Outcome<R> {
        if let Err(failure) = &argument
            && let Operation::Transaction(transaction) = &mut *self.operation.borrow_mut()
        {
            transaction.fail(failure);
        }
        argument
    }

    /// Notes that a call could not read because it would have had to wait: what the transaction did not see it
    /// cannot have taken into account.
    #[cold]
    pub(crate) fn failed_to_read(&self, failure: &Failure) {
        if let Operation::Transaction(transaction) = &mut *self.operation.borrow_mut()
            && failure.status() == Status::Conflict
        {
            transaction.fail(failure);
        }
    }

    /// Whether a transaction is open.
    pub(crate) fn is_in_transaction(&self) -> bool {
        matches!(&*self.operation.borrow(), Operation::Transaction(_))
    }

    /// Does something in an operation that reads.
    pub(crate) fn reading<R>(
        &self,
        body: impl FnOnce(Reading<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        match &*self.operation.borrow() {
            Operation::Read(read) => body(read.view()),
            Operation::None => Err(outside()),
            Operation::Transaction(_) => Err(Failure::misuse(
                "this call works only in reading operations; end the transaction first",
            )),
        }
    }

    /// The layout of a program's type in the pool, registered if it is new.
    ///
    /// # Safety
    ///
    /// As [`descriptor`].
    #[inline(always)]
    pub(crate) unsafe fn layout(&self, of: *const Type) -> Outcome<Rc<Layout>> {
        if let Some((last, layout)) = &self.types.borrow().last
            && *last == of.addr()
        {
            return Ok(Rc::clone(layout));
        }
        // SAFETY: the caller says so.
        unsafe { self.layout_of_another(of) }
    }

    /// Checks an object of another type than the last one.
    ///
    /// # Safety
    ///
    /// As [`descriptor`].
    #[inline(never)]
    unsafe fn layout_of_another(&self, of: *const Type) -> Outcome<Rc<Layout>> {
        let mut types = self.types.borrow_mut();
        // SAFETY: the caller says so.
        let layout = unsafe { types.described(self, of) }?;
        types.last = Some((of.addr(), Rc::clone(&layout)));
        Ok(layout)
    }

    /// What the registry says of an object's type.
    #[inline]
    pub(crate) fn layout_of<'g, V: View<'g>>(
        &self,
        object: Obj<'g, Untyped, V>,
    ) -> Outcome<Rc<Layout>> {
        let id = object.type_id();
        let mut types = self.types.borrow_mut();
        match types.numbered.get(id.0 as usize) {
            Some(Some(layout)) => Ok(Rc::clone(layout)),
            _ => types.look_up(self, id).ok_or_else(|| {
                Failure::new(
                    Status::WrongType,
                    "the object has none of the program's types: it holds bytes, or is an array of references",
                )
            }),
        }
    }

    fn begin_read(&self) -> Outcome<()> {
        let mut operation = self.operation.borrow_mut();
        match &mut *operation {
            Operation::Read(read) => read.depth += 1,
            Operation::Transaction(transaction) => transaction.reads += 1,
            Operation::None => {
                // SAFETY: the operation is dropped before the session that it borrows, which it alone uses: there
                // is one operation at a time.
                let session: &'static mut firn_heap::Session<Mapped> =
                    unsafe { &mut *self.heap_session() };
                let guard = session.guard();
                self.operations.set(self.operations.get() + 1);
                let moving = guard.view().cycle().is_some();
                *operation = Operation::Read(Read {
                    locks: Vec::new(),
                    guard,
                    depth: 1,
                });
                self.flags.set(if moving { MOVING } else { 0 });
            }
        }
        Ok(())
    }

    fn heap_session(&self) -> *mut firn_heap::Session<Mapped> {
        core::ptr::from_ref::<firn_heap::Session<Mapped>>(&self.session).cast_mut()
    }

    fn end_read(&self) -> Outcome<()> {
        let mut operation = self.operation.borrow_mut();
        match &mut *operation {
            Operation::Read(read) if read.depth > 1 => read.depth -= 1,
            Operation::Read(_) => {
                *operation = Operation::None;
                drop(operation);
                self.ended();
            }
            Operation::Transaction(transaction) if transaction.reads > 0 => transaction.reads -= 1,
            _ => {
                return Err(Failure::misuse(
                    "no reading operation is open; every firn_read_end needs a firn_read_begin",
                ));
            }
        }
        Ok(())
    }

    fn begin_transaction(&self) -> Outcome<()> {
        let mut operation = self.operation.borrow_mut();
        match &mut *operation {
            Operation::Read(_) => {
                return Err(Failure::misuse(
                    "a transaction cannot begin inside a reading operation; end that first",
                ));
            }
            Operation::Transaction(transaction) => {
                let savepoint = transaction.tx().savepoint();
                // SAFETY: parts are dropped before the transaction that they borrow from.
                let savepoint: Savepoint<'static, Mapped> = unsafe { transmute(savepoint) };
                let failed = None;
                transaction.parts.push(Part { savepoint, failed });
            }
            Operation::None => {
                // SAFETY: as in `begin_read`. What is read through a transaction of this session is stored through
                // no other one: programs have pointers, and each is looked at when it is used.
                let open = unsafe { (*self.heap_session()).begin() }?;
                self.operations.set(self.operations.get() + 1);
                let moving = open.tx().cycle().is_some();
                *operation = Operation::Transaction(Transaction {
                    parts: Vec::new(),
                    open,
                    failed: None,
                    reads: 0,
                });
                self.flags.set(if moving { MOVING } else { 0 });
            }
        }
        Ok(())
    }

    fn commit(&self) -> Outcome<()> {
        let mut operation = self.operation.borrow_mut();
        let Operation::Transaction(transaction) = &mut *operation else {
            return Err(no_transaction());
        };
        if let Some(part) = transaction.parts.pop() {
            return match part.failed {
                None => {
                    part.savepoint.keep();
                    Ok(())
                }
                Some(failure) => Err(failure),
            };
        }
        let result = match transaction.failed.take() {
            None => transaction.open.commit_in_place().map_err(Failure::from),
            Some(failure) => Err(failure),
        };
        *operation = Operation::None;
        drop(operation);
        self.ended();
        result
    }

    fn abort(&self) -> Outcome<()> {
        let mut operation = self.operation.borrow_mut();
        let Operation::Transaction(transaction) = &mut *operation else {
            return Err(no_transaction());
        };
        if transaction.parts.pop().is_none() {
            *operation = Operation::None;
            drop(operation);
            self.ended();
        }
        Ok(())
    }

    /// The operation has ended: the thread holds no pointers, and with `FIRN_COLLECT=safepoints` everything moves.
    #[inline]
    fn ended(&self) {
        self.flags.set(QUIET);
        if self.moves_everything {
            // What keeps it from moving does not change what became of the operation.
            let _ = self.pool().wholly.collect(self.heap());
        }
    }

    /// Transactions and parts that are open.
    fn depth(&self) -> usize {
        match &*self.operation.borrow() {
            Operation::Transaction(transaction) => 1 + transaction.parts.len(),
            _ => 0,
        }
    }

    /// Rolls back down to so many.
    fn abort_to(&self, depth: usize) {
        while self.depth() > depth && self.abort().is_ok() {}
    }
}

impl Types {
    #[cold]
    unsafe fn described(&mut self, session: &Session, of: *const Type) -> Outcome<Rc<Layout>> {
        if let Some(layout) = self.described.get(&of.addr()) {
            return Ok(Rc::clone(layout));
        }
        // SAFETY: the caller says so.
        let descriptor = unsafe { descriptor(of) }?;
        let layout = Rc::new(session.heap().register_described(descriptor)?);
        self.described.insert(of.addr(), Rc::clone(&layout));
        self.number(&layout);
        Ok(layout)
    }

    #[cold]
    fn look_up(&mut self, session: &Session, id: firn_heap::TypeId) -> Option<Rc<Layout>> {
        let layout = Rc::new(session.heap().layout(id)?);
        self.number(&layout);
        Some(layout)
    }

    fn number(&mut self, layout: &Rc<Layout>) {
        let number = layout.id().0 as usize;
        if self.numbered.len() <= number {
            self.numbered.resize(number + 1, None);
        }
        self.numbered[number] = Some(Rc::clone(layout));
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
pub unsafe extern "C" fn firn_session_open(pool: *mut Pool, to: *mut *mut Session) -> Status {
    status_of(|| {
        if to.is_null() {
            return Err(Failure::invalid(
                "the pointer that receives the session is null",
            ));
        }
        // SAFETY: as the header asks of pools.
        let it = unsafe { open(pool) }?;
        let session = it.heap.session()?;
        let medium = it.heap.medium();
        let base = medium.base_address();
        let objects = core::ptr::with_exposed_provenance::<u8>(base);
        it.users.fetch_add(1, Ordering::AcqRel);
        let new = SHELF.hand_out(Session {
            objects: objects.wrapping_add(HEADER_BYTES as usize),
            mask: (medium.capacity() - 1) & !(ALIGNMENT - 1),
            pool_bits: it.heap.reference_bits(),
            flags: Cell::new(QUIET),
            mark: AtomicU64::new(0),
            thread: this_thread(),
            pool,
            base: base as u64,
            capacity: medium.capacity(),
            operation: RefCell::new(Operation::None),
            session: ManuallyDrop::new(Box::new(session)),
            types: RefCell::new(Types::default()),
            operations: Cell::new(0),
            moves_everything: it.collects == Collects::AtSafepoints,
            known: Default::default(),
            found: RefCell::default(),
        });
        // SAFETY: it is not null, and the header asks for room.
        unsafe { to.write(new.as_ptr()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_session_close(pointer: *mut Session) -> Status {
    status_of(|| {
        if pointer.is_null() {
            return Ok(());
        }
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        if !matches!(&*it.operation.borrow(), Operation::None) {
            return Err(Failure::misuse(
                "an operation is open; end it before closing the session",
            ));
        }
        let pool = it.pool();
        // SAFETY: it is open, and this is its thread.
        let closed = unsafe { SHELF.take_back(pointer) };
        // No operation is open, so nothing borrows from it.
        drop(ManuallyDrop::into_inner(closed.session));
        pool.users.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_read_begin(pointer: *mut Session) -> Status {
    // SAFETY: as the header asks of sessions.
    status_of(|| unsafe { session(pointer) }?.begin_read())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_read_end(pointer: *mut Session) -> Status {
    // SAFETY: as the header asks of sessions.
    status_of(|| unsafe { session(pointer) }?.end_read())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_tx_begin(pointer: *mut Session) -> Status {
    // SAFETY: as the header asks of sessions.
    status_of(|| unsafe { session(pointer) }?.begin_transaction())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_tx_commit(pointer: *mut Session) -> Status {
    // SAFETY: as the header asks of sessions.
    status_of(|| unsafe { session(pointer) }?.commit())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_tx_abort(pointer: *mut Session) -> Status {
    // SAFETY: as the header asks of sessions.
    status_of(|| unsafe { session(pointer) }?.abort())
}

/// What a transaction does. It yields a number, not a [`Status`]: a program may return any.
pub type Body = unsafe extern "C" fn(session: *mut Session, argument: *mut c_void) -> u32;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_transaction(
    pointer: *mut Session,
    body: Option<Body>,
    argument: *mut c_void,
) -> u32 {
    let mut returned = None;
    let status = status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        let body = body.ok_or_else(|| Failure::invalid("the transaction's body is null"))?;
        let depth = it.depth();
        let mut attempt = 0;
        loop {
            it.begin_transaction()?;
            // SAFETY: the header asks for a body that can be called so.
            let status = unsafe { body(pointer, argument) };
            if it.depth() != depth + 1 {
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
pub unsafe extern "C" fn firn_lock_shared(pointer: *mut Session, lock: u64) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        match &mut *it.operation.borrow_mut() {
            Operation::None => Err(outside()),
            Operation::Read(read) => {
                let taken = read.guard.view().lock_shared(lock)?;
                // SAFETY: locks are given back before the guard that they borrow from ends, and lie in the pool,
                // which outlives it.
                read.locks.push(unsafe {
                    transmute::<ReadLock<'_, Mapped>, ReadLock<'static, Mapped>>(taken)
                });
                Ok(())
            }
            Operation::Transaction(transaction) => {
                let taken = transaction.tx().lock_shared(lock).map(drop);
                let taken: Outcome<()> = taken.map_err(Failure::from);
                if let Err(failure) = &taken {
                    transaction.fail(failure);
                }
                taken
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_lock_exclusive(pointer: *mut Session, lock: u64) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        it.change(|tx| Ok(tx.lock_exclusive(lock)?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_new_lock(pointer: *mut Session) -> u64 {
    crate::status::result_of(0, || {
        // SAFETY: as the header asks of sessions.
        let it = unsafe { session(pointer) }?;
        Ok(it.heap().medium().random_u64())
    })
}
