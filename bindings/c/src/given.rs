//! Arguments that a program passes to a call, and the headers' promises about them.
//!
//! To the caller each of these types is one pointer; its name states the header's promise. A program in C keeps the
//! promise or not, as with any library. Code in Rust cannot break it: it makes such a pointer from a reference, which
//! stays borrowed, or in an `unsafe` block. So library functions that take only these types are safe, and a program's
//! pointers are dereferenced only here. Pointers that the library itself handed out are in [`crate::handle_pool`].
//!
//! Nothing is borrowed from a program for longer than a call; `'a` stands for that.

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::{ptr, slice};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::status::{Failure, Outcome};

/// Null, or a value to read.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<'a, T>(*const T, PhantomData<&'a T>);

impl<T> Clone for In<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<'_, T> {}

/// Null, or room for a value.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

/// Null, or a value to read and replace, as in a cell.
#[repr(transparent)]
#[derive(Debug)]
pub struct InOut<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Clone for InOut<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for InOut<'_, T> {}

/// Null, or bytes that end with a zero.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

/// Null, or values to read, as many as another argument says.
#[repr(transparent)]
#[derive(Debug)]
pub struct Source<'a, T = c_void>(*const T, PhantomData<&'a T>);

impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

/// Null, or room for as many values as another argument says, which no other thread uses during the call.
#[repr(transparent)]
#[derive(Debug)]
pub struct Room<'a, T = c_void>(*mut T, PhantomData<&'a mut T>);

impl<T> In<'_, T> {
    pub const NULL: Self = Self(ptr::null(), PhantomData);

    /// # Safety
    ///
    /// It is null, or leads to a `T`, for the duration of the call that gets it.
    pub const unsafe fn new(pointer: *const T) -> Self {
        Self(pointer, PhantomData)
    }

    #[inline(always)]
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Its address.
    #[inline(always)]
    pub(crate) fn addr(self) -> usize {
        self.0.addr()
    }
}

impl<'a, T> From<&'a T> for In<'a, T> {
    fn from(given: &'a T) -> Self {
        Self(given, PhantomData)
    }
}

impl<T: Copy> In<'_, T> {
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: a reference, or the program's header, guarantees null or a `T` during the call.
        unsafe { self.0.as_ref() }.copied()
    }
}

impl<T> Out<'_, T> {
    pub const NULL: Self = Self(ptr::null_mut(), PhantomData);

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Does nothing with null.
    #[inline(always)]
    pub(crate) fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: a reference, or the program's header, guarantees room for a `T` during the call.
            unsafe { self.0.write(value) }
        }
    }
}

impl<'a, T> From<&'a mut T> for Out<'a, T> {
    fn from(room: &'a mut T) -> Self {
        Self(room, PhantomData)
    }
}

impl<T: Copy> InOut<'_, T> {
    #[inline(always)]
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: a reference, or the program's header, guarantees null or a `T` during the call.
        unsafe { self.0.as_ref() }.copied()
    }

    /// Does nothing with null.
    #[inline(always)]
    pub(crate) fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: a reference, or the program's header, guarantees room for a `T` during the call.
            unsafe { self.0.write(value) }
        }
    }

    /// Its address.
    pub(crate) fn pointer(self) -> *const c_void {
        self.0.cast_const().cast()
    }
}

impl<'a, T> From<&'a mut T> for InOut<'a, T> {
    fn from(given: &'a mut T) -> Self {
        Self(given, PhantomData)
    }
}

impl<'a> From<&'a CStr> for Text<'a> {
    fn from(text: &'a CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }
}

impl<'a> Text<'a> {
    pub const NULL: Self = Self(ptr::null(), PhantomData);

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    fn bytes(self, what: &str) -> Outcome<&'a CStr> {
        if self.0.is_null() {
            return Err(null(what));
        }
        // SAFETY: the pointer came from a `CStr`, or from a program, whose header promises bytes that end with a zero
        // and do not change during the call.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// The text; messages call it `what`.
    #[inline(always)]
    pub(crate) fn text(self, what: &str) -> Outcome<&'a str> {
        let text = self.bytes(what)?;
        text.to_str()
            .map_err(|_| Failure::invalid(format!("{what} is not valid UTF-8")))
    }

    /// A path, which need not be UTF-8.
    pub(crate) fn path(self) -> Outcome<&'a Path> {
        let bytes = self.bytes("the path")?.to_bytes();
        Ok(Path::new(OsStr::from_bytes(bytes)))
    }
}

impl<'a, T> Source<'a, T> {
    pub const NULL: Self = Self(ptr::null(), PhantomData);

    /// # Safety
    ///
    /// It is null, or leads to as many values as its call is told, for the duration of that call.
    pub const unsafe fn new(pointer: *const T) -> Self {
        Self(pointer, PhantomData)
    }

    /// A pointer to all of `things`. It does not store their number: the caller must.
    pub(crate) fn of(things: &'a [T]) -> Self {
        Self(things.as_ptr(), PhantomData)
    }

    #[inline(always)]
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn pointer(self) -> *const T {
        self.0
    }
}

impl<T: Copy> Source<'_, T> {
    /// All of them, one after the other.
    ///
    /// # Safety
    ///
    /// `count` is at most the number that the header promises for this argument, which is not null.
    pub(crate) unsafe fn each(self, count: usize) -> impl Iterator<Item = T> {
        // SAFETY: `index` lies below the number of values that the program promises, by this function's contract.
        (0..count).map(move |index| unsafe { *self.0.add(index) })
    }
}

impl<'a> Source<'a> {
    /// That many bytes, if it is not null.
    ///
    /// # Safety
    ///
    /// `len` is at most the number that the header promises for this argument, and at most an object's number of bytes.
    #[inline(always)]
    pub(crate) unsafe fn of_object(self, len: usize) -> Option<&'a [u8]> {
        // SAFETY: the program promises that many bytes, as our contract asks; a slice may be longer than any object.
        (!self.is_null()).then(|| unsafe { slice::from_raw_parts(self.0.cast(), len) })
    }

    /// The bytes; messages call them `what`.
    ///
    /// # Safety
    ///
    /// `len` is at most the number that the header promises for this argument.
    #[inline(always)]
    pub(crate) unsafe fn bytes(self, len: usize, what: &str) -> Outcome<&'a [u8]> {
        check_len(len, what)?;
        match (self.is_null(), len) {
            (_, 0) => Ok(&[]),
            (true, _) => Err(null(what)),
            // SAFETY: the program promises that many bytes, as our contract asks; lengths above a slice's were refused.
            (false, _) => Ok(unsafe { slice::from_raw_parts(self.0.cast(), len) }),
        }
    }
}

impl<T> Room<'_, T> {
    /// # Safety
    ///
    /// It is null, or leads to room for as many values as its call is told; no other thread uses it meanwhile.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer, PhantomData)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn pointer(&self) -> *mut T {
        self.0
    }
}

impl<'a> Room<'a> {
    /// The room, set to zeros: the program may have left it uninitialized. The caller has compared the length with the
    /// readable bytes, so that a wild length is refused before memory is touched.
    ///
    /// # Safety
    ///
    /// `len` is at most the number that the header promises for this argument.
    pub(crate) unsafe fn bytes(self, len: usize) -> Outcome<&'a mut [u8]> {
        const WHAT: &str = "the room for the bytes";
        check_len(len, WHAT)?;
        match (self.is_null(), len) {
            (_, 0) => Ok(&mut []),
            (true, _) => Err(null(WHAT)),
            // SAFETY: the program promises room for that many bytes, which no other thread uses, by this function's
            // contract; the first line initializes it.
            (false, _) => Ok(unsafe {
                ptr::write_bytes(self.0.cast::<u8>(), 0, len);
                slice::from_raw_parts_mut(self.0.cast(), len)
            }),
        }
    }
}

#[cold]
fn null(what: &str) -> Failure {
    Failure::invalid(format!("{what} is null"))
}

pub(crate) fn check_len(len: usize, what: &str) -> Outcome<()> {
    match isize::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::invalid(format!(
            "{what} has {len} bytes, more than memory can"
        ))),
    }
}
