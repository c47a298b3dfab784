//! Opening a pool with its log: what the last opening left goes home before anything is appended (L9).

use std::io;
use std::os::unix::fs::FileExt;

use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::log::{BLOCK_BYTES, HEAD_BLOCKS, Head, SEGMENT_BLOCKS};
use firn_format::superblock::{OpenState, StoredDomain, Superblock};
use firn_log::{Growth, Log, LogError, Options, coalesce, newest_head, scan};

use super::home::{HomeFile, Since};
use super::log_file::LogFile;
use crate::file::PoolFile;
use crate::system::Randomness;
use crate::{LoggedOptions, MappedError};

/// How often the superblock is written at most from one opening to the next: twice by the opening of a pool of an older
/// version, and by closing it.
const OPENING_GENERATIONS: u64 = 4;

/// The newer sound superblock of a pool's file.
pub(super) fn superblock(file: &PoolFile) -> Result<Option<Superblock>, MappedError> {
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

/// Brings home what a crash left in the log, and begins anew with an empty one.
///
/// Errors: the pool needs its log and has none; the log is another pool's, or damaged; what the system says. Both files
/// are as they were, or the log is home in part, which the next recovery repeats.
pub(super) fn recover(
    file: &PoolFile,
    randomness: &Randomness,
    options: &LoggedOptions,
) -> Result<(Log, LogFile), MappedError> {
    let Some(superblock) = superblock(file)? else {
        return Err(MappedError::NoSuperblock {
            path: file.path.clone(),
        });
    };
    let log_error = |log: &LogFile, source: LogError| MappedError::Log {
        path: log.path.clone(),
        source,
    };
    let io_error = |doing| move |source: io::Error| file.error(doing, source);
    let beside = LogFile::lies_beside(&file.path).map_err(io_error("reading the log's head"))?;
    let found = match beside {
        true => LogFile::open(&file.path, &options.disk).map_err(io_error("opening the log"))?,
        false => None,
    };
    let Some(log) = found else {
        if superblock.state == OpenState::Open && superblock.domain == StoredDomain::Logged {
            return Err(MappedError::LogMissing {
                path: file.path.clone(),
                log: LogFile::path_of(&file.path),
            });
        }
        return create(file, &superblock, randomness, options);
    };
    let bytes = log.bytes().map_err(io_error("reading the log's length"))?;
    let mut read = |at: u64, into: &mut [u8]| log.read(at, into);
    let head = newest_head(&mut read).map_err(|e| log_error(&log, e))?;
    let base = head.pool_generation;
    if head.uuid != superblock.uuid
        || !(base..=base + OPENING_GENERATIONS).contains(&superblock.generation)
    {
        return Err(MappedError::ForeignLog {
            path: file.path.clone(),
            log: log.path.clone(),
        });
    }
    let found = scan(&mut read, &head, bytes).map_err(|e| log_error(&log, e))?;
    let to_bring = coalesce(found.records.into_iter());
    let home = HomeFile {
        file,
        disk: &*options.disk,
    };
    let written = home
        .give_back(&to_bring, &Since::default())
        .and_then(|()| home.write(&to_bring));
    written.map_err(io_error("writing the pool's file"))?;
    home.sync().map_err(io_error("syncing the pool's file"))?;
    // Home as it is now, with the superblock that the log brought.
    let generation = self::superblock(file)?.map_or(superblock.generation, |s| s.generation);
    let next = Head {
        generation: head.generation + 1,
        salt: randomness.next(),
        pool_generation: generation,
        tail: 0,
        ..head
    };
    log.write_head(&next)
        .map_err(io_error("writing the log's head"))?;
    let segment_blocks = u64::from(next.segment_blocks);
    let slots = (bytes / BLOCK_BYTES).saturating_sub(HEAD_BLOCKS) / segment_blocks;
    let options = Options {
        initial_bytes: slots * segment_blocks * BLOCK_BYTES,
        bound_bytes: options.log_bound_bytes,
    };
    Ok((Log::begin(next, options), log))
}

/// Makes the log of a pool whose file is whole.
pub(super) fn create(
    file: &PoolFile,
    superblock: &Superblock,
    randomness: &Randomness,
    options: &LoggedOptions,
) -> Result<(Log, LogFile), MappedError> {
    begin(
        file,
        superblock.uuid,
        superblock.generation,
        randomness,
        options,
    )
}

/// Makes the log of a pool, in the place of any that is left of an earlier file of that name.
pub(super) fn begin(
    file: &PoolFile,
    uuid: [u8; 16],
    pool_generation: u64,
    randomness: &Randomness,
    options: &LoggedOptions,
) -> Result<(Log, LogFile), MappedError> {
    let head = Head {
        generation: 1,
        uuid,
        salt: randomness.next(),
        segment_blocks: SEGMENT_BLOCKS,
        pool_generation,
        tail: 0,
    };
    let segment_blocks = u64::from(head.segment_blocks);
    let segment = segment_blocks * BLOCK_BYTES;
    let count = options.log_initial_bytes.div_ceil(segment).max(1);
    let slots = Growth::of_new(segment_blocks, count);
    let log = LogFile::create(&file.path, &head, &slots, &options.disk)
        .map_err(|source| file.error("creating the log", source))?;
    let options = Options {
        initial_bytes: count * segment,
        bound_bytes: options.log_bound_bytes.max(count * segment),
    };
    Ok((Log::begin(head, options), log))
}
