//! Which process a medium belongs to, and what happens to it in a forked child.
//!
//! A child has its parent's memory and one of its threads. It shares the pools' files with its parent, which continues
//! to use them; the threads that held the pools' locks are missing. So a child may do nothing with its parent's pools.
//! [`firn_media::Runtime::is_ours`] detects this by one load of a word in a page that the system zeroes in every child,
//! however it was forked. A child that opens pools of its own stores a number there that no ancestor had.
//!
//! Accesses through pointers make no such check. So a child made by `fork(3)` finds the bytes unchanged, in memory of
//! its own: its stores go nowhere, and it keeps neither the parent's file nor its lock. A child made by a bare system
//! call shares the mapping, as with any other file.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use firn_format::statistics::ALL_BLOCKS;
use firn_units::FRAME_BYTES;

use crate::window::Stores;

/// The process in which a medium was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    word: &'static AtomicU64,
    number: u64,
}

/// How many numbers this process and its ancestors have taken.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Process {
    /// The calling process.
    ///
    /// Errors: no memory, or a system that cannot wipe a page in children (Linux before 4.14).
    pub(crate) fn this() -> io::Result<Self> {
        let word = word()?;
        let mut number = word.load(Ordering::Acquire);
        if number == 0 {
            let new = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
            number = match word.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => new,
                Err(other) => other,
            };
        }
        Ok(Self { word, number })
    }

    /// Whether this is the calling process.
    #[inline(always)]
    pub(crate) fn is_this(self) -> bool {
        self.word.load(Ordering::Relaxed) == self.number
    }
}

/// A word of a page that reads as zero in a child. The page is never unmapped.
fn word() -> io::Result<&'static AtomicU64> {
    static WORD: OnceLock<&'static AtomicU64> = OnceLock::new();
    if let Some(word) = WORD.get() {
        return Ok(word);
    }
    let bytes = FRAME_BYTES as usize;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without a fixed address the kernel chooses a free one. The advice is given for this page alone, and if it
    // is refused, nobody else uses the page.
    let page = unsafe {
        let page = libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if libc::madvise(page, bytes, libc::MADV_WIPEONFORK) != 0 {
            let error = io::Error::last_os_error();
            libc::munmap(page, bytes);
            return Err(error);
        }
        page
    };
    // SAFETY: the page is zero, mapped for the process's lifetime, and accessed only by atomics.
    let new = unsafe { AtomicU64::from_ptr(page.cast()) };
    Ok(WORD.get_or_init(|| new))
}

/// The file below a window, which a child must no longer share. Removed from the list on drop.
#[derive(Debug)]
pub(crate) struct SharedFile {
    base: usize,
}

#[derive(Debug)]
struct Entry {
    base: usize,
    bytes: u64,
    file: RawFd,
    writable: bool,
    stores: Stores,
}

static OPEN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<Entry>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedFile {
    /// Registers that at most `bytes` of `file` are mapped from `base` on.
    pub(crate) fn new(
        base: *mut u8,
        bytes: u64,
        file: &File,
        (writable, stores): (bool, Stores),
    ) -> Self {
        static HANDLERS: Once = Once::new();
        HANDLERS.call_once(|| {
            // SAFETY: the handlers are functions of this library; the system unregisters them when it unloads the
            // library.
            unsafe { pthread_atfork(Some(before), Some(after), Some(in_child)) };
        });
        let base = base.expose_provenance();
        open().push(Entry {
            base,
            bytes,
            file: file.as_raw_fd(),
            writable,
            stores,
        });
        Self { base }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        open().retain(|entry| entry.base != self.base);
    }
}

type Handler = unsafe extern "C" fn();

unsafe extern "C" {
    fn pthread_atfork(
        before: Option<Handler>,
        after: Option<Handler>,
        in_child: Option<Handler>,
    ) -> core::ffi::c_int;
}

/// The locked list during a fork. The forking thread stores it and takes it out again; in the child that is the only
/// thread.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

struct Held(MutexGuard<'static, Vec<Entry>>);

// SAFETY: the thread that made the guard drops it, or its copy in the child does.
unsafe impl Send for Held {}

extern "C" fn before() {
    let list = open();
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Held(list));
}

extern "C" fn after() {
    drop(HELD.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Allocates nothing: another thread may have held the allocator's locks.
extern "C" fn in_child() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    for entry in held.iter().flat_map(|held| held.0.iter()) {
        entry.part_from_parent();
    }
}

impl Entry {
    fn part_from_parent(&self) {
        const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let start = core::ptr::with_exposed_provenance_mut::<c_void>(self.base);
        // SAFETY: the calls change the child's own file table and address space, in the window that an open medium
        // owns; the child has no other thread. The pages that replace the old ones are readable.
        unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            if libc::fstat(self.file, &raw mut status) != 0 {
                return;
            }
            let whole = FRAME_BYTES * (status.st_size as u64).div_ceil(FRAME_BYTES);
            let len = whole.min(self.bytes) as usize;
            if len == 0 {
                return;
            }
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // The file is reopened: the parent's lock belongs to the old descriptor and to mappings made from it.
            let new = self.opened_anew();
            let mapped = match new {
                // The child has copies of its parent's pages already, but of those that are shared.
                _ if self.stores == Stores::Private => self.part_from_statistics(start),
                0.. => libc::mmap(start, len, protection, PRIVATE, new, 0),
                _ => libc::MAP_FAILED,
            };
            if mapped == libc::MAP_FAILED {
                let flags = PRIVATE | libc::MAP_ANONYMOUS;
                if libc::mmap(start, len, protection, flags, -1, 0) == libc::MAP_FAILED {
                    libc::mmap(start, len, libc::PROT_READ, flags, -1, 0);
                }
            }
            if new >= 0 {
                libc::dup3(new, self.file, libc::O_CLOEXEC);
                libc::close(new);
            }
        }
    }

    /// Has zeros in the place of the statistics' pages. Returns the start of the window, or `MAP_FAILED`.
    ///
    /// # Safety
    /// `start` is the window's, in a child that has no other thread.
    unsafe fn part_from_statistics(&self, start: *mut c_void) -> *mut c_void {
        const ZEROS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let range = ALL_BLOCKS.start..ALL_BLOCKS.end.min(self.bytes);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = start.wrapping_byte_add(range.start as usize);
        let len = (range.end - range.start) as usize;
        // SAFETY: the range lies in the window, which is larger than its first chunk.
        match unsafe { libc::mmap(at, len, protection, ZEROS, -1, 0) } {
            libc::MAP_FAILED => libc::MAP_FAILED,
            _ => start,
        }
    }

    /// A new descriptor of the file; negative on failure.
    fn opened_anew(&self) -> RawFd {
        let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
        let (mut digits, mut rest, mut count) = ([0; 10], self.file as u32, 0);
        while rest > 0 || count == 0 {
            digits[count] = b'0' + (rest % 10) as u8;
            (rest, count) = (rest / 10, count + 1);
        }
        let number = &mut path[b"/proc/self/fd/".len()..];
        for (to, digit) in number.iter_mut().zip(digits[..count].iter().rev()) {
            *to = *digit;
        }
        let how = match self.writable {
            true => libc::O_RDWR,
            false => libc::O_RDONLY,
        };
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::open(path.as_ptr().cast(), how | libc::O_CLOEXEC) }
    }
}
