//! The address window: reserved once, readable everywhere, mapped over from the front.
//!
//! Invariant, on which every `unsafe` block of this crate rests: from [`Window::reserve`] to the drop, every byte of
//! the window and of the guard behind it is mapped and readable. Mappings are replaced (`MAP_FIXED`), in one step for
//! other threads, and never removed.

use core::ffi::c_void;
use core::ops::Range;
use core::ptr::NonNull;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_units::{CHUNK_BYTES, FRAME_BYTES};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags};
use rustix::mm::{MprotectFlags, mprotect};
use rustix::mm::{madvise, mmap, mmap_anonymous, mremap_fixed, msync, munmap};

use crate::system::{SCRAMBLE_STEP, scramble, usable_memory};
use crate::{HugePages, Placement};

/// Readable zeros behind the window, needed because a place adds a `u32` to an address in it.
const GUARD_BYTES: u64 = 1 << 32;

/// Where stores to a file's pages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stores {
    /// To the file.
    Shared,
    /// To memory of this process (`MAP_PRIVATE`).
    Private,
}

/// How a file is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileMapping {
    pub(crate) writable: bool,
    /// Whether the kernel guarantees that there is no page cache in between (`MAP_SYNC`).
    pub(crate) dax: bool,
    /// Whether stores stay in this process, in memory of its own (`MAP_PRIVATE`).
    pub(crate) private: bool,
}

/// A reserved range of the address space, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Window {
    /// Aligned to a huge page.
    base: NonNull<u8>,
    /// Bytes without the guard, a power of two.
    bytes: u64,
    /// Whether a page of a file is read alone, without those around it.
    reads_alone: AtomicBool,
}

/// A file that takes more than this share of the memory that the process may use is read page by page. The system reads
/// up to some megabytes around a page that is missing. Where a file does not fit into memory, these drive out pages that
/// are needed, and most of them go unused themselves.
const SHARE_READ_AHEAD: u64 = 2;

// SAFETY: a window is an address range of the process, not of a thread; its methods change mappings by system calls,
// which any thread may make.
unsafe impl Send for Window {}
// SAFETY: its methods take `&self` and change mappings by system calls, which the kernel orders; of its fields only
// an atomic one changes.
unsafe impl Sync for Window {}

impl Window {
    /// Reserves `bytes`, a power of two of at least a huge page, and the guard.
    pub(crate) fn reserve(bytes: u64, placement: Placement) -> Result<Self, Errno> {
        assert!(bytes.is_power_of_two() && bytes >= CHUNK_BYTES);
        let base = match placement {
            Placement::System => reserve_anywhere(bytes)?,
            Placement::Random(seed) => reserve_drawn(bytes, seed)?,
        };
        let window = Self {
            base,
            bytes,
            reads_alone: AtomicBool::new(false),
        };
        let _ = window.advise(0..bytes, Advice::LinuxDontDump);
        Ok(window)
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the range read as zeros and refuse stores.
    pub(crate) fn map_zeros(&self, range: Range<u64>) -> Result<(), Errno> {
        let (start, len) = self.locate(&range);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: `locate` keeps the range in the window, which this crate owns. The new pages are readable, so the
        // invariant holds. No references into the window exist: only atomics and copies access it.
        unsafe { mmap_anonymous(start, len, ProtFlags::READ, zeros() | MapFlags::FIXED) }
            .map(drop)
            .inspect_err(|_| self.assert_whole(&range))?;
        // A core dump does not need the zeros.
        let _ = self.advise(range, Advice::LinuxDontDump);
        Ok(())
    }

    /// Maps anonymous memory that can be stored to.
    pub(crate) fn map_memory(&self, range: Range<u64>) -> Result<(), Errno> {
        let (start, len) = self.locate(&range);
        if len == 0 {
            return Ok(());
        }
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: `locate` keeps the range in the window, which this crate owns. The new pages are readable, and no
        // references into the window exist.
        unsafe { mmap_anonymous(start, len, ProtFlags::READ | ProtFlags::WRITE, flags) }
            .map(drop)
            .inspect_err(|_| self.mend(range))
    }

    /// Maps this range of `file`.
    pub(crate) fn map_file(
        &self,
        range: Range<u64>,
        file: &File,
        how: FileMapping,
    ) -> Result<(), Errno> {
        let (start, len) = self.locate(&range);
        if len == 0 {
            return Ok(());
        }
        // The file is first mapped elsewhere: on some kernels a failed mapping in place leaves a gap (6.18, asked for
        // `MAP_SYNC` on a file system without it), and another thread's window may land there before the gap is mended.
        let aside = Aside::map(range.clone(), file, how)?;
        // SAFETY: nobody else knows the source. `locate` keeps the destination in the window, which this crate owns;
        // the new pages there are readable, and no references into the window exist.
        let moved = unsafe { mremap_fixed(aside.start, len, len, MremapFlags::MAYMOVE, start) };
        match moved {
            Ok(_) => {
                core::mem::forget(aside);
                self.advise_reading(range);
                Ok(())
            }
            Err(refused) => {
                self.mend(range);
                Err(refused)
            }
        }
    }

    /// Has the pages of a file that was mapped read alone, once it does not fit well into memory. Only a hint.
    fn advise_reading(&self, range: Range<u64>) {
        let fits = range.end <= usable_memory() / SHARE_READ_AHEAD;
        let from = match self.reads_alone.fetch_or(!fits, Ordering::Relaxed) {
            true => range.start,
            false if fits => return,
            false => 0,
        };
        let _ = self.advise(from..range.end, Advice::Random);
    }

    /// Asks for huge pages in the range, and does without if there are none.
    pub(crate) fn advise_huge_pages(&self, range: Range<u64>, huge_pages: HugePages) {
        let advice = match huge_pages {
            HugePages::Ask => Advice::LinuxHugepage,
            HugePages::Refuse => Advice::LinuxNoHugepage,
            HugePages::System => return,
        };
        let _ = self.advise(range, advice);
    }

    /// Drops the pages of a range of anonymous memory; it reads as zeros from then on.
    pub(crate) fn forget(&self, range: Range<u64>) -> Result<(), Errno> {
        self.advise(range, Advice::LinuxDontNeed)
    }

    /// Makes every page of the range present and writable.
    pub(crate) fn populate_for_stores(&self, range: Range<u64>) -> Result<(), Errno> {
        self.advise(range, Advice::LinuxPopulateWrite)
    }

    /// Makes every page of the range present.
    pub(crate) fn populate_for_loads(&self, range: Range<u64>) -> Result<(), Errno> {
        self.advise(range, Advice::LinuxPopulateRead)
    }

    /// Waits until the range's dirty pages are on their device.
    pub(crate) fn write_out(&self, range: Range<u64>) -> Result<(), Errno> {
        let (start, len) = self.locate(&range);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: `locate` keeps the range in the window; msync changes no byte of it.
        unsafe { msync(start, len, MsyncFlags::SYNC) }
    }

    /// Restores the invariant after a failed mapping, which leaves a gap on some kernels and file systems. Mappings
    /// only ever replace zeros, so zeros are put back.
    fn mend(&self, range: Range<u64>) {
        if self.map_zeros(range.clone()).is_err() {
            self.assert_whole(&range);
        }
    }

    /// Ends the process if there is a gap in the range: other code of the program might get memory there, and damaged
    /// references would reach it.
    fn assert_whole(&self, range: &Range<u64>) {
        let (start, len) = self.locate(range);
        // SAFETY: `locate` keeps the range in the window; this only asks whether it is mapped.
        if unsafe { msync(start, len, MsyncFlags::ASYNC) } == Err(Errno::NOMEM) {
            eprintln!("firn: the kernel left a gap in the address window; giving up");
            std::process::abort();
        }
    }

    /// Allows the program to load and store in the range, or forbids both.
    pub(crate) fn protect(&self, range: Range<u64>, accessible: bool) -> Result<(), Errno> {
        let (start, len) = self.locate(&range);
        let flags = match accessible {
            true => MprotectFlags::READ | MprotectFlags::WRITE,
            false => MprotectFlags::empty(),
        };
        // SAFETY: `locate` keeps the range in the window, whose memory is accessed only by address: an access to an
        // inaccessible page is stopped.
        unsafe { mprotect(start, len, flags) }
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> Result<(), Errno> {
        let (start, len) = self.locate(&range);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: `locate` keeps the range in the window. The advice that the callers above give never unmaps anything.
        unsafe { madvise(start, len, advice) }
    }

    /// Turns a range of the window into the arguments of a system call.
    fn locate(&self, range: &Range<u64>) -> (*mut c_void, usize) {
        assert!(
            range.start <= range.end && range.end <= self.bytes,
            "{range:?} leaves a window of {} bytes",
            self.bytes
        );
        assert!(range.start.is_multiple_of(FRAME_BYTES) && range.end.is_multiple_of(FRAME_BYTES));
        // SAFETY: the range lies in the window, which is one reservation.
        let start = unsafe { self.base.add(range.start as usize) };
        (start.as_ptr().cast(), (range.end - range.start) as usize)
    }
}

/// A mapping of part of a file outside any window, unmapped on drop.
pub(crate) struct Aside {
    start: *mut c_void,
    len: usize,
}

impl Aside {
    /// Maps a range of `file`, at a multiple of a huge page if it is at least as long as one.
    pub(crate) fn map(range: Range<u64>, file: &File, how: FileMapping) -> Result<Self, Errno> {
        let len = (range.end - range.start) as usize;
        let mut prot = ProtFlags::READ;
        if how.writable {
            prot |= ProtFlags::WRITE;
        }
        let share = match how {
            // No memory is reserved for pages that may never be stored to.
            FileMapping { private: true, .. } => MapFlags::PRIVATE | MapFlags::NORESERVE,
            FileMapping { dax: true, .. } => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            _ => MapFlags::SHARED,
        };
        let hint = if len < CHUNK_BYTES as usize {
            core::ptr::null_mut()
        } else {
            // Only a hint: without it the pool works equally well, on small pages.
            free_aligned(len).unwrap_or(core::ptr::null_mut())
        };
        // SAFETY: without a fixed address the kernel chooses a free one: the hint, if it is still free. The caller
        // answers for the file's length; an access past the file's end raises a signal and never reaches foreign
        // memory.
        let start = unsafe { mmap(hint, len, prot, share, file, range.start)? };
        Ok(Self { start, len })
    }

    /// Gathers the mapping's pages into huge pages.
    pub(crate) fn gather_huge_pages(&self) -> Result<(), Errno> {
        // SAFETY: this value owns the mapping, and the advice changes no byte of it.
        match unsafe { libc::madvise(self.start, self.len, libc::MADV_COLLAPSE) } {
            0 => Ok(()),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and nobody else knows it.
        let unmapped = unsafe { munmap(self.start, self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let bytes = (self.bytes + GUARD_BYTES) as usize;
        // SAFETY: the reservation belongs to this window, and nobody borrows the medium any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// How the unused part of a window is mapped. All its pages share one page of zeros.
fn zeros() -> MapFlags {
    MapFlags::PRIVATE | MapFlags::NORESERVE
}

/// Reserves an address range that the system chooses, and unmaps the parts that alignment leaves over.
fn reserve_anywhere(bytes: u64) -> Result<NonNull<u8>, Errno> {
    let wanted = (bytes + GUARD_BYTES) as usize;
    let slack = CHUNK_BYTES as usize;
    let null = core::ptr::null_mut();
    // SAFETY: without a fixed address the kernel chooses a free one.
    let start = unsafe { mmap_anonymous(null, wanted + slack, ProtFlags::READ, zeros())? };
    let skew = start.addr().next_multiple_of(slack) - start.addr();
    let base = start.wrapping_byte_add(skew);
    for (extra, len) in [
        (start, skew),
        (base.wrapping_byte_add(wanted), slack - skew),
    ] {
        if len > 0 {
            // SAFETY: these are the two ends of the reservation above, outside the part that is kept.
            unsafe { munmap(extra, len)? };
        }
    }
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// An address that is a multiple of a huge page and free, for now. A mapping that begins elsewhere shares page tables
/// with its neighbours and takes them along when it is moved, and the kernel maps no huge page where a page table
/// exists.
fn free_aligned(len: usize) -> Result<*mut c_void, Errno> {
    let wanted = len + CHUNK_BYTES as usize;
    // SAFETY: without a fixed address the kernel chooses a free one.
    let start = unsafe { mmap_anonymous(core::ptr::null_mut(), wanted, ProtFlags::READ, zeros())? };
    // SAFETY: the range was mapped just now and nobody else knows it.
    unsafe { munmap(start, wanted)? };
    Ok(start.wrapping_byte_add(start.addr().next_multiple_of(CHUNK_BYTES as usize) - start.addr()))
}

/// Reserves at the first free address that the seed yields.
fn reserve_drawn(bytes: u64, seed: u64) -> Result<NonNull<u8>, Errno> {
    const LOWEST: u64 = 1 << 40;
    const HIGHEST: u64 = 0x7000 << 32;
    const DRAWS: u64 = 64;
    let wanted = bytes + GUARD_BYTES;
    let chunks = HIGHEST.saturating_sub(LOWEST + wanted) / CHUNK_BYTES;
    let seed = scramble(seed.wrapping_add(SCRAMBLE_STEP));
    for draw in 0..DRAWS {
        let word = scramble(seed.wrapping_add(draw.wrapping_mul(SCRAMBLE_STEP)));
        let at = LOWEST + word % chunks.max(1) * CHUNK_BYTES;
        let at = core::ptr::without_provenance_mut::<c_void>(at as usize);
        let flags = zeros() | MapFlags::FIXED_NOREPLACE;
        // SAFETY: the kernel refuses an address that is taken, and does not replace its mapping.
        match unsafe { mmap_anonymous(at, wanted as usize, ProtFlags::READ, flags) } {
            Ok(start) if start == at => return NonNull::new(start.cast()).ok_or(Errno::NOMEM),
            Ok(start) => {
                // A kernel too old for the flag took the address as a hint.
                // SAFETY: the range was mapped just now and nobody else knows it.
                unsafe { munmap(start, wanted as usize)? };
            }
            Err(Errno::EXIST) => {}
            Err(other) => return Err(other),
        }
    }
    reserve_anywhere(bytes)
}
