//! The suspended fibers of every medium on this OS thread.
//!
//! Fibers cannot move to another OS thread, so they stay in a thread-local and the medium itself
//! remains `Send`.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread::panicking;

use crate::fiber::Fiber;

thread_local! {
    static FLEETS: RefCell<BTreeMap<(u64, usize), Fiber>> = const { RefCell::new(BTreeMap::new()) };
}

/// Keeps the fiber of a medium's thread.
pub fn put(medium: u64, thread: usize, fiber: Fiber) {
    FLEETS.with_borrow_mut(|fleets| fleets.insert((medium, thread), fiber));
}

/// Takes out the fiber of a medium's thread, to resume it.
pub fn take(medium: u64, thread: usize) -> Option<Fiber> {
    FLEETS.with_borrow_mut(|fleets| fleets.remove(&(medium, thread)))
}

/// Takes out any fiber of a medium, to drop it.
fn take_any(medium: u64) -> Option<Fiber> {
    FLEETS
        .try_with(|fleets| {
            let mut fleets = fleets.borrow_mut();
            let key = *fleets.range((medium, 0)..=(medium, usize::MAX)).next()?.0;
            fleets.remove(&key)
        })
        .ok()
        .flatten()
}

/// Drops all fibers of a medium, unwinding their stacks.
pub fn drop_all(medium: u64) {
    while let Some(fiber) = take_any(medium) {
        drop(fiber);
    }
}

/// Payload of the panic that ends a wait.
struct WaitEnds;

/// Ends a wait outside all threads of a dead medium, which nothing else would end, by unwinding the caller's stack. If
/// that stack is unwinding already, a destructor waits for something that a thread holds which is not unwound yet; then
/// drops one fiber. Returns whether there was one.
pub fn end_wait(medium: u64) -> bool {
    if !panicking() {
        resume_unwind(Box::new(WaitEnds));
    }
    take_any(medium).map(drop).is_some()
}

/// Whether a panic did no more than end a wait.
pub fn is_end_of_wait(panic: &(dyn Any + Send)) -> bool {
    panic.is::<WaitEnds>()
}
