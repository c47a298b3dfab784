//! The superblock: a pool's identity and state, twice on media.
//!
//! There are two copies, each with a generation. The newer valid one counts and the other is overwritten next, so a
//! torn write leaves its predecessor.

use core::num::NonZeroU64;

use firn_units::VirtAddr;

use crate::bytes::{Reader, Writer};
use crate::geometry::SUPERBLOCK_BYTES;
use crate::header::{ObjectHeader, TypeId};
use crate::reference::PoolId;
use crate::{FORMAT_VERSION, FormatError, OLDEST_FORMAT_VERSION, checksum};

const MAGIC: u64 = u64::from_le_bytes(*b"FIRNPOOL");
/// The type that an object at address zero would seem to have, where the superblock begins. No pool can have this type.
pub const TYPE_OF_NULL: TypeId = ObjectHeader(MAGIC).type_id();
/// Longest layout name, in bytes of UTF-8.
pub const MAX_LAYOUT_BYTES: usize = 64;
/// No pool is opened and closed this many times: a copy with such a generation is damaged.
const END_OF_GENERATIONS: u64 = 1 << 56;

/// How a pool decides which objects live.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum PoolKind {
    /// Reachability from the roots. Allocation needs no log; leaks are impossible.
    Traced = 1,
    /// Allocation and free, logged. Objects can be iterated by type.
    Explicit = 2,
}

/// The kind of log that the pool's lanes have held since the last open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum LogKind {
    /// New values, with one fence per transaction.
    Redo = 1,
    /// Old values, for programs that store in place.
    Undo = 2,
}

/// How the pool was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum OpenState {
    /// Closed: allocation bitmaps and statistics on media are exact, lanes are empty.
    Closed = 1,
    /// Open, or left open by a crash.
    Open = 2,
    /// Closed, but the objects of an earlier crash were not traced yet: lanes are empty, but allocation bitmaps and
    /// statistics are not exact.
    ClosedUntraced = 3,
}

/// The persistence domain under which the pool was last opened, as a number on media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum StoredDomain {
    /// Stores are durable after write-back and fence.
    Adr = 1,
    /// Stores are durable when visible.
    Eadr = 2,
    /// Stores survive the process, not the machine.
    Process = 3,
    /// Stores are durable once the log beside the pool holds them.
    Logged = 4,
}

/// The content of a superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Version of the format of the pool's content.
    pub version: u32,
    /// Counts how often it was written; a backup goes far ahead of its pool. Of the two copies, the valid one with the
    /// higher generation counts.
    pub generation: u64,
    /// Identifies the pool among all pools.
    pub uuid: [u8; 16],
    /// Part of every reference of the pool.
    pub pool_id: PoolId,
    /// How the pool decides which objects live.
    pub kind: PoolKind,
    /// The kind of log in the lanes.
    pub log: LogKind,
    /// Domain of the last open.
    pub domain: StoredDomain,
    /// How the pool was left.
    pub state: OpenState,
    /// Boot of the machine that last opened the pool.
    pub boot_id: [u8; 16],
    /// Most lanes in use.
    pub lanes: u32,
    /// The program's name for the pool's content.
    pub layout: String,
    /// Bytes beyond which the pool does not grow, whichever program opens it; `None` in pools without a limit of their
    /// own and in those of version 1.
    pub limit_bytes: Option<NonZeroU64>,
}

impl Superblock {
    /// The bytes on media.
    pub fn encode(&self) -> [u8; SUPERBLOCK_BYTES as usize] {
        let mut w = Writer::with_room(SUPERBLOCK_BYTES as usize);
        w.u64(MAGIC);
        w.u32(self.version);
        w.u32(self.lanes);
        w.u64(self.generation);
        w.bytes(&self.uuid);
        w.bytes(&self.boot_id);
        w.u16(self.pool_id.0);
        w.u8(self.kind as u8);
        w.u8(self.log as u8);
        w.u8(self.domain as u8);
        w.u8(self.state as u8);
        w.text(&self.layout);
        w.u64(self.limit_bytes.map_or(0, NonZeroU64::get));
        w.pad_to(SUPERBLOCK_BYTES as usize - 8);
        let check = checksum(&w.0, MAGIC);
        w.u64(check);
        w.0.try_into()
            .expect("padded to the length of a superblock")
    }

    /// Reads the copy found at `at`.
    pub fn decode(
        bytes: &[u8; SUPERBLOCK_BYTES as usize],
        at: VirtAddr,
    ) -> Result<Self, FormatError> {
        let mut r = Reader(bytes);
        let magic = r.u64();
        let version = r.u32();
        if magic != Some(MAGIC) {
            return Err(FormatError::NotAPool);
        }
        let (body, check) = bytes.split_at(SUPERBLOCK_BYTES as usize - 8);
        if check != checksum(body, MAGIC).to_le_bytes() {
            return Err(FormatError::Checksum {
                what: "the superblock",
                at: at.bytes(),
            });
        }
        let version = version.unwrap_or(0);
        if !(OLDEST_FORMAT_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(FormatError::Version {
                found: version,
                oldest: OLDEST_FORMAT_VERSION,
                newest: FORMAT_VERSION,
            });
        }
        Self::decode_fields(version, r).ok_or(FormatError::Range {
            what: "a field of the superblock",
            at: at.bytes(),
            found: 0,
        })
    }

    fn decode_fields(version: u32, mut r: Reader<'_>) -> Option<Self> {
        Some(Self {
            version,
            lanes: r.u32()?,
            generation: r
                .u64()
                .filter(|&generation| generation < END_OF_GENERATIONS)?,
            uuid: r.array()?,
            boot_id: r.array()?,
            pool_id: Some(PoolId(r.u16()?)).filter(|id| id.0 != 0)?,
            kind: match r.u8()? {
                1 => PoolKind::Traced,
                2 => PoolKind::Explicit,
                _ => return None,
            },
            log: match r.u8()? {
                1 => LogKind::Redo,
                2 => LogKind::Undo,
                _ => return None,
            },
            domain: match r.u8()? {
                1 => StoredDomain::Adr,
                2 => StoredDomain::Eadr,
                3 => StoredDomain::Process,
                4 => StoredDomain::Logged,
                _ => return None,
            },
            state: match r.u8()? {
                1 => OpenState::Closed,
                2 => OpenState::Open,
                3 => OpenState::ClosedUntraced,
                _ => return None,
            },
            layout: r.text().filter(|l| l.len() <= MAX_LAYOUT_BYTES)?,
            // Padding zeros in version 1.
            limit_bytes: NonZeroU64::new(r.u64()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn sample() -> Superblock {
        Superblock {
            version: FORMAT_VERSION,
            generation: 9,
            uuid: [7; 16],
            pool_id: PoolId(0x1234),
            kind: PoolKind::Traced,
            log: LogKind::Redo,
            domain: StoredDomain::Adr,
            state: OpenState::Open,
            boot_id: [3; 16],
            lanes: 64,
            layout: "map".into(),
            limit_bytes: NonZeroU64::new(64 << 20),
        }
    }

    #[test]
    fn reads_back() {
        assert_eq!(
            Superblock::decode(&sample().encode(), VirtAddr(0)),
            Ok(sample())
        );
    }

    #[test]
    fn every_flipped_bit_is_an_error() {
        let bytes = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                Superblock::decode(&damaged, VirtAddr(0)).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_generation_that_no_pool_reaches_is_damage() {
        for generation in [END_OF_GENERATIONS, u64::MAX] {
            let reached = Superblock {
                generation,
                ..sample()
            };
            let read = Superblock::decode(&reached.encode(), VirtAddr(0));
            assert!(matches!(read, Err(FormatError::Range { .. })), "{read:?}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = sample().encode();
        bytes[8] = 99;
        let body = SUPERBLOCK_BYTES as usize - 8;
        let check = checksum(&bytes[..body], MAGIC).to_le_bytes();
        bytes[body..].copy_from_slice(&check);
        let expected = FormatError::Version {
            found: 99,
            oldest: OLDEST_FORMAT_VERSION,
            newest: FORMAT_VERSION,
        };
        assert_eq!(Superblock::decode(&bytes, VirtAddr(0)), Err(expected));
    }
}
