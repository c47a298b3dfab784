//! The medium itself, and its facts beyond the contract.

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use firn_media::{Domain, MediumError, Memory, Space};
use firn_units::{FRAME_BYTES, VirtAddr, round_up};

use crate::file::PoolFile;
use crate::flush::Flush;
use crate::identity::Claim;
use crate::logged::Logged;
use crate::logged::pages::Pages;
use crate::process::{Process, SharedFile};
use crate::space::SpaceState;
use crate::system::Randomness;
use crate::window::{Stores, Window};
use crate::{Backing, FlushInstruction, HugePages, MappedOptions};

/// Real memory: a file mapped into a reserved window, or anonymous memory.
///
/// Concurrency: everything may be called from any thread. Operations that change the medium's space wait for a lock of
/// their own, which is never held while the heap's code runs.
///
/// Crash: see the crate's table. The file's lock ends with the process.
///
/// Fork: a child may only drop it ([`firn_media::Runtime::is_ours`]). The child's stores stay its own.
#[derive(Debug)]
pub struct Mapped {
    /// Start of the window; aligned to a huge page.
    pub(crate) base: NonNull<u8>,
    /// Bytes of the window less one.
    pub(crate) mask: u64,
    /// `mask` without the bits below a place's alignment.
    pub(crate) place_mask: u64,
    /// Bytes that may be loaded. The mapping reaches at least this far, except for the part that [`Space::truncate`] is
    /// about to remove.
    pub(crate) len: AtomicU64,
    /// Bytes that may be stored to: `len`, or zero if the medium is read-only.
    pub(crate) store_limit: AtomicU64,
    pub(crate) flush: Flush,
    pub(crate) domain: Domain,
    pub(crate) backing: Backing,
    pub(crate) writable: bool,
    pub(crate) boot_id: [u8; 16],
    pub(crate) randomness: Randomness,
    pub(crate) options: MappedOptions,
    /// Locked by operations that change the medium's space.
    pub(crate) space: Mutex<SpaceState>,
    pub(crate) process: Process,
    /// The log, in [`Domain::Logged`]. Brought home before the file's lock is released.
    pub(crate) logged: Option<Logged>,
    /// Dropped before the file's lock is released, so that the next opener finds it gone.
    pub(crate) claim: OnceLock<Claim>,
    /// Declared before the window and the file that it refers to, so that it is dropped first.
    pub(crate) _shared: Option<SharedFile>,
    // Unmapped before the file is closed: both hold the lock.
    pub(crate) window: Window,
    pub(crate) file: Option<Arc<PoolFile>>,
    /// Where stores go that are made to the file's pages.
    pub(crate) stores: Stores,
    /// The file of which this is a copy in memory.
    pub(crate) original: Option<PoolFile>,
}

// SAFETY: `base` is the only field that is not `Send` by itself; it points into `window`, which is
// part of the same value, and is used for atomics and copies only.
unsafe impl Send for Mapped {}
// SAFETY: shared use goes through atomics and copies in the window, the mutex, and system calls.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// What backs the mapping.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// The instruction that write-backs use on `adr`: the best one of this processor. Other domains use none.
    pub fn flush_instruction(&self) -> FlushInstruction {
        match self.flush {
            Flush::Lines(instruction) => instruction,
            _ => FlushInstruction::detect(),
        }
    }

    /// Where the window starts in this process's address space.
    pub fn base_address(&self) -> usize {
        self.base.as_ptr().addr()
    }

    /// Makes the pages of a range present now, so that a benchmark does not measure page faults. The range is clipped
    /// to whole frames of the medium; content is unchanged.
    ///
    /// Concurrency: other threads may load and store meanwhile.
    pub fn prefault(&self, at: VirtAddr, len: u64) {
        let end = at.0.saturating_add(len).min(self.len());
        let start = at.0.min(end) & !(FRAME_BYTES - 1);
        let frames = start..round_up(end, FRAME_BYTES);
        let populated = if self.writable {
            self.window.populate_for_stores(frames.clone())
        } else {
            self.window.populate_for_loads(frames.clone())
        };
        if populated.is_err() {
            // The kernel does not know the advice, or part of the range is discarded.
            for frame in frames.step_by(FRAME_BYTES as usize) {
                self.load_u64(VirtAddr(frame));
            }
        }
    }

    /// Makes whole frames of the medium inaccessible, or accessible again: while they are inaccessible, a load or store
    /// there ends the process with SIGSEGV. For debugging; content is unchanged. The range is clipped to whole frames
    /// of the medium.
    ///
    /// Returns whether the system did so; it refuses if a process has very many such ranges.
    ///
    /// Concurrency: accesses by other threads to other frames go on.
    pub fn set_accessible(&self, at: VirtAddr, len: u64, accessible: bool) -> bool {
        let end = at.0.saturating_add(len).min(self.len()) & !(FRAME_BYTES - 1);
        let start = round_up(at.0.min(end), FRAME_BYTES).min(end);
        self.window.protect(start..end, accessible).is_ok()
    }

    /// Sets a new length. The mapping already reaches it.
    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
        let limit = if self.writable { len } else { 0 };
        self.store_limit.store(limit, Ordering::Release);
    }

    /// The medium's name in errors.
    pub(crate) fn display_name(&self) -> String {
        display_name(self.file.as_deref().or(self.original.as_ref()))
    }
}

impl Pages for Mapped {
    fn name(&self) -> String {
        self.display_name()
    }

    fn file(&self) -> &Arc<PoolFile> {
        self.file.as_ref().expect("a medium with a log has a file")
    }

    fn window(&self) -> &Window {
        &self.window
    }

    fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    fn bytes(&self) -> u64 {
        self.len()
    }

    fn set_bytes(&self, bytes: u64) {
        self.set_len(bytes);
    }

    #[inline(always)]
    fn word_at(&self, at: u64) -> u64 {
        self.load_u64(VirtAddr(at))
    }

    fn set_word(&self, at: u64, word: u64) {
        self.store_u64(VirtAddr(at), word);
    }

    fn allocate(&self, range: Range<u64>) -> Result<(), MediumError> {
        self.reserve_space(range)
    }

    fn give_name(&self) -> Result<(), MediumError> {
        self.publish_file()
    }
}

/// The setting for a medium with this backing. A page cache that holds a disk's file in huge pages reads and writes
/// 2 MiB for each word.
pub(crate) fn asked_of(backing: Backing, options: &MappedOptions) -> HugePages {
    match (backing, options.huge_pages) {
        (Backing::Disk, HugePages::Ask) => HugePages::System,
        (_, asked) => asked,
    }
}

pub(crate) fn display_name(file: Option<&PoolFile>) -> String {
    file.map_or_else(|| "anonymous memory".to_owned(), PoolFile::name)
}
