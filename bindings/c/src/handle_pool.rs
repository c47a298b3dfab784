//! Memory of the pools, sessions and handles that programs hold.
//!
//! It is reused and never given back, so that a pointer to a closed one leads to memory that says so, as long as
//! nothing new was opened in its place.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::status::{Failure, Outcome, Status};

/// The mark at the beginning of an open one's memory, after the part that the program reads.
const OPEN: u64 = 0x4669_726e_4f70_656e;

/// An object that a program holds a pointer to.
pub trait Pooled: Sized {
    /// Its name in messages.
    const NAME: &'static str;

    /// The word that says whether it is open.
    fn mark(&self) -> &AtomicU64;

    /// Whether this process, not the one it was forked from, opened it. Objects without a pool belong to all.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        true
    }
}

/// A program's pointer to an object from a [`HandlePool`], or null. The object may have been closed meanwhile.
///
/// In Rust, only a handle pool makes one; a program passes what it was given, which is all that the headers ask of it.
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

// SAFETY: it yields shared references, which threads may have to a `Sync` type; taking an object back requires, by a
// contract of its own, that no other thread uses it.
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
    /// It is null, or a handle pool handed it out.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// The object, whichever process opened it.
    ///
    /// # Safety
    ///
    /// It is not null, and the object has not been closed.
    #[inline(always)]
    pub(crate) unsafe fn there<'a>(self) -> &'a T {
        // SAFETY: it was handed out, and the content has not been taken back, by this function's contract.
        unsafe { &*self.0 }
    }
}

impl<T: Pooled> Handed<T> {
    /// The object.
    ///
    /// Errors: it was closed, or belongs to another process.
    #[inline(always)]
    pub(crate) fn open<'a>(self) -> Outcome<&'a T> {
        // SAFETY: it is null, or was handed out, as every maker of such a value ensures; and memory that was handed out
        // is never given back. Taking the content out requires that no reference to it is left.
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

    /// Hands an object out to the program.
    pub(crate) fn hand_out(&self, new: T) -> Handed<T> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let place = match free {
            Some(Handed(place)) => {
                // SAFETY: the place came from the allocation below, and its content was moved out when it was put in
                // the pool.
                unsafe { place.write(new) };
                place
            }
            None => Box::into_raw(Box::new(new)),
        };
        // SAFETY: an object was just put there.
        unsafe { &*place }.mark().store(OPEN, Ordering::Release);
        Handed(place)
    }

    /// Takes back an object that the program holds.
    ///
    /// Errors: as [`Handed::open`].
    ///
    /// # Safety
    ///
    /// No thread uses it meanwhile, and no reference to it is left.
    pub(crate) unsafe fn take_back(&self, handed: Handed<T>) -> Outcome<T> {
        handed.open()?.mark().store(0, Ordering::Release);
        // SAFETY: it was open, so an object is there. It is moved out here, once: the mark says that it is gone. No
        // other reference uses it, by this function's contract.
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
