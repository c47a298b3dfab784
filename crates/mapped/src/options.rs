//! How to map a pool.

use std::sync::Arc;

use firn_media::{Domain, Level};

use crate::system::usable_memory;
use crate::{Disk, SystemDisk};

/// Choices made at open; none of them changes a byte on media.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MappedOptions {
    /// Bytes of the address window: how far the pool can grow without being reopened. Rounded up to a power of two that
    /// holds the pool; halved, down to twice the pool's length, if the process may not reserve that much address space.
    pub capacity: u64,
    /// The domain, whatever the memory is. Without it, a file on DAX is in [`Domain::Adr`]. A new pool on any other disk is
    /// in [`Domain::Logged`], so it survives a power failure; a pool that is there stays in its domain. All else is in
    /// [`Domain::Process`].
    ///
    /// [`Domain::Logged`] is for files. [`Domain::Adr`] and [`Domain::Eadr`] elsewhere than on DAX let code for persistent
    /// memory be measured; they promise nothing about a power failure there.
    pub domain: Option<Domain>,
    /// The log of a pool in [`Domain::Logged`].
    pub log: LogOptions,
    /// Where in the address space the window goes.
    pub placement: Placement,
    /// Whether to ask for huge pages.
    pub huge_pages: HugePages,
    /// Which file systems a pool may be opened on for stores.
    pub file_systems: FileSystems,
    /// Permission bits of a new file, regardless of the process's umask. Without them, its owner may write the file and
    /// everybody that the umask admits may read it.
    pub mode: Option<u32>,
}

/// The log beside a pool in [`Domain::Logged`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogOptions {
    /// Whether a new pool on a disk gets a log if no domain is asked for. Without one it is in [`Domain::Process`] there.
    pub by_default: bool,
    /// The level of transactions that do not ask for one.
    pub level: Level,
    /// Bytes that a new log has.
    pub initial_bytes: u64,
    /// Bytes beyond which the log does not grow: the most that a recovery reads. Half of it is coalesced at once, and takes
    /// three times as much memory meanwhile. By default not more than a sixteenth of the memory that the process may use.
    pub bound_bytes: u64,
    /// Bytes of the pool that may take memory of the process; a quarter of the memory that it may use, if `None`. Each
    /// page that is stored to takes some until it is home and dropped. Beyond this, transactions wait for that.
    pub memory_bytes: Option<u64>,
    /// The disk; the system's own, but in tests.
    pub disk: Arc<dyn Disk>,
}

impl LogOptions {
    /// Default of [`LogOptions::initial_bytes`].
    pub const DEFAULT_INITIAL: u64 = 4 << 20;
    /// Default of [`LogOptions::bound_bytes`].
    pub const DEFAULT_BOUND: u64 = 64 << 20;
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            by_default: true,
            level: Level::Sync,
            initial_bytes: Self::DEFAULT_INITIAL,
            bound_bytes: Self::DEFAULT_BOUND.min(usable_memory() / 16),
            memory_bytes: None,
            disk: Arc::new(SystemDisk),
        }
    }
}

/// Where in the address space the window goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Where the system chooses.
    #[default]
    System,
    /// At an address drawn from the seed. A seed always asks for the same address, and different seeds for different
    /// ones, so a test can open a pool elsewhere each time and repeat a failure. If the address is taken, the next one
    /// drawn is used.
    Random(u64),
}

/// Which file systems a pool may be opened on for stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FileSystems {
    /// Those on which a store to an allocated block is known to need no other block: ext2, ext3, ext4, xfs, tmpfs, and
    /// all on DAX.
    #[default]
    Promising,
    /// Any. On a file system without that promise, a store on a full disk ends the process with SIGBUS. Committed data
    /// is not lost by that.
    Any,
}

/// Whether to ask for huge pages. Never an error if there are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HugePages {
    /// Ask for them if the pool lies in memory or on DAX: `MADV_HUGEPAGE`, and on tmpfs `MADV_COLLAPSE` (Linux 6.1 and
    /// later) for each whole 2 MiB that is reserved and still empty. Do not ask on a disk: a load of one page would
    /// read 2 MiB, and a store to one would write as much.
    #[default]
    Ask,
    /// Leave it to the system's setting.
    System,
    /// Refuse them (`MADV_NOHUGEPAGE`).
    Refuse,
}

impl MappedOptions {
    /// Default of [`MappedOptions::capacity`].
    pub const DEFAULT_CAPACITY: u64 = 1 << 40;

    /// Sets [`MappedOptions::capacity`], in bytes.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = bytes;
        self
    }

    /// Sets [`MappedOptions::domain`].
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Sets [`MappedOptions::log`].
    pub fn log(mut self, log: LogOptions) -> Self {
        self.log = log;
        self
    }

    /// Sets [`LogOptions::level`].
    pub fn level(mut self, level: Level) -> Self {
        self.log.level = level;
        self
    }

    /// Sets [`MappedOptions::placement`].
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets [`MappedOptions::huge_pages`].
    pub fn huge_pages(mut self, huge_pages: HugePages) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Sets [`MappedOptions::file_systems`].
    pub fn file_systems(mut self, file_systems: FileSystems) -> Self {
        self.file_systems = file_systems;
        self
    }

    /// Sets [`MappedOptions::mode`].
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }
}

impl Default for MappedOptions {
    fn default() -> Self {
        Self {
            capacity: Self::DEFAULT_CAPACITY,
            domain: None,
            log: LogOptions::default(),
            placement: Placement::System,
            huge_pages: HugePages::Ask,
            file_systems: FileSystems::Promising,
            mode: None,
        }
    }
}
