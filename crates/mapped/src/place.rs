//! A resolved location: a bare pointer into the window.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use firn_media::Place;
use firn_units::WORD_BYTES;

use crate::Mapped;

/// Alignment of a place's address.
pub(crate) const PLACE_ALIGNMENT: u64 = 16;

/// A location in a [`Mapped`], borrowed from it. Loading through it is one `mov`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct MappedPlace<'m> {
    /// In the window and a multiple of [`PLACE_ALIGNMENT`]; the window and its guard are readable for `'m`.
    pub(crate) at: NonNull<u8>,
    medium: PhantomData<&'m Mapped>,
}

// SAFETY: a place only loads, atomically, from memory that its `Mapped` keeps readable for `'m`. `Mapped` is `Sync`, so
// a place may move to another thread like the shared borrow that it stands for.
unsafe impl Send for MappedPlace<'_> {}
// SAFETY: a shared place only loads, atomically, from memory that `Mapped`, which is `Sync`, keeps readable for `'m`.
unsafe impl Sync for MappedPlace<'_> {}

impl MappedPlace<'_> {
    /// Makes a place from a pointer.
    ///
    /// # Safety
    /// `at` lies in the window of the medium that `'m` borrows and is a multiple of
    /// [`PLACE_ALIGNMENT`].
    #[inline(always)]
    pub(crate) unsafe fn new(at: NonNull<u8>) -> Self {
        Self {
            at,
            medium: PhantomData,
        }
    }
}

impl Place for MappedPlace<'_> {
    /// Rounds `byte` down to a word. This costs nothing if the compiler sees that it is a multiple of one.
    #[inline(always)]
    fn load_u64(self, byte: u32) -> u64 {
        let byte = byte as usize & !(WORD_BYTES as usize - 1);
        // SAFETY: `new` was given a pointer into the window. `Window` keeps the window and the guard behind it, which
        // covers any `u32`, readable while the medium lives, and `'m` borrows the medium. The word is aligned because
        // both addends are. Rust code changes this memory only by atomics.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(byte).cast()) }.load(Ordering::Relaxed)
    }
}
