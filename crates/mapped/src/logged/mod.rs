//! A file on an ordinary disk as persistent memory: updates go to a log, and later home.
//!
//! HOOP's idea (section III) in software. The pool's pages are mapped privately, so nothing that is stored reaches the
//! file by itself. A write-back notes its lines for the thread, and a fence appends their content to the log in memory:
//! order, which waits for nothing. Durability is a ticket's matter: whoever waits for one writes the log for all
//! ([`group`]). In the background what is durable goes home, each word once ([`checkpointer`]).
//!
//! # Why any prefix of the log is an image that the heap expects
//!
//! The medium is in [`Domain::Logged`], in which a line is durable once it was written back and fenced, as in
//! [`Domain::Adr`]. Each fence appends what its thread wrote back, with the content of that moment, in one step (L1). A
//! prefix of the log therefore holds, of each line, the content of its last record; any fence in the prefix has all its
//! lines there; and a line never goes back. That is an image that `Adr` allows.
//!
//! ```text
//! noted       lines that a thread has written back
//! disk        what is asked of the disk
//! group       the log in memory, and who writes it
//! log_file    the log's file
//! home        the pool's file
//! checkpointer   brings the log home
//! recovery    what a crash left goes home
//! contract    the medium
//! ```

mod checkpointer;
mod contract;
mod disk;
mod group;
mod home;
mod log_file;
mod noted;
mod recovery;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use firn_format::superblock::OpenState;
use firn_log::{Log, Reach};
use firn_media::{Domain, Level};
use rangemap::RangeSet;

use self::checkpointer::Checkpointer;
pub use self::disk::{Disk, Durability, Part, SystemDisk};
use self::group::{Failed, Group};
use self::home::Since;
use self::log_file::LogFile;
use crate::beside::make_way;
use crate::file::{Access, PoolFile};
use crate::{Mapped, MappedError, MappedOptions};

/// How a logged file is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoggedOptions {
    /// How the pool's file is mapped.
    pub mapped: MappedOptions,
    /// The disk; the system's own, but in tests.
    pub disk: Arc<dyn Disk>,
    /// The level of transactions that do not ask for one.
    pub level: Level,
    /// Bytes that a new log has.
    pub log_initial_bytes: u64,
    /// Bytes beyond which the log does not grow: the most that a recovery reads. Half of it is coalesced at once.
    pub log_bound_bytes: u64,
}

impl LoggedOptions {
    /// Default of [`LoggedOptions::log_initial_bytes`].
    pub const DEFAULT_LOG_INITIAL: u64 = 4 << 20;
    /// Default of [`LoggedOptions::log_bound_bytes`].
    pub const DEFAULT_LOG_BOUND: u64 = 64 << 20;
}

impl Default for LoggedOptions {
    fn default() -> Self {
        Self {
            mapped: MappedOptions::default(),
            disk: Arc::new(SystemDisk),
            level: Level::Sync,
            log_initial_bytes: Self::DEFAULT_LOG_INITIAL,
            log_bound_bytes: Self::DEFAULT_LOG_BOUND,
        }
    }
}

/// A pool's file and the log beside it.
///
/// Concurrency: everything may be called from any thread.
///
/// Crash: a killed process loses what it never waited for; so does a power failure. What survives is a prefix of the
/// fences, with all that [`firn_media::Memory::wait_durable`] was called for.
#[derive(Debug)]
pub struct LoggedFile {
    /// The window, mapped privately.
    mapped: Mapped,
    /// Tells this medium's lines in a thread's notes.
    number: u64,
    options: LoggedOptions,
    since: Arc<Mutex<Since>>,
    /// Ranges that show zeros, or memory, in the place of the file, which may hold older content.
    covered: Mutex<RangeSet<u64>>,
    /// The log, from the moment on at which it is known whose it is.
    running: OnceLock<Running>,
}

/// The log of an open pool, and the threads that write it in time and bring it home.
#[derive(Debug)]
struct Running {
    checkpointer: Arc<Checkpointer>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    fn threads_mut(&mut self) -> &mut Vec<JoinHandle<()>> {
        self.threads
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the threads. Returns whether none panicked.
    fn end(&self) -> bool {
        self.checkpointer.group.close();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.drain(..).all(|thread| thread.join().is_ok())
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl LoggedFile {
    /// Makes a new file, as [`Mapped::create`] does. Its log comes to be when it is known which pool this is
    /// ([`firn_media::Space::claim`]).
    ///
    /// Errors: as [`Mapped::create`].
    pub fn create(
        path: impl AsRef<Path>,
        initial_len: u64,
        options: &LoggedOptions,
    ) -> Result<Self, MappedError> {
        let file = PoolFile::create(path.as_ref())?;
        make_way(path.as_ref())?;
        Ok(Self::around(
            Mapped::create_privately(file, initial_len, &options.mapped)?,
            options,
        ))
    }

    /// Opens the pool in `path` for loads and stores, for this medium alone. What a crash left in the log goes home
    /// first.
    ///
    /// Errors: as [`Mapped::open`]; the pool was not closed and its log is missing; the log beside it is another
    /// pool's, or damaged. The pool is as it was, or the log is home in part, which the next opening repeats.
    pub fn open(path: impl AsRef<Path>, options: &LoggedOptions) -> Result<Self, MappedError> {
        let file = PoolFile::open(path.as_ref(), Access::ReadWrite)?;
        file.pool_len(Access::ReadWrite)?;
        let randomness = crate::system::Randomness::seeded()
            .map_err(|e| file.error("asking for randomness", e))?;
        let (log, log_file) = recovery::recover(&file, &randomness, options)?;
        let mapped = Mapped::open_privately(file, &options.mapped)?;
        let medium = Self::around(mapped, options);
        medium.start(log, log_file)?;
        Ok(medium)
    }

    /// Opens a copy of the pool in `path` in this process's memory, as [`Mapped::open_private`] does, with what its log
    /// holds. Neither file is changed. The copy is in [`firn_media::Domain::Logged`], so that it can be opened though the
    /// pool was not closed.
    ///
    /// Errors: as [`LoggedFile::open`].
    pub fn open_private(
        path: impl AsRef<Path>,
        options: &LoggedOptions,
    ) -> Result<Mapped, MappedError> {
        let file = PoolFile::open(path.as_ref(), Access::ReadOnly)?;
        let left = recovery::left(&file, options)?;
        let mapped = options.mapped.clone().assume_persistent(Domain::Logged);
        let copy = Mapped::copy_of(file, &mapped)?;
        if let Some(beside) = left.beside {
            recovery::replay(&copy, &beside.home)?;
        }
        Ok(copy)
    }

    fn around(mapped: Mapped, options: &LoggedOptions) -> Self {
        let since = Since {
            len: firn_media::Space::len(&mapped),
            reserved: RangeSet::new(),
        };
        Self {
            mapped,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            options: options.clone(),
            since: Arc::new(Mutex::new(since)),
            covered: Mutex::default(),
            running: OnceLock::new(),
        }
    }

    /// Starts the threads of the log.
    fn start(&self, log: Log, log_file: LogFile) -> Result<(), MappedError> {
        let file = self.mapped.file.clone();
        let checkpointer = Arc::new(Checkpointer {
            group: Arc::new(Group::new(log, log_file, self.crowded_bytes())),
            file: file.expect("a logged file has a file"),
            disk: Arc::clone(&self.options.disk),
            since: Arc::clone(&self.since),
            turn: Mutex::new(()),
        });
        let mut running = Running {
            checkpointer: Arc::clone(&checkpointer),
            threads: Mutex::default(),
        };
        let group = Arc::clone(&checkpointer.group);
        let jobs: [(&str, Box<dyn FnOnce() + Send>); 2] = [
            ("firn home", Box::new(move || checkpointer.run())),
            ("firn log", Box::new(move || group.write_in_time())),
        ];
        for (name, job) in jobs {
            let builder = std::thread::Builder::new().name(name.to_owned());
            match builder.spawn(job) {
                Ok(thread) => running.threads_mut().push(thread),
                Err(refused) => {
                    let _ = running.end();
                    let name = self.mapped.display_name();
                    return Err(MappedError::io(&name, "starting a thread", refused));
                }
            }
        }
        assert!(self.running.set(running).is_ok(), "a log is started once");
        Ok(())
    }

    /// Bytes of records in memory beyond which transactions wait: as much as the log writes at once while half of it goes
    /// home.
    fn crowded_bytes(&self) -> usize {
        (self.options.log_bound_bytes / 4) as usize
    }

    /// The log, if it is known whose it is.
    #[inline(always)]
    fn group(&self) -> Option<&Group> {
        self.running
            .get()
            .map(|running| &*running.checkpointer.group)
    }

    /// Makes everything up to now durable and brings it home.
    fn bring_all_home(&self) -> Result<(), Failed> {
        let Some(running) = self.running.get() else {
            return Ok(());
        };
        let group = &running.checkpointer.group;
        group.wait(group.appended(), Reach::Disk)?;
        running.checkpointer.checkpoint()
    }

    fn lock_since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LoggedFile {
    /// Brings everything home. Of a pool that was closed the log goes, too: it is one file.
    fn drop(&mut self) {
        if !self.mapped.process.is_this() {
            return;
        }
        let home = self.bring_all_home();
        let Some(running) = self.running.get() else {
            return;
        };
        let ended = running.end();
        let closed = || {
            if running.checkpointer.file.is_draft() {
                return Some(true);
            }
            let superblock = recovery::superblock(&running.checkpointer.file)
                .ok()
                .flatten()?;
            Some(superblock.state != OpenState::Open)
        };
        if home.is_ok() && ended && closed() == Some(true) {
            // A log that stays is brought home by the next opening: it is there already.
            let _ = running.checkpointer.group.file.remove();
        }
    }
}
