//! Memory of what programs hold: pools, sessions, handles.
//!
//! It is used again and never given back, so that a pointer to something that was closed leads to memory that says
//! so, as long as nothing new was opened in its place.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::status::{Failure, Outcome, Status};

/// What the memory of something open begins with, but for what the program reads in front of it.
const OPEN: u64 = 0x4669_726e_4f70_656e;

/// Something that a program holds a pointer to.
pub(crate) trait Shelved: Sized {
    /// What it is called in messages.
    const NAME: &'static str;

    /// Says whether it is open.
    fn mark(&self) -> &AtomicU64;

    /// Whether this process opened it, and not one that this was forked from. What belongs to no pool is anybody's.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        true
    }
}

/// Memory that is not in use.
pub(crate) struct Shelf<T>(Mutex<Vec<NonNull<T>>>);

// SAFETY: what lies on a shelf belongs to nobody, and is only written to by whoever takes it off.
unsafe impl<T> Sync for Shelf<T> {}

impl<T: Shelved> Shelf<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Hands something out to the program.
    pub(crate) fn hand_out(&self, new: T) -> NonNull<T> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let place = match free {
            Some(place) => {
                // SAFETY: the place came from the allocation below, and its content was moved out when it was put
                // on the shelf.
                unsafe { place.write(new) };
                place
            }
            None => NonNull::from(Box::leak(Box::new(new))),
        };
        // SAFETY: something was just put there.
        unsafe { place.as_ref() }
            .mark()
            .store(OPEN, Ordering::Release);
        place
    }

    /// Takes back what the program holds.
    ///
    /// # Safety
    ///
    /// It was handed out, is open, and nobody uses it meanwhile.
    pub(crate) unsafe fn take_back(&self, pointer: *mut T) -> T {
        // SAFETY: the caller says that something is there; it is moved out and not looked at any more, but for
        // the mark.
        let (place, content) = unsafe {
            let place = NonNull::new_unchecked(pointer);
            place.as_ref().mark().store(0, Ordering::Release);
            (place, place.read())
        };
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(place);
        content
    }
}

/// What a program's pointer leads to.
///
/// # Safety
///
/// The pointer is null, or came from [`Shelf::hand_out`] of the same type.
#[inline(always)]
pub(crate) unsafe fn open<'a, T: Shelved>(pointer: *const T) -> Outcome<&'a T> {
    // SAFETY: memory that was handed out is never given back.
    let found = unsafe { pointer.as_ref() };
    match found {
        Some(it) if it.mark().load(Ordering::Acquire) == OPEN => match it.is_ours() {
            true => Ok(it),
            false => Err(forked::<T>()),
        },
        found => Err(refused::<T>(found.is_none())),
    }
}

#[cold]
pub(crate) fn forked<T: Shelved>() -> Failure {
    let name = T::NAME;
    let message = format!(
        "the {name} belongs to the process from which this one was forked, which goes on with the pool; open it again \
         when that has closed it"
    );
    Failure::new(Status::Forked, message)
}

#[cold]
fn refused<T: Shelved>(is_null: bool) -> Failure {
    let name = T::NAME;
    match is_null {
        true => Failure::invalid(format!("the {name} is null")),
        false => Failure::misuse(format!("the {name} was closed; open it again")),
    }
}
