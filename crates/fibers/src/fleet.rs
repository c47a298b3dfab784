//! The suspended fibers of every medium on this OS thread.
//!
//! Fibers cannot move to another OS thread, so they stay in a thread-local and the medium itself
//! remains `Send`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::fiber::Fiber;

thread_local! {
    static FLEETS: RefCell<BTreeMap<(u64, usize), Fiber>> = const { RefCell::new(BTreeMap::new()) };
}

/// Keeps the fiber of a thread of a medium.
pub fn put(medium: u64, thread: usize, fiber: Fiber) {
    FLEETS.with_borrow_mut(|fleets| fleets.insert((medium, thread), fiber));
}

/// Takes the fiber of a thread out, to resume it.
pub fn take(medium: u64, thread: usize) -> Option<Fiber> {
    FLEETS.with_borrow_mut(|fleets| fleets.remove(&(medium, thread)))
}

/// Takes any fiber of a medium out, to drop it.
pub fn take_any(medium: u64) -> Option<Fiber> {
    FLEETS
        .try_with(|fleets| {
            let mut fleets = fleets.borrow_mut();
            let key = *fleets.range((medium, 0)..=(medium, usize::MAX)).next()?.0;
            fleets.remove(&key)
        })
        .ok()
        .flatten()
}
