//! The head: to which pool the log belongs, and from where on it counts.

use super::BLOCK_BYTES;
use crate::bytes::{Reader, Writer};
use crate::{FormatError, checksum};

const MAGIC: u64 = u64::from_le_bytes(*b"FIRNLOG\0");
/// Version of the log's layout.
const VERSION: u32 = 1;
/// Bytes of a head: a sector, which no disk tears into more than two contents.
pub const HEAD_BYTES: usize = 512;

/// What a head says. The sound one of the higher generation counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Counts the heads that were written.
    pub generation: u64,
    /// The pool that the log belongs to.
    pub uuid: [u8; 16],
    /// Drawn anew whenever the pool is opened. Only blocks that carry it count.
    pub salt: u64,
    /// Generation of the pool's superblock when it was opened: tells the log from that of an older copy.
    pub pool_generation: u64,
    /// Blocks of a segment, one at least.
    pub segment_blocks: u32,
    /// Number of the first block that counts; a write begins with it. All before it is in the pool's file.
    pub tail: u64,
}

impl Head {
    /// The bytes on media: a block.
    pub fn encode(&self) -> [u8; BLOCK_BYTES as usize] {
        let mut w = Writer::with_room(BLOCK_BYTES as usize);
        w.u64(MAGIC);
        w.u32(VERSION);
        w.u32(self.segment_blocks);
        w.u64(self.generation);
        w.bytes(&self.uuid);
        w.u64(self.pool_generation);
        w.u64(self.salt);
        w.u64(self.tail);
        w.pad_to(HEAD_BYTES - 8);
        let check = checksum(&w.0, MAGIC);
        w.u64(check);
        w.pad_to(BLOCK_BYTES as usize);
        w.0.try_into().expect("padded to the length of a block")
    }

    /// Reads one head that was found at byte `at` of the log's file.
    ///
    /// Errors: `NotAPool` if it is no head, a damaged one, another version.
    pub fn decode(bytes: &[u8; HEAD_BYTES], at: u64) -> Result<Self, FormatError> {
        let (body, check) = bytes.split_at(HEAD_BYTES - 8);
        let mut r = Reader(body);
        let (magic, version) = (r.u64(), r.u32());
        if magic != Some(MAGIC) {
            return Err(FormatError::NotAPool);
        }
        let what = "the head of the log";
        if check != checksum(body, MAGIC).to_le_bytes() {
            return Err(FormatError::Checksum { what, at });
        }
        let version = version.unwrap_or(0);
        if version != VERSION {
            return Err(FormatError::Version {
                found: version,
                oldest: VERSION,
                newest: VERSION,
            });
        }
        let mut fields = || {
            Some(Self {
                segment_blocks: r.u32().filter(|&blocks| blocks > 0)?,
                generation: r.u64()?,
                uuid: r.array()?,
                pool_generation: r.u64()?,
                salt: r.u64()?,
                tail: r.u64()?,
            })
        };
        fields().ok_or(FormatError::Checksum { what, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_as_it_was_written_and_not_with_any_bit_changed() {
        let head = Head {
            generation: 5,
            uuid: [3; 16],
            pool_generation: 9,
            segment_blocks: 256,
            salt: u64::MAX - 2,
            tail: 1 << 40,
        };
        let bytes: [u8; HEAD_BYTES] = head.encode()[..HEAD_BYTES].try_into().unwrap();
        assert_eq!(Head::decode(&bytes, 0).unwrap(), head);
        for bit in 0..HEAD_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::decode(&damaged, 0).is_err(), "bit {bit}");
        }
    }
}
