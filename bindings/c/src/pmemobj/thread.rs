//! A thread's work in a pool: its session, and the operation that it is inside.

use core::cell::RefCell;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use firn_heap::{Error, RawGuard, RawTx, Session};
use firn_mapped::Mapped;
use firn_units::VirtAddr;

use super::biased::Biased;
use super::cache::{InProgram, Told};
use super::local::{Slots, known, local};
use super::pools::Pobj;
use super::sanitizer::{gives_up, was_given};
use crate::handle_pool::forked;
use crate::operation::{Open, Raw};
use crate::status::{Failure, Outcome, Status};

/// A thread's part of a pool. The thread uses it, and so does a thread that closes the pool while the owner is outside.
/// A constructor, the program's own function, may call the library again while its thread is inside.
pub(crate) struct Slot(Biased<State>);

struct State {
    operation: Raw,
    /// A session for allocation beside an open transaction.
    beside: RefCell<Option<Box<Session<Mapped>>>>,
    /// The program's caches of the pool. They know nothing outside an operation.
    caches: RefCell<Vec<InProgram>>,
}

// SAFETY: sessions stay on their thread because its write-backs need its fences. Another thread only ends them, while
// no operation is open and no write-back waits for a fence; it then clears caches by one atomic store.
unsafe impl Send for State {}

/// Ends a thread's parts of all pools when the thread ends. In a forked child they belong to its parent.
pub(crate) fn end_all(slots: Slots) {
    for (pool, slot) in slots.of_pools {
        // A closed one has no slots.
        if let Ok(pool) = pool.open() {
            slot.end();
            pool.threads().retain(|other| !Arc::ptr_eq(other, &slot));
        }
    }
}

/// Makes the inline functions of a forked child call the library, which refuses: their knowledge is the parent's.
pub(crate) fn forget_pointers_in_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of this library, which the system forgets with it, and takes nothing.
        unsafe { libc::pthread_atfork(None, None, Some(forget_pointers)) };
    });
}

/// It must not allocate: another thread may have held the allocator's locks.
extern "C" fn forget_pointers() {
    let Some(local) = known() else { return };
    let Ok(slots) = local.slots.try_borrow() else {
        return;
    };
    for (_, slot) in &slots.of_pools {
        // SAFETY: the slot belongs to this thread, which found it among its own.
        let inside = unsafe { slot.0.enter() };
        inside
            .caches
            .borrow()
            .iter()
            .for_each(|cache| cache.forget());
    }
}

impl Slot {
    /// Errors: the thread has a transaction open.
    pub(crate) fn check_no_transaction(&self) -> Outcome<()> {
        self.0
            .with_any(|state| state.operation.check_no_transaction())
    }

    /// Ends the thread's part of the pool. An open transaction is rolled back.
    pub(crate) fn end(&self) {
        self.0.with_any(|state| {
            state.leave();
            state.operation.close();
            state.beside.take();
        });
    }
}

impl State {
    /// Ends the thread's sessions if nothing is open. False if something is, or they have ended already.
    fn end_if_idle(&self) -> bool {
        if !self.operation.is_idle() {
            return false;
        }
        self.operation.close();
        self.beside.take();
        true
    }

    /// Leaves the operation: pointers become invalid.
    fn leave(&self) {
        self.caches
            .borrow_mut()
            .drain(..)
            .for_each(InProgram::forget);
        self.operation.leave();
    }

    /// Leaves the operation, unless the program took pointers meanwhile.
    fn leave_without_pointers(&self) {
        if self.operation.is_reading() && self.caches.borrow().is_empty() {
            self.leave();
        }
    }

    /// Begins or ends a transaction. If this ended the operation, pointers become invalid.
    #[inline]
    fn turn(&self, turn: impl FnOnce(&Raw) -> Outcome<()>) -> Outcome<()> {
        turn(&self.operation).inspect_err(|_| {
            if self.operation.is_idle() {
                self.leave();
            }
        })
    }
}

/// Calls `body` with the thread's part of a pool.
#[inline]
fn with_state<R>(pool: &Pobj, body: impl FnOnce(&State) -> Outcome<R>) -> Outcome<R> {
    if !pool.heap.is_ours() {
        return Err(forked::<Pobj>());
    }
    let (of, last_used) = local().last_used.get();
    if of == pool.handed() {
        // SAFETY: slots stay until their thread ends, which clears `last_used` first; this one is this thread's.
        let inside = unsafe { (*last_used).0.enter() };
        if !inside.operation.is_closed() {
            return body(&inside);
        }
    }
    loop {
        let slot = slot(pool)?;
        local().last_used.set((pool.handed(), Arc::as_ptr(&slot)));
        // SAFETY: `slot` found it among this thread's, or made it.
        let inside = unsafe { slot.0.enter() };
        // Before the thread was inside, another one may have taken the new session.
        if !inside.operation.is_closed() {
            return body(&inside);
        }
    }
}

/// This thread's slot of a pool, made if there is none.
#[cold]
fn slot(pool: &Pobj) -> Outcome<Arc<Slot>> {
    let mut slots = local().slots.borrow_mut();
    let Slots { of_pools, ended } = &mut *slots;
    let known = of_pools.iter().position(|(of, _)| *of == pool.handed());
    if let Some(known) = known {
        let slot = &of_pools[known].1;
        // SAFETY: the slot belongs to this thread, which found it among its own.
        if !unsafe { slot.0.enter() }.operation.is_closed() {
            return Ok(Arc::clone(slot));
        }
        ended.push(of_pools.swap_remove(known).1);
    }
    let session = session_with_patience(pool)?;
    let new = Arc::new(Slot(Biased::new(State {
        operation: Raw::new(session),
        beside: RefCell::default(),
        caches: RefCell::default(),
    })));
    pool.threads().push(Arc::clone(&new));
    of_pools.push((pool.handed(), Arc::clone(&new)));
    Ok(new)
}

/// A session of the pool's. The pool has as many as lanes; threads that have nothing open give theirs back, and get
/// another when they need one. Waits for a while where all have something open.
fn session_with_patience(pool: &Pobj) -> Outcome<Session<Mapped>> {
    const FIRST: Duration = Duration::from_micros(20);
    let (start, mut sleep) = (Instant::now(), FIRST);
    loop {
        let session = match pool.heap.session() {
            Err(Error::TooManySessions { .. }) if pool.end_an_idle_one() => continue,
            Err(Error::TooManySessions { open, .. }) if start.elapsed() > PATIENCE => {
                return Err(Failure::new(
                    Status::Busy,
                    format!(
                        "{open} threads have transactions or pointers in the pool, and none of them has ended its \
                         transaction or called firn_safepoint for {} s",
                        PATIENCE.as_secs()
                    ),
                ));
            }
            Err(Error::TooManySessions { .. }) => {
                std::thread::sleep(sleep);
                sleep = (sleep * 2).min(Duration::from_millis(10));
                continue;
            }
            other => other?,
        };
        return Ok(session);
    }
}

/// Calls `body` inside the thread's operation, which stays open.
pub(crate) fn in_operation<R>(
    pool: &Pobj,
    body: impl FnOnce(&RawGuard<'_, Mapped>) -> Outcome<R>,
) -> Outcome<R> {
    with_state(pool, |state| state.operation.inside(body))
}

/// Calls `body`, which hands no pointer out to the program: a thread that was outside an operation is outside again
/// afterwards, and keeps no collector waiting.
pub(crate) fn passing<R>(pool: &Pobj, body: impl FnOnce() -> Outcome<R>) -> Outcome<R> {
    let was_outside = with_state(pool, |state| Ok(state.operation.is_idle()))?;
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

/// Calls `body`, which needs room. In a full pool a thread that was outside an operation waits outside for the running
/// collection, and tries again after each of its cycles: free memory in pages that a cycle closes cannot be used before
/// the cycle ends.
pub(crate) fn with_room<R>(pool: &Pobj, mut body: impl FnMut() -> Outcome<R>) -> Outcome<R> {
    let was_outside = with_state(pool, |state| Ok(state.operation.is_idle()))?;
    loop {
        let result = body();
        let is_full = |failure: &Failure| failure.status() == Status::NoSpace;
        if !was_outside || !result.as_ref().is_err_and(is_full) {
            return result;
        }
        // No pointer was handed out.
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
pub(crate) fn fill(pool: &Pobj, cache: InProgram) -> Outcome<()> {
    with_state(pool, |state| {
        state.operation.inside(|_| Ok(()))?;
        let mut caches = state.caches.borrow_mut();
        if !caches.contains(&cache) {
            caches.push(cache);
        }
        Ok(())
    })?;
    let has_marks = pool.heap.has_place_marks();
    if has_marks {
        was_given(pool);
    }
    cache.tell(&Told {
        pool: pool.id,
        base: pool.base,
        last: pool.capacity - 1,
        has_marks,
        marks: pool.heap.place_marks(),
    });
    Ok(())
}

/// Leaves the thread's operation, if it is inside one.
///
/// Errors: a transaction is open.
pub(crate) fn leave(pool: &Pobj) -> Outcome<()> {
    with_state(pool, |state| {
        state.operation.check_end()?;
        state.leave();
        Ok(())
    })
}

/// Begins a transaction.
pub(crate) fn begin(pool: &Pobj) -> Outcome<()> {
    with_state(pool, |state| state.turn(Raw::begin))
}

/// Calls `body` in the open transaction.
pub(crate) fn in_transaction<R>(
    pool: &Pobj,
    body: impl FnOnce(RawTx<'_, Mapped>) -> Outcome<R>,
) -> Outcome<R> {
    with_state(pool, |state| state.operation.in_transaction(body))
}

/// Bytes of the body of an object that the thread's open transaction has allocated.
pub(crate) fn own_len(pool: &Pobj, body: VirtAddr) -> Outcome<Option<u64>> {
    with_state(pool, |state| match &*state.operation.open() {
        Open::Transaction(open) => Ok(open.tx().own_len(body)),
        _ => Ok(None),
    })
}

/// Commits the open transaction, or rolls it back. The operation stays open.
pub(crate) fn end(pool: &Pobj, commits: bool) -> Outcome<()> {
    if !commits {
        gives_up(pool);
    }
    with_state(pool, |state| state.turn(|operation| operation.end(commits)))?;
    match commits {
        true => pool.wait_for_commits(),
        false => Ok(()),
    }
}

impl Pobj {
    /// Ends the session of a thread that has nothing open. Waits for no thread: two that ended each other's would wait
    /// for each other. False if there is none.
    fn end_an_idle_one(&self) -> bool {
        let ended = |slot: &Arc<Slot>| {
            let ended = slot.0.try_with_any(|state| state.end_if_idle());
            ended.unwrap_or(false)
        };
        let mut threads = self.threads();
        let Some(at) = threads.iter().position(ended) else {
            return false;
        };
        threads.swap_remove(at);
        true
    }

    /// A session beside the one in which this thread has a transaction open. It does not wait for other threads, which
    /// may wait for the same.
    fn session_beside(&self) -> Outcome<Session<Mapped>> {
        loop {
            match self.heap.session() {
                Err(Error::TooManySessions { .. }) if self.end_an_idle_one() => {}
                session => return Ok(session?),
            }
        }
    }

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
        if let Open::Transaction(_) = &*self.operation.entered()? {
            let mut beside = self
                .beside
                .try_borrow_mut()
                .map_err(|_| Failure::misuse("a constructor may not allocate"))?;
            let session = match &mut *beside {
                Some(session) => session,
                none => none.insert(Box::new(pool.session_beside()?)),
            };
            return session.raw_transaction(body);
        }
        self.turn(Raw::begin)?;
        let result = self.operation.in_transaction(body);
        self.turn(|operation| operation.end(result.is_ok()))?;
        if result.is_ok() {
            pool.wait_for_commits()?;
        }
        result
    }
}
