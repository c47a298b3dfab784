//! What a thread does in a pool: its session, and the operation that it is inside.

use core::cell::{Ref, RefCell, RefMut};
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use firn_heap::{OpenRawTx, RawGuard, RawTx, Session};
use firn_mapped::Mapped;

use super::biased::Biased;
use super::local::{Slots, known, local};
use super::pools::Pobj;
use super::sanitizer::{gives_up, was_given};
use crate::shelf::forked;
use crate::status::{Failure, Outcome, Status};

/// `struct firn_pobj_cache`: what the inline functions of a program know of the thread's pool while it is inside an
/// operation there. It lies in the program, one for each thread.
#[repr(C)]
pub struct Cache {
    /// Zero while it knows nothing.
    pub(crate) pool: AtomicU64,
    pub(crate) base: u64,
    /// The last offset while no page is marked; zero otherwise.
    pub(crate) plain: u64,
    /// The last offset.
    pub(crate) last: u64,
    pub(crate) marks: *const AtomicU8,
}

/// A thread's part of a pool. The thread uses it, and whoever closes the pool while the thread is outside. Whoever fills
/// an object in the program's own function may come back while the thread has it.
pub(crate) struct Slot(Biased<State>);

#[derive(Default)]
struct State {
    // In front of what it borrows from.
    operation: RefCell<Operation>,
    session: RefCell<Option<ManuallyDrop<Box<Session<Mapped>>>>>,
    /// For allocation beside a transaction that is open.
    beside: RefCell<Option<Box<Session<Mapped>>>>,
    caches: RefCell<Vec<*mut Cache>>,
}

// SAFETY: sessions stay on their thread because its write-backs need its fences. Another one only ends them, while
// no operation is open, when nothing waits for a fence; caches are then told by one atomic store.
unsafe impl Send for State {}

#[derive(Default)]
enum Operation {
    #[default]
    None,
    Reading(RawGuard<'static, Mapped>),
    Transaction(OpenRawTx<'static, Mapped>),
}

/// Ends all that a thread has, at its end. What a forked child has is its parent's.
pub(crate) fn end_all(slots: Slots) {
    for (pool, slot) in slots.of_pools {
        // SAFETY: the memory of pools stays; a closed one has no slots.
        if let Ok(pool) = unsafe { crate::shelf::open(pool) } {
            slot.end();
            pool.threads().retain(|other| !Arc::ptr_eq(other, &slot));
        }
    }
}

/// Has the inline functions of a forked child ask the library, which refuses: what they know is its parent's.
pub(crate) fn forget_pointers_in_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of this library, which the system forgets with it.
        unsafe { libc::pthread_atfork(None, None, Some(forget_pointers)) };
    });
}

/// Allocates nothing: another thread may have held the allocator's locks.
extern "C" fn forget_pointers() {
    let Some(local) = known() else { return };
    let Ok(slots) = local.slots.try_borrow() else {
        return;
    };
    for (_, slot) in &slots.of_pools {
        // SAFETY: it is this thread's.
        let inside = unsafe { slot.0.enter() };
        for cache in inside.caches.borrow().iter() {
            // SAFETY: it lies in memory of this thread.
            unsafe { (**cache).pool.store(0, Ordering::Relaxed) };
        }
    }
}

impl Slot {
    /// Errors: the thread has a transaction open.
    pub(crate) fn check_no_transaction(&self) -> Outcome<()> {
        self.0.with_any(State::check_no_transaction)
    }

    /// Ends what the thread has of the pool. A transaction that is open is rolled back.
    pub(crate) fn end(&self) {
        self.0.with_any(|state| {
            state.leave();
            if let Some(session) = state.session.take() {
                drop(ManuallyDrop::into_inner(session));
            }
            state.beside.take();
        });
    }
}

impl State {
    /// Whether the pool is open; whoever closed it has taken the session.
    fn is_open(&self) -> bool {
        self.session.borrow().is_some()
    }

    fn check_no_transaction(&self) -> Outcome<()> {
        match &*self.operation.borrow() {
            Operation::Transaction(_) => Err(Failure::new(
                Status::Busy,
                "a transaction is open in the pool; end it first",
            )),
            _ => Ok(()),
        }
    }

    /// Leaves the operation: pointers are no longer good.
    fn leave(&self) {
        for cache in self.caches.borrow_mut().drain(..) {
            // SAFETY: it lies in memory of the thread, which lives: its end comes here first.
            unsafe { (*cache).pool.store(0, Ordering::Relaxed) };
        }
        drop(self.operation.take());
    }

    fn is_outside(&self) -> bool {
        matches!(&*self.operation.borrow(), Operation::None)
    }

    /// Leaves the operation, unless the program took pointers meanwhile.
    fn leave_without_pointers(&self) {
        let is_reading = matches!(&*self.operation.borrow(), Operation::Reading(_));
        if is_reading && self.caches.borrow().is_empty() {
            self.leave();
        }
    }

    /// Enters an operation if none is open.
    fn enter(&self) -> Outcome<()> {
        let mut operation = self.changing()?;
        if let Operation::None = *operation {
            let mut session = self.session.borrow_mut();
            let Some(session) = &mut *session else {
                return Err(closed());
            };
            let session: *mut Session<Mapped> = &raw mut ***session;
            // SAFETY: the operation is dropped before the session that it borrows, which it alone uses.
            let session: &'static mut Session<Mapped> = unsafe { &mut *session };
            *operation = Operation::Reading(session.raw_guard()?);
        }
        Ok(())
    }

    /// The operation, to be changed.
    ///
    /// Errors: the program's function that fills an object is running.
    fn changing(&self) -> Outcome<RefMut<'_, Operation>> {
        self.operation.try_borrow_mut().map_err(|_| {
            Failure::misuse("a constructor may not begin or end a transaction, nor allocate")
        })
    }

    /// The thread's operation; enters one if none is open.
    fn entered(&self) -> Outcome<Ref<'_, Operation>> {
        let is_outside = matches!(*self.operation.borrow(), Operation::None);
        if is_outside {
            self.enter()?;
        }
        Ok(self.operation.borrow())
    }

    /// Puts a transaction in the place of the operation.
    fn begin(&self) -> Outcome<()> {
        self.enter()?;
        let mut operation = self.changing()?;
        match core::mem::take(&mut *operation) {
            Operation::Reading(guard) => {
                *operation = Operation::Transaction(guard.begin()?);
                Ok(())
            }
            other => {
                *operation = other;
                Err(Failure::misuse(
                    "a transaction is already open in this pool",
                ))
            }
        }
    }

    /// Ends the transaction. The operation goes on, unless the commit fails.
    fn end(&self, commits: bool) -> Outcome<()> {
        let mut operation = self.changing()?;
        match core::mem::take(&mut *operation) {
            Operation::Transaction(open) if commits => match open.commit() {
                Ok(guard) => *operation = Operation::Reading(guard),
                Err(error) => {
                    drop(operation);
                    self.leave();
                    return Err(error.into());
                }
            },
            Operation::Transaction(open) => *operation = Operation::Reading(open.roll_back()),
            other => {
                *operation = other;
                return Err(no_transaction());
            }
        }
        Ok(())
    }
}

#[cold]
fn closed() -> Failure {
    Failure::misuse("the pool was closed; open it again")
}

#[cold]
fn no_transaction() -> Failure {
    Failure::misuse("no transaction is open; call this between TX_BEGIN and TX_END")
}

/// Does something with what the thread has of a pool.
#[inline]
fn with_state<R>(pool: &Pobj, body: impl FnOnce(&State) -> Outcome<R>) -> Outcome<R> {
    if !pool.heap.is_ours() {
        return Err(forked::<Pobj>());
    }
    let (of, here) = local().here.get();
    if ptr::eq(of, pool) {
        // SAFETY: slots stay until their thread ends, which forgets this one first; it is this thread's.
        let inside = unsafe { (*here).0.enter() };
        if inside.is_open() {
            return body(&inside);
        }
    }
    let slot = slot(pool)?;
    local().here.set((pool, Arc::as_ptr(&slot)));
    // SAFETY: it is this thread's.
    let inside = unsafe { slot.0.enter() };
    body(&inside)
}

/// This thread's slot of a pool, made if there is none.
#[cold]
fn slot(pool: &Pobj) -> Outcome<Arc<Slot>> {
    let mut slots = local().slots.borrow_mut();
    let Slots { of_pools, ended } = &mut *slots;
    let known = of_pools.iter().position(|(of, _)| ptr::eq(*of, pool));
    if let Some(known) = known {
        let slot = &of_pools[known].1;
        // SAFETY: it is this thread's.
        if unsafe { slot.0.enter() }.is_open() {
            return Ok(Arc::clone(slot));
        }
        ended.push(of_pools.swap_remove(known).1);
    }
    let session = pool.heap.session()?;
    let new = Arc::new(Slot(Biased::new(State {
        session: RefCell::new(Some(ManuallyDrop::new(Box::new(session)))),
        ..State::default()
    })));
    pool.threads().push(Arc::clone(&new));
    of_pools.push((ptr::from_ref(pool), Arc::clone(&new)));
    Ok(new)
}

/// Does something inside the thread's operation, which goes on.
pub(crate) fn in_operation<R>(
    pool: &Pobj,
    body: impl FnOnce(&RawGuard<'_, Mapped>) -> Outcome<R>,
) -> Outcome<R> {
    with_state(pool, |state| match &*state.entered()? {
        Operation::Reading(guard) => body(guard),
        Operation::Transaction(open) => body(open.guard()),
        Operation::None => Err(closed()),
    })
}

/// Does what hands no pointer out to the program: a thread that was outside of an operation is outside again
/// afterwards, and keeps no collector waiting.
pub(crate) fn passing<R>(pool: &Pobj, body: impl FnOnce() -> Outcome<R>) -> Outcome<R> {
    let was_outside = with_state(pool, |state| Ok(state.is_outside()))?;
    let result = body();
    if was_outside {
        with_state(pool, |state| {
            state.leave_without_pointers();
            Ok(())
        })?;
    }
    result
}

/// How long a thread waits for a cycle in a full pool.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does what takes room. In a full pool a thread that was outside of an operation waits outside for the collection that
/// is under way, and tries again after each of its cycles: what is free in pages that a cycle closes is nobody's to
/// use before it ends.
pub(crate) fn with_room<R>(pool: &Pobj, mut body: impl FnMut() -> Outcome<R>) -> Outcome<R> {
    let was_outside = with_state(pool, |state| Ok(state.is_outside()))?;
    loop {
        let result = body();
        let is_full = |failure: &Failure| failure.status() == Status::NoSpace;
        if !was_outside || !result.as_ref().is_err_and(is_full) {
            return result;
        }
        // Nothing was handed out.
        with_state(pool, |state| {
            state.leave_without_pointers();
            Ok(())
        })?;
        if !pool.heap.wait_for_collection(PATIENCE) {
            return result;
        }
    }
}

/// Tells a thread's inline functions where the pool is, until the operation ends.
///
/// # Safety
///
/// The cache lies in memory of this thread.
pub(crate) unsafe fn fill(pool: &Pobj, cache: *mut Cache) -> Outcome<()> {
    with_state(pool, |state| {
        drop(state.entered()?);
        let mut caches = state.caches.borrow_mut();
        if !caches.contains(&cache) {
            caches.push(cache);
        }
        Ok(())
    })?;
    // SAFETY: the caller says so.
    let cache = unsafe { &mut *cache };
    cache.base = pool.base;
    cache.last = pool.capacity - 1;
    cache.plain = match pool.heap.has_place_marks() {
        true => 0,
        false => cache.last,
    };
    if cache.plain == 0 {
        was_given(pool);
    }
    cache.marks = pool.heap.place_marks().as_ptr();
    cache.pool.store(pool.id, Ordering::Relaxed);
    Ok(())
}

/// Leaves the thread's operation, if it is inside one.
///
/// Errors: a transaction is open.
pub(crate) fn leave(pool: &Pobj) -> Outcome<()> {
    with_state(pool, |state| {
        state.check_no_transaction()?;
        drop(state.changing()?);
        state.leave();
        Ok(())
    })
}

/// Begins a transaction.
pub(crate) fn begin(pool: &Pobj) -> Outcome<()> {
    with_state(pool, State::begin)
}

/// Does something in the open transaction.
pub(crate) fn in_transaction<R>(
    pool: &Pobj,
    body: impl FnOnce(RawTx<'_, Mapped>) -> Outcome<R>,
) -> Outcome<R> {
    with_state(pool, |state| match &*state.operation.borrow() {
        Operation::Transaction(open) => body(open.tx()),
        _ => Err(no_transaction()),
    })
}

/// Commits the open transaction, or rolls it back. The operation goes on.
pub(crate) fn end(pool: &Pobj, commits: bool) -> Outcome<()> {
    if !commits {
        gives_up(pool);
    }
    with_state(pool, |state| state.end(commits))
}

impl Pobj {
    /// Runs a transaction of the library's own: within the thread's operation, or beside its transaction.
    pub(crate) fn atomically<R>(
        &self,
        body: impl FnOnce(RawTx<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        with_state(self, |state| state.atomically(self, body))
    }
}

impl State {
    fn atomically<R>(
        &self,
        pool: &Pobj,
        body: impl FnOnce(RawTx<'_, Mapped>) -> Outcome<R>,
    ) -> Outcome<R> {
        let body = |tx: RawTx<'_, Mapped>| body(tx).inspect_err(|_| gives_up(pool));
        if let Operation::Transaction(_) = &*self.entered()? {
            let mut beside = self
                .beside
                .try_borrow_mut()
                .map_err(|_| Failure::misuse("a constructor may not allocate"))?;
            let session = match &mut *beside {
                Some(session) => session,
                none => none.insert(Box::new(pool.heap.session()?)),
            };
            return session.raw_transaction(body);
        }
        self.begin()?;
        let result = match &*self.operation.borrow() {
            Operation::Transaction(open) => body(open.tx()),
            _ => Err(no_transaction()),
        };
        let ended = self.end(result.is_ok());
        ended.and(result)
    }
}
