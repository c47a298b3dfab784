//! Memory of what programs hold: pools, sessions, handles.
//!
//! It is used again and never given back, so that a pointer to something that was closed leads to memory that says
//! so, as long as nothing new was opened in its place.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::status::{Failure, Outcome, Status};

/// What the memory of something open begins with, but for what the program reads in front of it.
const OPEN: u64 = 0x4669_726e_4f70_656e;

/// Something that a program holds a pointer to.
pub trait Pooled: Sized {
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

/// A program's pointer to what a [`HandlePool`] handed out, or null. It may have been closed meanwhile.
///
/// Only a handle pool makes one, for Rust; a program passes what it was given, which is all that the headers ask of it.
#[repr(transparent)]
#[derive(Debug)]
pub struct Handed<T>(*mut T);

impl<T> Clone for Handed<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handed<T> {}

impl<T> PartialEq for Handed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

// SAFETY: it yields shared references, which threads may have to what is `Sync`; what takes something back asks in a
// contract of its own that no other thread uses it.
unsafe impl<T: Sync> Send for Handed<T> {}
// SAFETY: it is a number that does not change, and may be sent.
unsafe impl<T: Sync> Sync for Handed<T> {}

impl<T> Handed<T> {
    pub const NULL: Self = Self(ptr::null_mut());

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn pointer(self) -> *mut T {
        self.0
    }

    /// # Safety
    ///
    /// It is null, or was handed out.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// What is there, whichever process opened it.
    ///
    /// # Safety
    ///
    /// It is not null, and nobody has closed it.
    #[inline(always)]
    pub(crate) unsafe fn there<'a>(self) -> &'a T {
        // SAFETY: it was handed out, and nobody has taken the content back, as the caller vouches.
        unsafe { &*self.0 }
    }
}

impl<T: Pooled> Handed<T> {
    /// What is there.
    ///
    /// Errors: it was closed, or is another process's.
    #[inline(always)]
    pub(crate) fn open<'a>(self) -> Outcome<&'a T> {
        // SAFETY: it is null, or was handed out, by what makes such a value; and memory that was handed out is never
        // given back. Taking the content out requires that no reference to it is left.
        let found = unsafe { self.0.as_ref() };
        match found {
            Some(it) if it.mark().load(Ordering::Acquire) == OPEN => match it.is_ours() {
                true => Ok(it),
                false => Err(forked::<T>()),
            },
            found => Err(refused::<T>(found.is_none())),
        }
    }
}

/// Memory that is not in use.
pub(crate) struct HandlePool<T>(Mutex<Vec<Handed<T>>>);

// SAFETY: a free place belongs to no thread. A thread takes it out under the lock before it writes to it.
unsafe impl<T> Sync for HandlePool<T> {}

impl<T: Pooled> HandlePool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Hands something out to the program.
    pub(crate) fn hand_out(&self, new: T) -> Handed<T> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let place = match free {
            Some(Handed(place)) => {
                // SAFETY: the place came from the allocation below, and its content was moved out when it was put
                // in it.
                unsafe { place.write(new) };
                place
            }
            None => Box::into_raw(Box::new(new)),
        };
        // SAFETY: something was just put there.
        unsafe { &*place }.mark().store(OPEN, Ordering::Release);
        Handed(place)
    }

    /// Takes back what the program holds.
    ///
    /// Errors: as [`Handed::open`].
    ///
    /// # Safety
    ///
    /// Nobody uses it meanwhile, and no reference to it is left.
    pub(crate) unsafe fn take_back(&self, handed: Handed<T>) -> Outcome<T> {
        handed.open()?.mark().store(0, Ordering::Release);
        // SAFETY: it was open, so something is there. That is moved out here, once: the mark says that it is gone. No
        // other reference looks at it, as the caller vouches.
        let content = unsafe { handed.0.read() };
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(handed);
        Ok(content)
    }
}

#[cold]
pub(crate) fn forked<T: Pooled>() -> Failure {
    let name = T::NAME;
    let message = format!(
        "the {name} belongs to the process from which this one was forked, which goes on with the pool; open it again \
         when that has closed it"
    );
    Failure::new(Status::Forked, message)
}

#[cold]
fn refused<T: Pooled>(is_null: bool) -> Failure {
    let name = T::NAME;
    match is_null {
        true => Failure::invalid(format!("the {name} is null")),
        false => Failure::misuse(format!("the {name} was closed; open it again")),
    }
}
