//! Blocks: what the disk writes.

use crate::bytes::{Reader, Writer};
use crate::checksum;

/// Bytes of a block of the log.
pub const BLOCK_BYTES: u64 = 4096;
/// Bytes in front of a block's payload.
const HEADER_BYTES: usize = 40;
/// Bytes of records that a block holds at most.
pub const PAYLOAD_BYTES: usize = BLOCK_BYTES as usize - HEADER_BYTES;
/// Bytes of the checksum, which covers the rest of the block.
const CHECK_BYTES: usize = 8;

/// A sound block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// The log's salt when it was written.
    pub salt: u64,
    /// Its number; no other block with this salt has it.
    pub number: u64,
    /// Whether a write of the log begins with it, and with it a record.
    pub begins: bool,
    /// Number of a block before which all were durable when this one was written.
    pub durable: u64,
    /// What it holds of the records.
    pub payload: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads a block. `None` if it is not whole: torn, damaged, or none.
    pub fn decode(bytes: &'a [u8; BLOCK_BYTES as usize]) -> Option<Self> {
        let (check, body) = bytes.split_at(CHECK_BYTES);
        let mut r = Reader(body);
        let salt = r.u64()?;
        let number = r.u64()?;
        let used = usize::from(r.u16()?);
        let begins = r.u16()?;
        r.u32()?;
        let durable = r.u64()?;
        if check != checksum(body, salt).to_le_bytes() || begins > 1 {
            return None;
        }
        let payload = bytes[HEADER_BYTES..].get(..used)?;
        Some(Self {
            salt,
            number,
            begins: begins == 1,
            durable,
            payload,
        })
    }
}

/// A block's header but for its checksum and the length of its payload.
#[derive(Clone, Copy, Debug)]
pub struct BlockHeader {
    /// See [`Block::salt`].
    pub salt: u64,
    /// See [`Block::number`].
    pub number: u64,
    /// See [`Block::begins`].
    pub begins: bool,
    /// See [`Block::durable`].
    pub durable: u64,
}

impl BlockHeader {
    /// Makes a block whose payload is `payload`, of at most [`PAYLOAD_BYTES`].
    ///
    /// # Panics
    ///
    /// If the payload is longer.
    pub fn seal(self, payload: &[u8], block: &mut [u8; BLOCK_BYTES as usize]) {
        let used = payload.len();
        assert!(used <= PAYLOAD_BYTES, "{used} bytes of payload in a block");
        let (header, rest) = block.split_at_mut(HEADER_BYTES);
        rest[..used].copy_from_slice(payload);
        rest[used..].fill(0);
        let mut w = Writer::with_room(HEADER_BYTES - CHECK_BYTES);
        w.u64(self.salt);
        w.u64(self.number);
        w.u16(used as u16);
        w.u16(self.begins.into());
        w.u32(0);
        w.u64(self.durable);
        header[CHECK_BYTES..].copy_from_slice(&w.0);
        let check = checksum(&block[CHECK_BYTES..], self.salt);
        block[..CHECK_BYTES].copy_from_slice(&check.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(used: usize) -> [u8; BLOCK_BYTES as usize] {
        let mut block = [0xff; BLOCK_BYTES as usize];
        let header = BlockHeader {
            salt: 7,
            number: 300,
            begins: true,
            durable: 290,
        };
        header.seal(&vec![0xa5; used], &mut block);
        block
    }

    #[test]
    fn a_block_reads_as_it_was_sealed() {
        for used in [0, 1, PAYLOAD_BYTES] {
            let bytes = block(used);
            let read = Block::decode(&bytes).unwrap();
            assert_eq!((read.salt, read.number), (7, 300));
            assert_eq!((read.begins, read.durable), (true, 290));
            assert_eq!(read.payload, vec![0xa5; used]);
        }
    }

    #[test]
    fn a_block_with_any_bit_changed_is_none() {
        let whole = block(100);
        for bit in (0..whole.len() * 8).step_by(13) {
            let mut damaged = whole;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Block::decode(&damaged), None, "bit {bit}");
        }
        assert_eq!(Block::decode(&[0; BLOCK_BYTES as usize]), None);
    }
}
