//! A file on an ordinary disk as persistent memory: updates go to a log, and later home.
//!
//! HOOP's idea (section III) in software, for a [`crate::Mapped`] in [`firn_media::Domain::Logged`]. The pool's pages are mapped privately, so nothing that is stored reaches the
//! file by itself. A write-back notes its words for the thread, and a fence appends their content to the log in memory:
//! order, which waits for nothing. Durability is a ticket's matter: whoever waits for one writes the log for all
//! ([`group`]). In the background what is durable goes home, each word once ([`checkpointer`]).
//!
//! Statistics are not logged: recovery believes none of them. Their pages are shared with the file, so that another
//! process sees them change ([`crate::Mapped::peek`]).
//!
//! # Why any prefix of the log is an image that the heap expects
//!
//! The medium is in [`firn_media::Domain::Logged`], in which a word is durable once it was written back and fenced. Each
//! fence appends the words that its thread wrote back, with the content of that moment, in one step (L1). A prefix of the
//! log therefore holds, of each word, the content of its last record; any fence in the prefix has all its words there; and
//! a word never goes back. [`firn_media::Domain::Adr`] allows the same image but for words that were stored to and not
//! written back: there they may come along with their line, here they never do. The heap relies on no such word, as the
//! crash medium shows.
//!
//! ```text
//! pages       what is asked of the medium
//! noted       words that a thread has written back
//! disk        what is asked of the disk
//! group       the log in memory, and who writes it
//! callbacks   who is called when a record is durable
//! figures     what other processes see of that
//! log_file    the log's file
//! home        the pool's file
//! checkpointer   brings the log home
//! recovery    what a crash left goes home
//! examine     what a crash left is looked at
//! copies      which pages take memory of the process
//! dropping    giving that memory up
//! records     the medium's memory: words become records, and who waits for them
//! space       the medium's space
//! ```

mod callbacks;
mod checkpointer;
mod copies;
mod disk;
mod dropping;
mod examine;
mod figures;
mod group;
mod home;
mod log_file;
mod noted;
pub(crate) mod pages;
mod records;
pub(crate) mod recovery;
mod space;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use firn_format::superblock::OpenState;
use firn_log::{Log, Reach};
use firn_units::FRAME_BYTES;
use rangemap::RangeSet;
use rustix::fs::{Advice, fadvise};

use self::checkpointer::Checkpointer;
pub use self::disk::{Disk, Durability, Part, SystemDisk};
pub use self::examine::{LogCheck, LogFinding, LogFound, check_log};
use self::group::{Failed, Group};
use self::home::Since;
pub(crate) use self::log_file::LogFile;
use self::pages::Pages;
use crate::process::Process;
use crate::system::usable_memory;
use crate::{LogOptions, MappedError};

/// The part of a [`crate::Mapped`] that has a log: it is in [`firn_media::Domain::Logged`], and its pages are mapped privately.
///
/// Concurrency: everything may be called from any thread.
///
/// Crash: a killed process loses what it never waited for; so does a power failure. What survives is a prefix of the
/// fences, with all that [`firn_media::Memory::wait_durable`] was called for.
#[derive(Debug)]
pub(crate) struct Logged {
    /// Tells this medium's lines in a thread's notes.
    number: u64,
    pub(crate) options: LogOptions,
    process: Process,
    since: Arc<Mutex<Since>>,
    /// Whether the statistics' pages are shared with the file.
    shares_statistics: bool,
    /// Ranges in the place of which the file may hold older content.
    covered: Mutex<Covered>,
    /// The log, from the moment on at which it is known whose it is.
    running: OnceLock<Running>,
}

/// Where the file is not mapped, because it may hold older content.
#[derive(Debug, Default)]
struct Covered {
    /// Zeros are shown, which nobody can store to.
    zeros: RangeSet<u64>,
    /// Memory of the process is there.
    memory: RangeSet<u64>,
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

impl Logged {
    /// The part of a medium of `len` bytes. Its log comes to be when it is known which pool this is.
    pub(crate) fn new(
        len: u64,
        shares_statistics: bool,
        options: &LogOptions,
        process: Process,
    ) -> Self {
        let since = Since {
            len,
            reserved: RangeSet::new(),
        };
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            options: options.clone(),
            process,
            shares_statistics,
            since: Arc::new(Mutex::new(since)),
            covered: Mutex::default(),
            running: OnceLock::new(),
        }
    }

    /// Starts the threads of the log.
    pub(crate) fn start(
        &self,
        on: &impl Pages,
        log: Log,
        log_file: LogFile,
    ) -> Result<(), MappedError> {
        // Pages are read one here, one there, and in ascending order, which the system takes for the start of a sequence.
        // Where memory is short, what it would read ahead drives out what is needed. Only a hint; faults do not follow it.
        let _ = fadvise(&on.file().file, 0, None, Advice::Random);
        let checkpointer = Arc::new(Checkpointer {
            group: Arc::new(Group::new(
                log,
                log_file,
                (self.crowded_bytes(), self.most_copies()),
            )),
            file: Arc::clone(on.file()),
            disk: Arc::clone(&self.options.disk),
            since: Arc::clone(&self.since),
            turn: Mutex::new(()),
        });
        let mut running = Running {
            checkpointer: Arc::clone(&checkpointer),
            threads: Mutex::default(),
        };
        let (group, name) = (Arc::clone(&checkpointer.group), on.name());
        let jobs: [(&str, Box<dyn FnOnce() + Send>); 2] = [
            ("firn home", Box::new(move || checkpointer.run())),
            ("firn log", Box::new(move || group.write_in_time(&name))),
        ];
        for (name, job) in jobs {
            let builder = std::thread::Builder::new().name(name.to_owned());
            match builder.spawn(job) {
                Ok(thread) => running.threads_mut().push(thread),
                Err(refused) => {
                    let _ = running.end();
                    return Err(MappedError::io(&on.name(), "starting a thread", refused));
                }
            }
        }
        assert!(self.running.set(running).is_ok(), "a log is started once");
        Ok(())
    }

    /// Bytes of records in memory beyond which transactions wait: as much as the log writes at once while half of it goes
    /// home.
    fn crowded_bytes(&self) -> usize {
        (self.options.bound_bytes / 4) as usize
    }

    /// Bytes of the pages that the process may hold copies of.
    pub(crate) fn most_copied_bytes(&self) -> u64 {
        const SHARE: u64 = 4;
        let bytes = self.options.memory_bytes;
        bytes.unwrap_or_else(|| usable_memory() / SHARE)
    }

    /// Pages that the process may hold copies of.
    fn most_copies(&self) -> usize {
        (self.most_copied_bytes() / FRAME_BYTES) as usize
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

impl Drop for Logged {
    /// Brings everything home. Of a pool that was closed the log goes, too: it is one file.
    fn drop(&mut self) {
        if !self.process.is_this() {
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
