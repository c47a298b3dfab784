//! How a medium comes to be: created, opened, looked at, copied.

use core::ops::Range;
use core::sync::atomic::AtomicU64;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use firn_format::statistics::LOG_FIGURES;
use firn_format::superblock::StoredDomain;
use firn_log::{Home, Log};
use firn_media::{Domain, MediumError, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

use crate::beside::{UNPUBLISHED, log_beside, make_way, refuse_log};
use crate::file::{Access, PoolFile};
use crate::file_system::FileSystem;
use crate::logged::recovery::{self, Left};
use crate::logged::{LogFile, Logged};
use crate::made::Made;
use crate::mapped::{asked_of, display_name};
use crate::place::PLACE_ALIGNMENT;
use crate::process::{Process, SharedFile};
use crate::system::{Randomness, boot_id};
use crate::window::{FileMapping, Stores, Window};
use crate::{Backing, FileSystems, Mapped, MappedError, MappedOptions};

impl Mapped {
    /// Creates a new file for this medium alone: zero, `initial_len` bytes long (rounded up to whole frames, at least
    /// one), with its blocks allocated. It is called `path` once [`Space::publish`] returns, and is removed if it is
    /// dropped before. In [`Domain::Logged`] it gets its log with its identity ([`Space::begin`]).
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
        Self::fill_new(file, initial_len, options)
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
        make_way(path.as_ref())?;
        Self::fill_new(file, initial_len, options)
    }

    /// Opens the pool in `path` for loads and stores, for this medium alone. What a crash left in the log of a pool in
    /// [`Domain::Logged`] goes home first.
    ///
    /// Errors: every [`MappedError`] but `Exists`; the file is unchanged, or its log is home in part, which the next
    /// opening repeats.
    pub fn open(path: impl AsRef<Path>, options: &MappedOptions) -> Result<Self, MappedError> {
        let (path, access) = (path.as_ref(), Access::ReadWrite);
        let file = PoolFile::open(path, access)?;
        let len = file.pool_len(access)?;
        if is_logged(&file, options)? {
            return Self::open_logged(file, options);
        }
        refuse_log(path)?;
        Self::open_without_log(file.into(), len, options)
    }

    fn open_without_log(
        file: Arc<PoolFile>,
        len: u64,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let made = Made {
            domain: options.domain,
            ..Made::of(&file)?
        };
        let access = Access::ReadWrite;
        let medium = Self::assemble(Some(file), access, (len, len), made, options)?;
        medium.check_promise()?;
        medium.complete_pieces()?;
        Ok(medium)
    }

    /// Opens a copy that has no name yet, in the domain of the pool. In [`Domain::Logged`] it gets a new log, which goes
    /// with the medium.
    pub(crate) fn open_backup(
        file: Arc<PoolFile>,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let superblock = recovery::superblock(&file)?;
        match superblock.filter(|superblock| superblock.domain == StoredDomain::Logged) {
            Some(logged) => {
                let randomness =
                    Randomness::seeded().map_err(|e| file.error("asking for randomness", e))?;
                let (uuid, log) = (logged.uuid, &options.log);
                let begun = recovery::begin(&file, uuid, UNPUBLISHED, &randomness, log)?;
                Self::open_with_log(file, begun, options)
            }
            None => {
                let len = file.pool_len(Access::ReadWrite)?;
                Self::open_without_log(file, len, options)
            }
        }
    }

    /// Opens the pool in `path` for loads, together with other readers. No store reaches the file. What a crash left in
    /// the log of a pool in [`Domain::Logged`] is shown, and stays where it is.
    ///
    /// Errors: as [`Mapped::open`]; `InUse` while it is open for stores elsewhere.
    pub fn open_read_only(
        path: impl AsRef<Path>,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        Self::open_for_loads(path.as_ref(), Access::ReadOnly, options)
    }

    /// Opens the pool in `path` for loads without any lock, to look at a pool that a running program has open. The
    /// medium has the length of this moment, and its content may change at any time. Of a pool in [`Domain::Logged`] it
    /// shows what the program has given to the system so far.
    ///
    /// Concurrency: if the program truncates its pool, a load from the lost pages raises SIGBUS: look briefly, from a
    /// separate process.
    ///
    /// Errors: as [`Mapped::open`], never `InUse`.
    pub fn peek(path: impl AsRef<Path>) -> Result<Self, MappedError> {
        Self::open_for_loads(path.as_ref(), Access::Peek, &MappedOptions::default())
    }

    /// Makes a medium without a file, `initial_len` bytes long (rounded up to whole frames), zero.
    ///
    /// Errors: not enough address space or memory.
    pub fn anonymous(initial_len: u64, options: &MappedOptions) -> Result<Self, MappedError> {
        let len = whole_frames(initial_len, &display_name(None))?;
        let made = Made {
            domain: options.domain,
            ..Made::in_memory()
        };
        let medium = Self::assemble(None, Access::ReadWrite, (0, len), made, options)?;
        medium.reserve(VirtAddr(0), len)?;
        Ok(medium)
    }

    /// Opens a copy of the pool in `path` in this process's memory: loads see the file and its log, stores stay in memory
    /// and are lost with the medium. Neither file is changed, and nobody else stores to them meanwhile. Pages that are
    /// stored to take memory.
    ///
    /// Errors: as [`Mapped::open_read_only`].
    pub fn open_private(
        path: impl AsRef<Path>,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let file = PoolFile::open(path.as_ref(), Access::ReadOnly)?;
        let left = left_by_crash(&file, options)?;
        Self::copy_of(file, left, options)
    }

    /// A copy of the pool in `file`, in memory, with what its log holds.
    fn copy_of(
        file: PoolFile,
        left: Option<Left>,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let len = file.pool_len(Access::Peek)?;
        let made = Made {
            domain: options.domain.or(left.as_ref().map(|_| Domain::Logged)),
            ..Made::in_memory()
        };
        let mut medium = Self::assemble(None, Access::ReadWrite, (len, len), made, options)?;
        let private = FileMapping {
            writable: true,
            dax: false,
            private: true,
        };
        let mapped = medium.window.map_file(0..len, &file.file, private);
        mapped.map_err(|e| file.error("mapping the file", e))?;
        medium.original = Some(file);
        if let Some(home) = left.and_then(Left::into_home) {
            replay(&medium, &home)?;
        }
        Ok(medium)
    }

    /// Opens a pool for loads. With a log it is a copy in memory, in which what the log holds is home.
    fn open_for_loads(
        path: &Path,
        access: Access,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let file = PoolFile::open(path, access)?;
        let len = file.pool_len(access)?;
        if let Some(left) = left_by_crash(&file, options)? {
            let backing = file.backing()?;
            let mut copy = Self::copy_of(file, Some(left), options)?;
            (copy.writable, copy.backing) = (false, backing);
            copy.set_len(copy.len());
            return Ok(copy);
        }
        let made = Made {
            domain: options.domain,
            ..Made::of(&file)?
        };
        Self::assemble(Some(file.into()), access, (len, len), made, options)
    }

    /// Opens the pool in `file` with its log.
    fn open_logged(file: PoolFile, options: &MappedOptions) -> Result<Self, MappedError> {
        let randomness =
            Randomness::seeded().map_err(|e| file.error("asking for randomness", e))?;
        let recovered = recovery::recover(&file, &randomness, &options.log)?;
        Self::open_with_log(file.into(), recovered, options)
    }

    fn open_with_log(
        file: Arc<PoolFile>,
        (log, log_file): (Log, LogFile),
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let access = Access::ReadWrite;
        let len = file.pool_len(access)?;
        let made = Made::of(&file)?.with_log();
        let medium = Self::assemble(Some(file), access, (len, len), made, options)?;
        if let Some(logged) = &medium.logged {
            // Words on their way home need blocks, too, and so do the statistics.
            medium.complete_pieces()?;
            logged.share_statistics(&medium, 0)?;
            logged.start(&medium, log, log_file)?;
            // A file that was cut off is left as it is, for the heap to refuse.
            if LOG_FIGURES.end <= len {
                logged.reserve(&medium, LOG_FIGURES)?;
            }
        }
        Ok(medium)
    }

    /// Refuses a file system that does not promise that a store to an allocated block needs no other block, unless the
    /// caller accepts any.
    fn check_promise(&self) -> Result<(), MappedError> {
        // A log's pages are mapped privately: no store reaches the file.
        let asked = self.options.file_systems == FileSystems::Promising && self.logged.is_none();
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
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let len = whole_frames(initial_len, &file.name())?.max(FRAME_BYTES);
        if let Some(mode) = options.mode {
            file.set_mode(mode)?;
        }
        let made = Made::new_on(&file, options)?;
        let medium = Self::assemble(
            Some(file.into()),
            Access::ReadWrite,
            (0, len),
            made,
            options,
        )?;
        medium.check_promise()?;
        medium.reserve(VirtAddr(0), len)?;
        Ok(medium)
    }

    /// Builds the medium with its first `len` bytes mapped, in a window that has room for `expected_len`.
    fn assemble(
        file: Option<Arc<PoolFile>>,
        access: Access,
        (len, expected_len): (u64, u64),
        made: Made,
        options: &MappedOptions,
    ) -> Result<Self, MappedError> {
        let stores = made.stores;
        let name = display_name(file.as_deref());
        let error = |doing, source| MappedError::io(&name, doing, source);
        let boot_id = boot_id().map_err(|e| error("reading the kernel's boot id", e))?;
        let randomness = Randomness::seeded().map_err(|e| error("asking for randomness", e))?;
        let window = reserve_window(&name, expected_len, options)?;
        let writable = access.writable();
        let backing = match &file {
            Some(file) => map_file(&window, file, len, (writable, made), options)
                .map_err(|e| error("mapping the file", e.into()))?,
            None => made.backing,
        };
        let domain = made.domain_on(backing);
        let process = Process::this().map_err(|e| error("keeping a page from children", e))?;
        let shared = file.as_ref().map(|file| {
            let base = window.base().as_ptr();
            SharedFile::new(base, window.bytes(), &file.file, (writable, stores))
        });
        let logged = match file.as_ref().filter(|_| made.logs) {
            Some(file) => {
                let shares = !matches!(file.file_system()?, FileSystem::Unsure(..));
                Some(Logged::new(len, shares, &options.log, process))
            }
            None => None,
        };
        Ok(Self {
            base: window.base(),
            mask: window.bytes() - 1,
            place_mask: (window.bytes() - 1) & !(PLACE_ALIGNMENT - 1),
            len: AtomicU64::new(len),
            store_limit: AtomicU64::new(if writable { len } else { 0 }),
            flush: made.flush(domain),
            domain,
            backing,
            writable,
            boot_id,
            randomness,
            options: options.clone(),
            space: Mutex::default(),
            process,
            logged,
            claim: OnceLock::new(),
            _shared: shared,
            window,
            file,
            stores,
            original: None,
        })
    }
}

/// Whether a pool is to be opened with a log: it has one, or had one when it was closed, or one is asked for.
fn is_logged(file: &PoolFile, options: &MappedOptions) -> Result<bool, MappedError> {
    match options.domain {
        Some(domain) => Ok(domain == Domain::Logged),
        None => Ok(log_beside(&file.path)?.is_some()
            || recovery::superblock(file)?
                .is_some_and(|superblock| superblock.domain == StoredDomain::Logged)),
    }
}

/// What a crash left of a pool and its log, or what a running program has written so far; `None` if there is no log.
///
/// Errors: the log is another pool's, or damaged.
fn left_by_crash(file: &PoolFile, options: &MappedOptions) -> Result<Option<Left>, MappedError> {
    match log_beside(&file.path)? {
        Some(_) => recovery::left(file, &options.log).map(Some),
        None => Ok(None),
    }
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

/// Maps the first `len` bytes of a file. Returns what backs it.
fn map_file(
    window: &Window,
    file: &PoolFile,
    len: u64,
    (writable, made): (bool, Made),
    options: &MappedOptions,
) -> Result<Backing, rustix::io::Errno> {
    let backing = match map_front(window, file, len, (writable, made.stores))? {
        true => Backing::Dax,
        false => made.backing,
    };
    window.advise_huge_pages(0..len, asked_of(backing, options));
    if len == 0 {
        window.map_zeros(0..FRAME_BYTES)?;
    }
    Ok(backing)
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

/// Stores what a log would bring home to a copy of the pool in memory.
///
/// Errors: no memory.
fn replay(copy: &Mapped, home: &Home) -> Result<(), MediumError> {
    if let Some(cut) = home.cut {
        copy.truncate(cut)?;
    }
    let len = copy.len().max(home.at_least);
    copy.reserve(VirtAddr(0), len)?;
    let clamped = |range: &Range<u64>| {
        let start = range.start.min(len);
        (VirtAddr(start), range.end.min(len) - start)
    };
    for (at, bytes) in home.discarded.iter().map(clamped) {
        copy.discard(at, bytes)?;
    }
    for (at, bytes) in home.zeroed.iter().map(clamped) {
        copy.discard(at, bytes)?;
        copy.reserve(at, bytes)?;
    }
    for (at, bytes) in home.words.iter() {
        copy.store_bytes(VirtAddr(at), bytes);
    }
    Ok(())
}
