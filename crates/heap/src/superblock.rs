//! The superblock: which of its copies is valid, and whether its pool may be opened.

use core::num::NonZeroU64;

use firn_format::FormatError;
use firn_format::geometry::{
    self, FIRST_DATA_CHUNK, STATISTICS, STATISTICS_BLOCK_BYTES, SUPERBLOCK_BYTES, SUPERBLOCKS,
};
use firn_format::sealed::Seal;
use firn_format::superblock::{LogKind, OpenState, PoolKind, StoredDomain, Superblock};
use firn_media::{Domain, Medium, MediumExt};
use firn_units::CHUNK_BYTES;

use crate::error::OpenError;
use crate::steps;

pub(crate) fn stored_domain(domain: Domain) -> StoredDomain {
    match domain {
        Domain::Adr => StoredDomain::Adr,
        Domain::Eadr => StoredDomain::Eadr,
        Domain::Process => StoredDomain::Process,
        Domain::Logged => StoredDomain::Logged,
    }
}

fn load_superblock<M: Medium>(medium: &M, copy: usize) -> Result<Superblock, FormatError> {
    let mut bytes = [0; SUPERBLOCK_BYTES as usize];
    medium.load_bytes(SUPERBLOCKS[copy], &mut bytes);
    Superblock::decode(&bytes, SUPERBLOCKS[copy])
}

/// The stored limit of the pool on a medium, in bytes, which holds for every program that opens it; `None` if it has no
/// such limit, or is no pool that this program reads, which opening it reports.
pub fn stored_limit<M: Medium>(medium: &M) -> Option<u64> {
    let superblock = newest_superblock(medium).ok()?;
    superblock.limit_bytes.map(NonZeroU64::get)
}

/// The layout of the pool on a medium; `None` if it is no pool that this program reads, which opening it reports.
pub fn stored_layout<M: Medium>(medium: &M) -> Option<String> {
    Some(newest_superblock(medium).ok()?.layout)
}

/// The newer of the two superblocks, if one is sound. A copy of a version that this program does not read is not
/// skipped: the other one may be its predecessor.
pub(crate) fn newest_superblock<M: Medium>(medium: &M) -> Result<Superblock, FormatError> {
    match (load_superblock(medium, 0), load_superblock(medium, 1)) {
        (Ok(a), Ok(b)) => Ok(if a.generation >= b.generation { a } else { b }),
        (Ok(_), Err(version @ FormatError::Version { .. }))
        | (Err(version @ FormatError::Version { .. }), Ok(_)) => Err(version),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        // A version error is more informative than a foreign copy, a damaged copy more than a missing one.
        (Err(FormatError::NotAPool), Err(b)) => Err(b),
        (Err(a), Err(_)) => Err(a),
    }
}

/// The superblock of a pool that may be opened; also of one that may be torn, if `torn` allows it.
pub(crate) fn sound_superblock<M: Medium>(
    medium: &M,
    layout: &str,
    torn: bool,
) -> Result<Superblock, OpenError> {
    let pool = || medium.name();
    let superblock = newest_superblock(medium).map_err(|source| OpenError::Format {
        pool: pool(),
        source,
    })?;
    if !layout.is_empty() && superblock.layout != layout {
        let (found, expected) = (superblock.layout, layout.to_owned());
        return Err(OpenError::Layout {
            pool: pool(),
            found,
            expected,
        });
    }
    let died = !torn
        && superblock.state == OpenState::Open
        && superblock.domain == StoredDomain::Process
        && superblock.boot_id != medium.boot_id();
    if died {
        return Err(OpenError::MachineDied { pool: pool() });
    }
    let needs_log = superblock.state == OpenState::Open
        && superblock.domain == StoredDomain::Logged
        && medium.domain() != Domain::Logged;
    if needs_log && !torn {
        return Err(OpenError::NeedsLog { pool: pool() });
    }
    let format = |source| OpenError::Format {
        pool: pool(),
        source,
    };
    let chunks = Seal::Length.open_at(medium.load_u64(geometry::LENGTH), geometry::LENGTH);
    let needed = match chunks.map_err(format)? {
        less if less < FIRST_DATA_CHUNK => {
            return Err(format(FormatError::Range {
                what: "the length of the pool",
                at: geometry::LENGTH.0,
                found: less,
            }));
        }
        FIRST_DATA_CHUNK => STATISTICS.0 + STATISTICS_BLOCK_BYTES,
        more => more.saturating_mul(CHUNK_BYTES),
    };
    if medium.len() < needed {
        return Err(OpenError::TooShort {
            pool: pool(),
            found: medium.len(),
            needed,
        });
    }
    Ok(superblock)
}

/// Writes the older of the two copies, so that a torn write leaves the newer one.
pub(crate) fn write_superblock<M: Medium>(medium: &M, superblock: &mut Superblock) {
    superblock.generation += 1;
    let newer = u64::from(medium.leaves_out(&steps::OLDER_COPY_WRITTEN));
    let at = SUPERBLOCKS[((superblock.generation + newer) % 2) as usize];
    medium.store_bytes(at, &superblock.encode());
    medium.persist_for(&steps::SUPERBLOCK_PERSIST, at, SUPERBLOCK_BYTES);
}

/// Whether addresses stay: in explicit pools with an undo log, whose programs hold raw addresses.
pub(crate) fn keeps_addresses(kind: PoolKind, log: LogKind) -> bool {
    kind == PoolKind::Explicit && log == LogKind::Undo
}
