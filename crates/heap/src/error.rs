//! The errors, in sentences.

use firn_format::FormatError;
use firn_media::{Medium, MediumError};
use thiserror::Error;

/// A pool could not be created or opened. The medium is unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The bytes are not a sound pool.
    #[error("{pool}: {source}")]
    Format {
        /// The medium's name.
        pool: String,
        /// Their defect.
        source: FormatError,
    },
    /// The pool holds another program's content.
    #[error(
        "{pool}: its layout is `{found}`, this program expects `{expected}`; open the right pool, or name its layout"
    )]
    Layout {
        /// The medium's name.
        pool: String,
        /// Layout in the pool.
        found: String,
        /// Layout asked for.
        expected: String,
    },
    /// The medium ends before the pool does.
    #[error(
        "{pool}: {found} bytes long, a pool has at least {needed}; the file was truncated: restore the last copy"
    )]
    TooShort {
        /// The medium's name.
        pool: String,
        /// Bytes of the medium.
        found: u64,
        /// Bytes of the pool.
        needed: u64,
    },
    /// The pool was open in domain `process` when the machine went down.
    #[error(
        "{pool}: was open on an ordinary file when the machine went down, so the file may be torn; make a new pool of the intact objects with `firn copy --salvage`, `Pool::salvage` or `firn_salvage`, or restore the last copy"
    )]
    MachineDied {
        /// The medium's name.
        pool: String,
    },
    /// The pool was not closed, and part of it is in the log beside it.
    #[error(
        "{pool}: was not closed, and its newest content is in its log; open it as a durable pool, with the log beside it"
    )]
    NeedsLog {
        /// The medium's name.
        pool: String,
    },
    /// The pool was not closed and the medium allows no recovery.
    #[error("{pool}: was not closed, and recovery has to write; open it for writing once")]
    NeedsRecovery {
        /// The medium's name.
        pool: String,
    },
    /// The medium is read-only.
    #[error("{pool}: opened read-only; use `Pool::open_read_only`")]
    ReadOnly {
        /// The medium's name.
        pool: String,
    },
    /// An option is out of range.
    #[error("{pool}: {what} must be {range}, not {found}")]
    Option {
        /// The medium's name.
        pool: String,
        /// The option.
        what: &'static str,
        /// Its permitted values.
        range: String,
        /// Its value.
        found: String,
    },
    /// The medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// Recovery found damage that it cannot replay.
    #[error("{pool}: recovery stopped: {source}")]
    Recovery {
        /// The medium's name.
        pool: String,
        /// The damage.
        source: Error,
    },
}

/// An operation on objects failed. A transaction that returns it is rolled back; the pool is
/// unchanged and usable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No room, and the pool may not grow further.
    #[error("the pool is full: no room for {bytes} more bytes; delete objects, or raise its limit")]
    PoolFull {
        /// Requested bytes.
        bytes: u64,
    },
    /// The object is larger than any pool can hold in one piece.
    #[error("an object of {bytes} bytes is too large; the maximum is {limit}")]
    ObjectTooLarge {
        /// Requested bytes.
        bytes: u64,
        /// Maximum bytes.
        limit: u64,
    },
    /// The transaction changed more than a lane can log.
    #[error("the transaction changes too much at once ({words} words); split it")]
    TransactionTooLarge {
        /// Words to log.
        words: u64,
    },
    /// A collector would begin again as soon as it ends.
    #[error(
        "a collector with trigger {trigger} and target {target} would never stop; set the trigger above the target"
    )]
    Trigger {
        /// Ratio at which it begins.
        trigger: f64,
        /// Ratio at which it ends.
        target: f64,
    },
    /// As many sessions are open as the pool allows.
    #[error("all {open} sessions that the pool allows at a time are open; {}", way_to_session(*.open, *.most))]
    TooManySessions {
        /// Open sessions: the pool's number, from when it was created.
        open: usize,
        /// The number with which a pool can be created at most.
        most: usize,
    },
    /// A pool that is to be closed, or migrated, has open sessions.
    #[error("{} open; end every session of the pool first, in every thread", sessions(*.open))]
    SessionsOpen {
        /// How many.
        open: usize,
    },
    /// A migration has the pool for itself.
    #[error("the pool is being migrated; try again when that has ended")]
    Migrating,
    /// Another session of the calling thread holds the lock: the thread would wait for itself.
    #[error(
        "another session of this thread holds the lock, in an operation that is open, so waiting for it would never end; end that operation first, or do both in one session"
    )]
    OwnLock,
    /// The address names no allocated object.
    #[error("no object is allocated at {at:#x}; it was freed, or never allocated")]
    NotAllocated {
        /// The address.
        at: u64,
    },
    /// No root has this name.
    #[error("the pool has no root `{name}`")]
    NoRoot {
        /// The name.
        name: String,
    },
    /// All places for roots are taken.
    #[error(
        "the pool already has {limit} roots, the maximum; refer to further objects from an existing root"
    )]
    TooManyRoots {
        /// Maximum number of roots.
        limit: usize,
    },
    /// The name cannot be a root's.
    #[error("`{name}` cannot name a root; a name is 1 to {limit} bytes of text without zero bytes")]
    RootName {
        /// The name.
        name: String,
        /// Longest name.
        limit: usize,
    },
    /// An object has another type than the program expects.
    #[error("the object at {at:#x} has type {found}, the program expects {expected}")]
    WrongType {
        /// Where it lies.
        at: u64,
        /// Its type.
        found: String,
        /// The type expected.
        expected: String,
    },
    /// The description of a type contradicts itself.
    #[error("type `{name}` cannot be registered: {what}")]
    BadType {
        /// The type.
        name: String,
        /// The contradiction.
        what: String,
    },
    /// The layout of a type changed, its version did not.
    #[error(
        "type `{name}` version {version} is stored with another layout ({difference}); give the changed type a higher version and migrate, or use the program that stored it"
    )]
    LayoutChanged {
        /// The type.
        name: String,
        /// Its version.
        version: u32,
        /// The first field that differs, both layouts, and which field of which type leads there.
        difference: String,
    },
    /// The pool holds objects of an older version.
    #[error(
        "the pool holds type `{name}` in version {stored}, the program has version {wanted} ({difference}); migrate it from version {stored} first (`Pool::migrate`, `firn_migrate`)"
    )]
    NeedsMigration {
        /// The type.
        name: String,
        /// Version in the pool.
        stored: u32,
        /// Version of the program.
        wanted: u32,
        /// The first field that differs, both layouts, and which field of which type leads there.
        difference: String,
    },
    /// The pool holds objects of a newer version.
    #[error(
        "the pool holds type `{name}` in version {stored}, newer than this program's {wanted} ({difference}); use a newer program"
    )]
    NewerType {
        /// The type.
        name: String,
        /// Version in the pool.
        stored: u32,
        /// Version of the program.
        wanted: u32,
        /// The first field that differs, both layouts, and which field of which type leads there.
        difference: String,
    },
    /// A migration was begun and has not ended, so objects of a type have one of two versions.
    #[error(
        "a migration of type `{name}` to version {version} has not finished; migrate to that version again before opening a session (`Pool::migrate`, `firn_migrate`)"
    )]
    MigrationUnfinished {
        /// The type.
        name: String,
        /// The version to which its objects are being converted.
        version: u32,
    },
    /// A handle names an object that a migration would convert to another type.
    #[error(
        "a handle names the object at {at:#x}, of type `{name}`, which is being migrated; drop the handle, then migrate again"
    )]
    HandleInTheWay {
        /// The type.
        name: String,
        /// The object.
        at: u64,
    },
    /// The type registry is full.
    #[error("the type registry is full ({bytes} bytes); copy the pool to drop unused types")]
    RegistryFull {
        /// Bytes of the registry.
        bytes: u64,
    },
    /// The request needs a pool of the other kind, or with the other log.
    #[error("{what} needs {needs}")]
    WrongKind {
        /// The request.
        what: &'static str,
        /// The pool it needs.
        needs: &'static str,
    },
    /// The pool was opened for reading.
    #[error("the pool is open read-only; open it for writing")]
    ReadOnly,
    /// Two transactions wait for each other; `Session::transaction` tries again by itself.
    #[error("another transaction holds a lock that this one needs; start the transaction again")]
    Conflict,
    /// A guard or transaction stayed open, so the world could not be stopped.
    #[error("a guard or transaction stayed open for {waited_ms} ms; end it, then try again")]
    Busy {
        /// Time spent asking, in milliseconds.
        waited_ms: u64,
    },
    /// A collection is under way, and a pool allows one at a time.
    #[error("a collection of this pool is running; stop the collector or wait, then try again")]
    Collecting,
    /// The pool was closed.
    #[error("the pool is closed; open it again")]
    Closed,
    /// The caller is a forked child of the process that opened the pool.
    #[error(
        "{pool}: opened by the process from which this one was forked; a child can open it once the parent has closed it"
    )]
    Forked {
        /// The medium's name.
        pool: String,
    },
    /// The address range is not part of an object.
    #[error("the {len} bytes at {at:#x} are not within one allocated object")]
    BadRange {
        /// Start of the range.
        at: u64,
        /// Bytes.
        len: u64,
    },
    /// A store through an undo transaction was not logged first.
    #[error("the bytes at {at:#x} were not logged by this transaction; log them before storing")]
    NotLogged {
        /// The address.
        at: u64,
    },
    /// Data on media is damaged.
    #[error("the pool is damaged: {what} at {at:#x}; run `firn check`, then restore the last copy")]
    Damaged {
        /// The damage.
        what: &'static str,
        /// Where.
        at: u64,
    },
    /// A structure's bytes violate the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
}

/// What to do when a pool allows no more sessions.
fn way_to_session(open: usize, most: usize) -> String {
    let end = "end one first, or have fewer threads work on the pool at a time";
    match open < most {
        true => format!("{end}; a new pool can be created for {most}"),
        false => format!("{end}; no pool allows more than {most}"),
    }
}

/// `1 session is`, `2 sessions are`.
fn sessions(open: usize) -> String {
    match open {
        1 => "1 session is".into(),
        _ => format!("{open} sessions are"),
    }
}

impl Error {
    /// Whether the error is a lack of room: in the pool, or on the device below it.
    pub(crate) fn is_no_room(&self) -> bool {
        matches!(
            self,
            Error::PoolFull { .. } | Error::Medium(MediumError::NoSpace { .. })
        )
    }
}

/// Errors: the caller is a forked child of the process that opened the pool on this medium; the medium's device has
/// failed.
#[inline(always)]
pub(crate) fn check_usable<M: Medium>(medium: &M) -> Result<(), Error> {
    match medium.is_usable() {
        true => Ok(()),
        false => Err(unusable(medium)),
    }
}

#[cold]
#[inline(never)]
fn unusable<M: Medium>(medium: &M) -> Error {
    match medium.failure() {
        Some(failed) if medium.is_ours() => Error::Medium(failed),
        _ => Error::Forked {
            pool: medium.name(),
        },
    }
}
