//! Opening a pool with its log: what the last opening left goes home before anything is appended (L9).

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::log::{BLOCK_BYTES, HEAD_BLOCKS, Head, SEGMENT_BLOCKS};
use firn_format::superblock::{OpenState, StoredDomain, Superblock};
use firn_log::{
    Found, Growth, Home, LEAST_SEGMENTS, Log, LogError, Options, coalesce, newest_head, scan,
};
use firn_media::MediumError;

use super::disk::is_full;
use super::home::{HomeFile, Since};
use super::log_file::{Hold, LogFile};
use crate::beside::{log_beside, log_of};
use crate::file::PoolFile;
use crate::system::Randomness;
use crate::{LogOptions, MappedError};

/// How often the superblock is written at most from one opening to the next: twice by the opening of a pool of an older
/// version, and by closing it.
const OPENING_GENERATIONS: u64 = 4;

/// The newer sound superblock of a pool's file.
pub(crate) fn superblock(file: &PoolFile) -> Result<Option<Superblock>, MappedError> {
    let mut newest: Option<Superblock> = None;
    for at in SUPERBLOCKS {
        let mut bytes = [0; SUPERBLOCK_BYTES as usize];
        match file.file.read_exact_at(&mut bytes, at.0) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => continue,
            Err(e) => return Err(file.error("reading the superblock", e)),
        }
        if let Ok(superblock) = Superblock::decode(&bytes, at)
            && newest
                .as_ref()
                .is_none_or(|other| other.generation < superblock.generation)
        {
            newest = Some(superblock);
        }
    }
    Ok(newest)
}

/// The log beside a pool, and what it would bring home.
pub(super) struct Beside {
    pub(super) log: LogFile,
    pub(super) head: Head,
    pub(super) found: Found,
}

/// What a pool and its log hold. Changes neither.
pub(crate) struct Left {
    superblock: Superblock,
    pub(super) beside: Option<Beside>,
}

impl Left {
    /// What the log would bring home.
    pub(crate) fn into_home(self) -> Option<Home> {
        self.beside
            .map(|beside| coalesce(beside.found.records.into_iter()))
    }
}

/// Reads what the last opening left, or what a running program has written so far.
///
/// Concurrency: while a program has the pool open, a checkpoint may go by, or the log may go. Then everything is read
/// again.
///
/// Errors: the pool needs its log and has none; the log is another pool's, or damaged; what the system says.
pub(crate) fn left(file: &PoolFile, options: &LogOptions) -> Result<Left, MappedError> {
    loop {
        if let Some(path) = log_beside(&file.path)? {
            if let Some(left) = left_in(file, path, options, None)? {
                return Ok(left);
            }
            continue;
        }
        let superblock = sound_superblock(file)?;
        // A program may have opened the pool meanwhile.
        if log_beside(&file.path)?.is_none() {
            return without_log(file, superblock);
        }
    }
}

/// Does something while nothing goes home.
pub(crate) type Meanwhile<'m> = &'m mut dyn FnMut() -> Result<(), MappedError>;

/// Reads a pool and the log in `path`, once. `None` if a checkpoint went by, or the log went. If there is something to be
/// done `meanwhile`, the log is held for it. What it copies of home is older than the log that is then read, and what has
/// gone home since its tail is still in the log: the two together are the pool.
///
/// Errors: as [`left`].
pub(crate) fn left_in(
    file: &PoolFile,
    path: PathBuf,
    options: &LogOptions,
    meanwhile: Option<Meanwhile<'_>>,
) -> Result<Option<Left>, MappedError> {
    let log = match LogFile::open(path, &options.disk) {
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|e| file.error("opening the log", e))?,
    };
    let is_still_there = || {
        let named = log.has_its_name();
        named.map_err(|e| file.error("looking for the log", e))
    };
    let held = meanwhile.is_some().then(|| log.hold(Hold::ToRead));
    #[cfg(test)]
    let held = held.filter(|_| broken::keeps(broken::Rule::Hold));
    if !is_still_there()? {
        return Ok(None);
    }
    let head = head_of(&log)?;
    let superblock = sound_superblock(file)?;
    let done = meanwhile.map_or(Ok(()), |work| work());
    #[cfg(test)]
    let head = match broken::keeps(broken::Rule::HeadFirst) {
        true => head,
        false => head_of(&log)?,
    };
    let length = || {
        let bytes = log.bytes();
        bytes.map_err(|e| file.error("reading the log's length", e))
    };
    let bytes = length()?;
    let found = in_log(file, (&log, bytes), &head, &superblock);
    // A file that grows looks as if its end was lost.
    let as_long = found.is_ok() || length()? == bytes;
    let as_before = head_of(&log)? == head && is_still_there()? && as_long;
    drop(held);
    done?;
    if !as_before {
        return Ok(None);
    }
    let beside = Some(Beside {
        head,
        found: found?,
        log,
    });
    Ok(Some(Left { superblock, beside }))
}

/// What a test does wrong on purpose, in its thread.
#[cfg(test)]
pub(crate) mod broken {
    use std::cell::RefCell;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Rule {
        /// Who copies home holds the log.
        Hold,
        /// The tail from which the log counts is read before home is copied.
        HeadFirst,
    }

    thread_local! {
        pub(crate) static BROKEN: RefCell<Vec<Rule>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn keeps(rule: Rule) -> bool {
        BROKEN.with_borrow(|broken| !broken.contains(&rule))
    }
}

/// Gives a copy a generation that the pool will hardly ever have: no log of the one is accepted beside the other.
///
/// Errors: what the system says.
pub(crate) fn set_apart(copy: &PoolFile, randomness: &Randomness) -> Result<(), MappedError> {
    const MOST: u64 = 1 << 40;
    let mut superblock = sound_superblock(copy)?;
    superblock.generation += OPENING_GENERATIONS + 1 + randomness.next() % MOST;
    let at = SUPERBLOCKS[(superblock.generation % 2) as usize];
    let written = copy.file.write_all_at(&superblock.encode(), at.0);
    written.map_err(|e| copy.error("writing the superblock", e))
}

/// The superblock of a pool's file.
fn sound_superblock(file: &PoolFile) -> Result<Superblock, MappedError> {
    superblock(file)?.ok_or_else(|| MappedError::NoSuperblock {
        path: file.path.clone(),
    })
}

fn without_log(file: &PoolFile, superblock: Superblock) -> Result<Left, MappedError> {
    let is_open = superblock.state == OpenState::Open;
    match is_open && superblock.domain == StoredDomain::Logged {
        true => Err(MappedError::LogMissing {
            path: file.path.clone(),
            log: log_of(&file.path)?,
        }),
        false => Ok(Left {
            superblock,
            beside: None,
        }),
    }
}

/// The head that counts.
fn head_of(log: &LogFile) -> Result<Head, MappedError> {
    newest_head(&mut |at: u64, into: &mut [u8]| log.read(at, into)).map_err(|e| in_this_log(log, e))
}

fn in_this_log(log: &LogFile, source: LogError) -> MappedError {
    let path = log.path.clone();
    MappedError::Log { path, source }
}

/// What the log beside a pool would bring home.
fn in_log(
    file: &PoolFile,
    (log, bytes): (&LogFile, u64),
    head: &Head,
    superblock: &Superblock,
) -> Result<Found, MappedError> {
    let (base, generation) = (head.pool_generation, superblock.generation);
    let fits = (base..=base + OPENING_GENERATIONS).contains(&generation);
    // Before the first tail moves, home says that the pool is open: this is a copy from before the log began.
    let is_older = superblock.state != OpenState::Open && generation == base && head.tail > 0;
    if head.uuid != superblock.uuid || !fits || is_older {
        return Err(MappedError::ForeignLog {
            path: file.path.clone(),
            log: log.path.clone(),
        });
    }
    let segment_blocks = u64::from(head.segment_blocks);
    if bytes < Growth::of_new(segment_blocks, LEAST_SEGMENTS).bytes().end {
        return Err(in_this_log(log, LogError::Cut { bytes }));
    }
    let mut read = |at: u64, into: &mut [u8]| log.read(at, into);
    scan(&mut read, head, bytes).map_err(|e| in_this_log(log, e))
}

/// Writes what a log holds to its home, durably.
///
/// Errors: what the system says; home is as it was, or written in part.
pub(crate) fn bring_home(
    file: &PoolFile,
    home: &Home,
    options: &LogOptions,
) -> Result<(), MappedError> {
    let home_file = HomeFile {
        file,
        disk: &*options.disk,
    };
    let written = home_file
        .give_back(home, &Since::default())
        .and_then(|()| home_file.write(home));
    written.map_err(|e| file.error("writing the pool's file", e))?;
    home_file
        .sync()
        .map_err(|e| file.error("syncing the pool's file", e))
}

/// Brings home what a crash left in the log, and begins anew with an empty one.
///
/// Errors: as [`left`]. Both files are as they were, or the log is home in part, which the next recovery repeats.
pub(crate) fn recover(
    file: &PoolFile,
    randomness: &Randomness,
    options: &LogOptions,
) -> Result<(Log, LogFile), MappedError> {
    let Left { superblock, beside } = left(file, options)?;
    let Some(Beside { log, head, found }) = beside else {
        let (uuid, generation) = (superblock.uuid, superblock.generation);
        return begin(file, uuid, generation, randomness, options);
    };
    let home = coalesce(found.records.into_iter());
    // A backup may be copying what the crash has left.
    let held = log.hold(Hold::ToBringHome);
    bring_home(file, &home, options)?;
    let io_error = |doing| move |source: io::Error| file.error(doing, source);
    // Home as it is now, with the superblock that the log brought.
    let generation = self::superblock(file)?.map_or(superblock.generation, |s| s.generation);
    let next = Head {
        generation: head.generation + 1,
        salt: randomness.next(),
        pool_generation: generation,
        tail: 0,
        ..head
    };
    let bytes = log.write_head(&next).and_then(|()| {
        // Slots that were being added may not be written as a whole (L8): the log has its first ones only.
        let initial = initial_slots(next.segment_blocks.into(), options);
        let bytes = log.bytes()?.min(initial.bytes().end);
        log.cut(bytes).map(|()| bytes)
    });
    drop(held);
    let bytes = bytes.map_err(io_error("beginning the log anew"))?;
    let segment_blocks = u64::from(next.segment_blocks);
    let slots = (bytes / BLOCK_BYTES).saturating_sub(HEAD_BLOCKS) / segment_blocks;
    let options = Options {
        initial_bytes: slots * segment_blocks * BLOCK_BYTES,
        bound_bytes: options.bound_bytes,
    };
    Ok((Log::begin(next, options), log))
}

/// The slots of a new log.
fn initial_slots(segment_blocks: u64, options: &LogOptions) -> Growth {
    let segment_bytes = segment_blocks * BLOCK_BYTES;
    let count = options.initial_bytes.div_ceil(segment_bytes);
    let count = count.max(LEAST_SEGMENTS);
    Growth::of_new(segment_blocks, count)
}

/// Why a log of so many bytes could not be made.
fn not_made(file: &PoolFile, bytes: u64, source: io::Error) -> MappedError {
    if !is_full(&source) {
        return file.error("creating the log", source);
    }
    let medium = format!("{}, for its log", file.name());
    MappedError::Space(MediumError::NoSpace { medium, bytes })
}

/// Makes the log of a pool, in the place of any that is left of an earlier file of that name.
pub(crate) fn begin(
    file: &PoolFile,
    uuid: [u8; 16],
    pool_generation: u64,
    randomness: &Randomness,
    options: &LogOptions,
) -> Result<(Log, LogFile), MappedError> {
    let head = Head {
        generation: 1,
        uuid,
        salt: randomness.next(),
        segment_blocks: SEGMENT_BLOCKS,
        pool_generation,
        tail: 0,
    };
    let slots = initial_slots(head.segment_blocks.into(), options);
    let log = LogFile::create(log_of(&file.path)?, &head, &slots, &options.disk)
        .map_err(|source| not_made(file, slots.bytes().end, source))?;
    let bytes = slots.bytes();
    let initial_bytes = bytes.end - bytes.start;
    let options = Options {
        initial_bytes,
        bound_bytes: options.bound_bytes.max(initial_bytes),
    };
    Ok((Log::begin(head, options), log))
}
