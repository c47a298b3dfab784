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
/// Reserved space may be missing after a crash if nothing was stored to it; reserving it again restores it. A discard
/// is durable after the next [`Space::sync`], or earlier.
pub trait Space {
    /// The medium's name in errors: a file's path if it has one.
    fn name(&self) -> String;

    /// Identifies the boot of the machine: differs after a power failure, stays the same after the death of a process.
    fn boot_id(&self) -> [u8; 16];

    /// Declares which pool the medium holds, before anything is stored to it. If one file can be a copy of another, no
    /// other medium of the process may declare this pool while the medium lives.
    ///
    /// Errors: [`MediumError::CopyIsOpen`]; nothing was stored.
    fn claim(&self, identity: [u8; 16]) -> Result<(), MediumError> {
        let _ = identity;
        Ok(())
    }

    /// Tells a new medium which pool it is going to hold, before anything is stored to it: what a medium keeps beside the
    /// pool carries this identity. Once.
    ///
    /// Errors: no space, and what the system says.
    fn begin(&self, identity: [u8; 16]) -> Result<(), MediumError> {
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

    /// Bytes up to which the medium may grow without being reopened.
    fn capacity(&self) -> u64;

    /// Makes the range usable: grows the medium if necessary and allocates blocks on the device, so that a store into
    /// the range cannot fail. New bytes read as zeros. The range's length and start are multiples of a frame. Space
    /// already allocated keeps its content.
    ///
    /// Errors: no space, beyond the capacity; content and length are unchanged.
    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError>;

    /// Gives the blocks of a range back to the device. From then on the range reads as zeros, and it must be reserved
    /// again before it is stored to. The range's length and start are multiples of a frame. Durable after the next
    /// [`Space::sync`], or earlier: the caller must not need the old content once it makes the call.
    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError>;

    /// Bytes of the pieces that [`Space::discard`] gives back: it frees the blocks of whole, aligned pieces of this
    /// length, a power of two and at least a frame. The rest of a range then reads as zeros and keeps its blocks.
    fn discard_bytes(&self) -> u64 {
        FRAME_BYTES
    }

    /// Shortens the medium to `len` bytes, a multiple of a frame.
    fn truncate(&self, len: u64) -> Result<(), MediumError>;

    /// Makes everything stored before the call durable against a power failure on any device
    /// (msync and fsync). Concurrent stores may or may not be included.
    fn sync(&self) -> Result<(), MediumError>;

    /// Whether the medium holds as much of the pool in the process's memory as it may. Before the next transaction the
    /// heap calls [`Space::sync`], and then [`Space::ready_copies`] and [`Space::drop_copies`] in turns.
    #[inline(always)]
    fn is_full_of_copies(&self) -> bool {
        false
    }

    /// Bytes of the pool that the medium may hold in the process's memory. A cycle of the collector, whose copies and healed
    /// references cannot be dropped before its end, takes a small part of them.
    #[inline(always)]
    fn most_copied_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Reads what the next [`Space::drop_copies`] compares, which waits for no device. May wait for the device.
    fn ready_copies(&self, from: VirtAddr) {
        let _ = from;
    }

    /// Drops memory that holds what the device holds as well, from `from` on and for a millisecond at most. Content is
    /// unchanged. Returns whether there may be more to drop.
    ///
    /// Concurrency: nobody stores at or behind `from` meanwhile; loads may go on.
    fn drop_copies(&self, from: VirtAddr) -> bool {
        let _ = from;
        false
    }

    /// Makes a new medium, with all its content, durable under its name. Does nothing if it already has its name, or
    /// has none.
    ///
    /// Errors: the name is taken by now, the device failed; the medium is unchanged.
    ///
    /// Crash: before this returns, the name leads to nothing or to everything that was stored before the call.
    fn publish(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Bytes of the device that are allocated to this medium.
    fn backed_bytes(&self) -> Result<u64, MediumError>;

    /// Ranges of bytes for which the device holds data, ascending, with gaps between them. Bytes that were never stored
    /// to, or were discarded, are missing. `None` if the medium cannot tell.
    fn data_ranges(&self) -> Result<Option<Vec<Range<u64>>>, MediumError> {
        Ok(None)
    }
}
