//! The medium itself: how it is opened or created, and its facts beyond the contract.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use firn_media::{Domain, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr, round_up};

use crate::beside::{make_way, refuse_log};
use crate::file::{Access, PoolFile};
use crate::file_system::FileSystem;
use crate::flush::Flush;
use crate::identity::Claim;
use crate::place::PLACE_ALIGNMENT;
use crate::process::{Process, SharedFile};
use crate::space::SpaceState;
use crate::system::{Randomness, boot_id};
use crate::window::{FileMapping, Stores, Window};
use crate::{Backing, FileSystems, FlushInstruction, HugePages, MappedError, MappedOptions};

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
    /// Creates a new file for this medium alone: zero, `initial_len` bytes long (rounded up to whole frames, at least
    /// one), with its blocks allocated. It is called `path` once [`Space::publish`] returns, and is removed if it is
    /// dropped before.
    ///
    /// Errors: every [`MappedError`]; then no file is left behind.
    ///
    /// Crash: a crash before [`Space::publish`] leaves `.NAME.firn-new` beside `path`; the next process that creates
    /// `path` removes it.
    pub fn create(
        path: impl AsRef<Path>,
        initial_len: u64,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let file = PoolFile::create(path.as_ref())?;
        make_way(path.as_ref())?;
        Self::fill_new(file, initial_len, Stores::Shared, options)
    }

    /// Like [`Mapped::create`], but replaces the file `path`, of any length, which must hold nothing but zeros.
    /// [`Space::publish`] replaces it in one step; until then it stays unchanged.
    ///
    /// Errors: as [`Mapped::open`]; `Exists` if the file holds anything.
    pub fn create_over(
        path: impl AsRef<Path>,
        initial_len: u64,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let file = PoolFile::create_over(path.as_ref())?;
        Self::fill_new(file, initial_len, Stores::Shared, options)
    }

    /// Opens the pool in `path` for loads and stores, for this medium alone.
    ///
    /// Errors: every [`MappedError`] but `Exists`; the file is unchanged.
    pub fn open(path: impl AsRef<Path>, options: &MappedOptions) -> Result<Self, MappedError> {
        Self::open_as(path.as_ref(), Access::ReadWrite, options)
    }

    /// Opens the pool in `path` for loads, together with other readers. No store reaches the file.
    ///
    /// Errors: as [`Mapped::open`]; `InUse` while it is open for stores elsewhere.
    pub fn open_read_only(
        path: impl AsRef<Path>,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        Self::open_as(path.as_ref(), Access::ReadOnly, options)
    }

    /// Opens the pool in `path` for loads without any lock, to look at a pool that a running program has open. The
    /// medium has the length of this moment, and its content may change at any time.
    ///
    /// Concurrency: if the program truncates its pool, a load from the lost pages raises SIGBUS: look briefly, from a
    /// separate process.
    ///
    /// Errors: as [`Mapped::open`], never `InUse`.
    pub fn peek(path: impl AsRef<Path>) -> Result<Self, MappedError> {
        Self::open_as(path.as_ref(), Access::Peek, &MappedOptions::default())
    }

    /// Makes a medium without a file, `initial_len` bytes long (rounded up to whole frames), zero.
    ///
    /// Errors: not enough address space or memory.
    pub fn anonymous(initial_len: u64, options: &MappedOptions) -> Result<Self, MappedError> {
        let len = whole_frames(initial_len, &display_name(None))?;
        let medium = Self::assemble(None, Access::ReadWrite, 0, len, Backing::Anonymous, options)?;
        medium.reserve(VirtAddr(0), len)?;
        Ok(medium)
    }

    /// Opens a copy of the pool in `path` in this process's memory: loads see the file, stores stay in memory and are
    /// lost with the medium. The file is not changed, and nobody else stores to it meanwhile. Pages that are stored to
    /// take memory.
    ///
    /// Errors: as [`Mapped::open_read_only`].
    pub fn open_private(
        path: impl AsRef<Path>,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let file = PoolFile::open(path.as_ref(), Access::ReadOnly)?;
        refuse_log(path.as_ref())?;
        Self::copy_of(file, options)
    }

    /// A copy of the pool in `file`, in memory.
    pub(crate) fn copy_of(file: PoolFile, options: &MappedOptions) -> Result<Self, MappedError> {
        let len = file.pool_len(Access::ReadOnly)?;
        let (access, backing) = (Access::ReadWrite, Backing::Anonymous);
        let mut medium = Self::assemble(None, access, len, len, backing, options)?;
        let private = FileMapping {
            writable: true,
            dax: false,
            private: true,
        };
        let mapped = medium.window.map_file(0..len, &file.file, private);
        mapped.map_err(|e| file.error("mapping the file", e))?;
        medium.original = Some(file);
        Ok(medium)
    }

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

    /// A new file, as [`Mapped::create`] makes it, whose pages are mapped privately: no store reaches it.
    pub(crate) fn create_privately(
        file: PoolFile,
        initial_len: u64,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        Self::fill_new(file, initial_len, Stores::Private, options)
    }

    /// The pool in `file`, which is open for stores, its pages mapped privately: no store reaches it.
    pub(crate) fn open_privately(
        file: PoolFile,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let access = Access::ReadWrite;
        let (len, backing) = (file.pool_len(access)?, file.backing()?);
        let file = Some((file, Stores::Private));
        Self::assemble(file, access, len, len, backing, options)
    }

    fn open_as(path: &Path, access: Access, options: &MappedOptions) -> Result<Self, MappedError> {
        let file = PoolFile::open(path, access)?;
        if access != Access::Peek {
            refuse_log(path)?;
        }
        let len = file.pool_len(access)?;
        let backing = file.backing()?;
        let file = Some((file, Stores::Shared));
        let medium = Self::assemble(file, access, len, len, backing, options)?;
        if access.writable() {
            medium.check_promise()?;
            medium.complete_pieces()?;
        }
        Ok(medium)
    }

    /// Refuses a file system that does not promise that a store to an allocated block needs no other block, unless the
    /// caller accepts any.
    fn check_promise(&self) -> Result<(), MappedError> {
        let asked = self.options.file_systems == FileSystems::Promising;
        let Some(file) = self.file.as_ref().filter(|_| asked) else {
            return Ok(());
        };
        match (self.backing, file.file_system()?) {
            (Backing::Disk, FileSystem::Unsure(system, reason)) => Err(MappedError::NoPromise {
                path: file.path.clone(),
                system,
                reason,
            }),
            _ => Ok(()),
        }
    }

    fn fill_new(
        file: PoolFile,
        initial_len: u64,
        stores: Stores,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let len = whole_frames(initial_len, &file.name())?.max(FRAME_BYTES);
        let backing = file.backing()?;
        if let Some(mode) = options.mode {
            file.set_mode(mode)?;
        }
        let file = Some((file, stores));
        let medium = Self::assemble(file, Access::ReadWrite, 0, len, backing, options)?;
        medium.check_promise()?;
        medium.reserve(VirtAddr(0), len)?;
        Ok(medium)
    }

    /// Builds the medium with its first `len` bytes mapped, in a window that has room for `expected_len`.
    fn assemble(
        file: Option<(PoolFile, Stores)>,
        access: Access,
        len: u64,
        expected_len: u64,
        mut backing: Backing,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let (file, stores) = file.unzip();
        let stores = stores.unwrap_or(Stores::Private);
        let name = display_name(file.as_ref());
        let error = |doing, source| MappedError::io(&name, doing, source);
        let boot_id = boot_id().map_err(|e| error("reading the kernel's boot id", e))?;
        let randomness = Randomness::seeded().map_err(|e| error("asking for randomness", e))?;
        let window = reserve_window(&name, expected_len, options)?;
        let writable = access.writable();
        if let Some(file) = &file {
            if map_front(&window, file, len, (writable, stores))
                .map_err(|e| error("mapping the file", e.into()))?
            {
                backing = Backing::Dax;
            }
            window.advise_huge_pages(0..len, asked_of(backing, options));
            if len == 0 {
                let unmapped = window.map_zeros(0..FRAME_BYTES);
                unmapped.map_err(|e| error("mapping the window", e.into()))?;
            }
        }
        let domain = options.assume_persistent.unwrap_or(match backing {
            Backing::Dax => Domain::Adr,
            _ => Domain::Process,
        });
        let process = Process::this().map_err(|e| error("keeping a page from children", e))?;
        let shared = file.as_ref().map(|file| {
            let base = window.base().as_ptr();
            SharedFile::new(base, window.bytes(), &file.file, (writable, stores))
        });
        Ok(Self {
            base: window.base(),
            mask: window.bytes() - 1,
            place_mask: (window.bytes() - 1) & !(PLACE_ALIGNMENT - 1),
            len: AtomicU64::new(len),
            store_limit: AtomicU64::new(if writable { len } else { 0 }),
            flush: Flush::of(domain),
            domain,
            backing,
            writable,
            boot_id,
            randomness,
            options: options.clone(),
            space: Mutex::default(),
            process,
            claim: OnceLock::new(),
            _shared: shared,
            window,
            file: file.map(Arc::new),
            stores,
            original: None,
        })
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

/// The setting for a medium with this backing. A page cache that holds a disk's file in huge pages reads and writes
/// 2 MiB for each word.
pub(crate) fn asked_of(backing: Backing, options: &MappedOptions) -> HugePages {
    match (backing, options.huge_pages) {
        (Backing::Disk, HugePages::Ask) => HugePages::System,
        (_, asked) => asked,
    }
}

fn display_name(file: Option<&PoolFile>) -> String {
    file.map_or_else(|| "anonymous memory".to_owned(), PoolFile::name)
}

/// Rounds a length up to whole frames.
fn whole_frames(len: u64, name: &str) -> Result<u64, MappedError> {
    len.checked_next_multiple_of(FRAME_BYTES)
        .ok_or_else(|| MappedError::NoAddressSpace {
            name: name.to_owned(),
            bytes: len,
        })
}

/// Reserves a window for a pool of `len` bytes. It may be smaller than requested if address space is short.
fn reserve_window(name: &str, len: u64, options: &MappedOptions) -> Result<Window, MappedError> {
    /// Half of a process's addresses: no machine reserves more.
    const LARGEST: u64 = 1 << 46;
    let refuse = |bytes| MappedError::NoAddressSpace {
        name: name.to_owned(),
        bytes,
    };
    let needed = len.max(CHUNK_BYTES);
    if needed > LARGEST {
        return Err(refuse(len));
    }
    let mut bytes = options.capacity.clamp(needed, LARGEST).next_power_of_two();
    let smallest = (2 * needed).next_power_of_two().min(bytes);
    loop {
        match Window::reserve(bytes, options.placement) {
            Ok(window) => return Ok(window),
            Err(_) if bytes > smallest => bytes /= 2,
            Err(_) => return Err(refuse(bytes)),
        }
    }
}

/// Maps the first `len` bytes of a file at the window's start, directly if its device is memory. Returns whether it is.
fn map_front(
    window: &Window,
    file: &PoolFile,
    len: u64,
    (writable, stores): (bool, Stores),
) -> Result<bool, rustix::io::Errno> {
    let private = stores == Stores::Private;
    let mapping = |dax| FileMapping {
        writable,
        dax,
        private,
    };
    // An empty file cannot be mapped, but its first frame can; it stays unused.
    let front = 0..len.max(FRAME_BYTES);
    if !private
        && window
            .map_file(front.clone(), &file.file, mapping(true))
            .is_ok()
    {
        return Ok(true);
    }
    window.map_file(front, &file.file, mapping(false))?;
    Ok(false)
}
