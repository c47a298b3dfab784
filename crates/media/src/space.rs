//! Space on the device: how long a medium is, and which of its bytes have blocks.

use core::ops::Range;

use firn_units::{FRAME_BYTES, VirtAddr};

use crate::MediumError;

/// The second part of a medium: its name and identity, its length, its blocks.
///
/// # What it promises
///
/// - **A store never fails for want of space.** Blocks come from [`Space::reserve`] alone, which refuses and changes
///   nothing when the device is full.
/// - **New bytes read as zeros**, and so do bytes that were discarded.
/// - **Ranges are whole frames**, from a multiple of a frame on.
///
/// # Crash
///
/// Reserved space that nothing was stored to may be missing after a crash; whoever reserves again gets it. A discard is
/// durable after the next [`Space::sync`], or earlier.
pub trait Space {
    /// What to call this medium in an error: the path of a file, where there is one.
    fn name(&self) -> String;

    /// Identifies the boot of the machine: differs after a power failure, stays the same after the
    /// death of a process.
    fn boot_id(&self) -> [u8; 16];

    /// Says which pool the medium holds, before anything is stored to it. From then on, while the medium lives, no other
    /// one of the process may say the same, where one file can be a copy of another.
    ///
    /// Errors: [`MediumError::CopyIsOpen`]; nothing was stored.
    fn claim(&self, identity: [u8; 16]) -> Result<(), MediumError> {
        let _ = identity;
        Ok(())
    }

    /// Whether stores are allowed.
    fn is_writable(&self) -> bool;

    /// Bytes that may be accessed now. Grows by [`Space::reserve`], shrinks by [`Space::truncate`].
    fn len(&self) -> u64;

    /// Whether nothing may be accessed yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes up to which the medium may grow without being opened anew.
    fn capacity(&self) -> u64;

    /// Makes the range usable: grows the medium if it must and allocates blocks on the device, so
    /// that a store into it cannot fail. New bytes read as zeros. The range's length and start are
    /// multiples of a frame. Space already allocated keeps its content.
    ///
    /// Errors: no space, beyond the capacity; the content is unchanged, the length too.
    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError>;

    /// Gives the blocks of a range back to the device; the range reads as zeros from then on and
    /// must be reserved again before it is stored to. The range's length and start are multiples of
    /// a frame. Durable after the next [`Space::sync`], or earlier: the caller must not need the
    /// old content from the moment of the call.
    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError>;

    /// What [`Space::discard`] gives back at once: the blocks of whole aligned pieces of so many bytes, a power of two
    /// and a frame at least. The rest of a range reads as zeros afterwards and keeps its blocks.
    fn discard_bytes(&self) -> u64 {
        FRAME_BYTES
    }

    /// Shortens the medium to `len` bytes, a multiple of a frame.
    fn truncate(&self, len: u64) -> Result<(), MediumError>;

    /// Makes everything stored before the call durable against a power failure on any device
    /// (msync and fsync). Concurrent stores may or may not be included.
    fn sync(&self) -> Result<(), MediumError>;

    /// Makes a new medium, with all that it holds, found by its name, for good on return. Does nothing where it has
    /// its name, or none.
    ///
    /// Errors: the name is taken by now, the device failed; the medium is as it was.
    ///
    /// Crash: before this returns, the name leads to nothing or to what was stored before the call.
    fn publish(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Bytes of the device that are allocated to this medium.
    fn backed_bytes(&self) -> Result<u64, MediumError>;

    /// Ranges of bytes that the device holds data for, ascending, with gaps between: what was never
    /// stored to, and what was discarded, is missing. `None` where the medium cannot say.
    fn data_ranges(&self) -> Result<Option<Vec<Range<u64>>>, MediumError> {
        Ok(None)
    }
}
