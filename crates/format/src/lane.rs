//! Lanes: where transactions are logged.
//!
//! A lane belongs to one session at a time. Under redo it is a ring of slots with one entry each:
//!
//! ```text
//! word 0  LSN of the transaction, never reused
//! word 1  W: all lower LSNs are durable at home
//! word 2  payload words, and from bit 48 on the number of overflow extents
//! word 3  checksum of words 0 to 2 and of the whole payload
//! word 4  payload, or the extents (address, words) that hold a payload that does not fit
//! ```
//! Under undo it is a sequence of batches from its start, each after the same four words (word 1 is the batch's number
//! within its transaction). A batch counts if its transaction follows the one in the lane's `done` word and its
//! checksum is right. A batch with bit 62 of word 1 says where the sequence continues outside the lane: its payload is
//! an address and a number of bytes.
//!
//! The payload is a sequence of [`Record`]s.

use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use crate::checksum;
use crate::geometry::LANES_START;

/// Lanes of a pool, and so the most sessions at one time.
pub const LANES: usize = 64;
/// Bytes of a lane.
pub const LANE_BYTES: u64 = 32 << 10;
/// Slots of a lane's ring. The protocol needs this many to manage with one fence per transaction.
pub const SLOTS: usize = 8;
/// Bytes of a slot: a line less than a page, so that the slots' first lines map to different cache sets.
pub const SLOT_BYTES: u64 = 4096 - LINE_BYTES;
/// Bytes of an undo log within its lane; the rest of the lane is its header.
pub const UNDO_BYTES: u64 = SLOTS as u64 * SLOT_BYTES;
/// Words in front of an entry's payload.
pub const ENTRY_HEADER_WORDS: usize = 4;
/// Payload words that fit into a slot.
pub const SLOT_PAYLOAD_WORDS: usize = SLOT_BYTES as usize / 8 - ENTRY_HEADER_WORDS;
/// Most overflow extents of an entry.
pub const MAX_EXTENTS: usize = SLOT_PAYLOAD_WORDS / 2;
const EXTENT_SHIFT: u32 = 48;

const _: () = assert!(SLOTS as u64 * SLOT_BYTES + LINE_BYTES <= LANE_BYTES);
const _: () = assert!(LANES as u64 * LANE_BYTES <= firn_units::CHUNK_BYTES);

/// The address of a lane.
#[inline(always)]
pub const fn lane_at(lane: usize) -> VirtAddr {
    VirtAddr(LANES_START.0 + lane as u64 * LANE_BYTES)
}

/// The address of a slot of a lane.
#[inline(always)]
pub const fn slot_at(lane: usize, slot: usize) -> VirtAddr {
    VirtAddr(lane_at(lane).0 + slot as u64 * SLOT_BYTES)
}

/// The address of the sealed LSN of the lane's last finished undo transaction.
pub const fn undo_done_at(lane: usize) -> VirtAddr {
    VirtAddr(lane_at(lane).0 + UNDO_BYTES)
}

/// The four words in front of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryHeader {
    /// LSN of the transaction.
    pub lsn: u64,
    /// Redo: all lower LSNs are durable at home. Undo: number of the batch.
    pub watermark: u64,
    /// Words of the payload.
    pub payload_words: u64,
    /// Overflow extents; zero if the payload follows the header.
    pub extents: usize,
    /// The checksum that [`EntryHeader::checksum`] must compute.
    pub checksum: u64,
}

impl EntryHeader {
    /// The words on media.
    #[inline]
    pub fn to_words(self) -> [u64; ENTRY_HEADER_WORDS] {
        [self.lsn, self.watermark, self.sizes(), self.checksum]
    }

    /// Reads the words. Only the checksum tells whether they mean anything.
    #[inline]
    pub fn from_words(words: [u64; ENTRY_HEADER_WORDS]) -> Self {
        Self {
            lsn: words[0],
            watermark: words[1],
            payload_words: words[2] & ((1 << EXTENT_SHIFT) - 1),
            extents: (words[2] >> EXTENT_SHIFT) as usize,
            checksum: words[3],
        }
    }

    fn sizes(self) -> u64 {
        self.payload_words | (self.extents as u64) << EXTENT_SHIFT
    }

    /// The checksum over the header's other words and the payload. The payload of an entry with extents is the list of
    /// extents followed by their content.
    #[inline]
    pub fn checksum(self, payload: &[u8]) -> u64 {
        let seed = self.lsn ^ self.watermark.rotate_left(21) ^ self.sizes().rotate_left(42);
        checksum(payload, seed)
    }
}

/// Bits of a record's first word that hold its kind.
const KIND_MASK: u64 = 7;
const LINE: u64 = 1;
const BITS: u64 = 2;
const RANGE: u64 = 3;
const CLEARED: u64 = 5;
const SET: u64 = 6;
const BYTES: u64 = 4;
const ADDRESS_BITS: u64 = (1 << 48) - 1;
const MASK_SHIFT: u32 = 48;
/// Most words for which one record has masks.
const MAX_MASKS: usize = (1 << (64 - MASK_SHIFT)) - 1;
/// Shift of a byte record's length. The bits from `MASK_SHIFT` to there tell the first byte in its word.
const LEN_SHIFT: u32 = 51;
/// Most bytes of one record of bytes.
pub const MAX_RECORD_BYTES: u64 = (1 << (64 - LEN_SHIFT)) - 1;

/// One change of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// Words of one line: `mask` selects them, `words` holds them in ascending order.
    Line {
        /// First byte of the line.
        at: VirtAddr,
        /// Bit i: word i is stored.
        mask: u8,
        /// The words.
        words: &'a [u64],
    },
    /// Bits of one word, changed in one locked step (allocation bitmaps).
    Bits {
        /// The word.
        at: VirtAddr,
        /// Bits to set.
        set: u64,
        /// Bits to clear.
        clear: u64,
    },
    /// Consecutive words.
    Range {
        /// First word.
        at: VirtAddr,
        /// The words.
        words: &'a [u64],
    },
    /// Bits of consecutive words. Each word is changed in one locked step, which leaves its other bits alone.
    ///
    /// Since version 2.
    Masks {
        /// First word.
        at: VirtAddr,
        /// Whether the bits are set; otherwise they are cleared.
        set: bool,
        /// The bits, word by word.
        masks: &'a [u64],
    },
    /// Consecutive bytes, which begin and end anywhere. Other threads may store to neighbouring bytes of these words.
    ///
    /// Since version 2.
    Bytes {
        /// First byte.
        at: VirtAddr,
        /// Number of bytes.
        len: u64,
        /// The words that hold them. The other bytes of these words mean nothing.
        words: &'a [u64],
    },
}

impl<'a> Record<'a> {
    /// Appends a record for words of one line and returns where its words start.
    #[inline]
    pub fn push_line(payload: &mut Vec<u64>, at: VirtAddr, mask: u8, words: &[u64; 8]) {
        payload.push(at.0 | LINE | (mask as u64) << MASK_SHIFT);
        if mask == 0xff {
            payload.extend_from_slice(words);
            return;
        }
        let mut rest = mask;
        while rest != 0 {
            payload.push(words[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
    }

    /// Appends a record for bits of one word.
    pub fn push_bits(payload: &mut Vec<u64>, at: VirtAddr, set: u64, clear: u64) {
        payload.extend_from_slice(&[at.0 | BITS, set, clear]);
    }

    /// Appends records that set or clear bits: words with bits, in ascending order, each once. A bit takes at most two
    /// words, or one if most words of a table have bits.
    pub fn push_masks(payload: &mut Vec<u64>, set: bool, words: &[(VirtAddr, u64)]) {
        let kind = if set { SET } else { CLEARED };
        let mut rest = words;
        while let Some(&(at, _)) = rest.first() {
            payload.push(0);
            let start = payload.len();
            let mut taken = 0;
            for &(word_at, mask) in rest {
                let before = ((word_at.0 - at.0) / 8) as usize;
                let skipped = before - (payload.len() - start);
                // A word without bits costs as much as a new record.
                if skipped > 1 || before >= MAX_MASKS {
                    break;
                }
                payload.resize(start + before, 0);
                payload.push(mask);
                taken += 1;
            }
            let count = (payload.len() - start) as u64;
            payload[start - 1] = at.0 | kind | count << MASK_SHIFT;
            rest = &rest[taken..];
        }
    }

    /// Appends a record for at most 65535 consecutive words.
    pub fn push_range(payload: &mut Vec<u64>, at: VirtAddr, words: &[u64]) {
        Self::push_zeros(payload, at, words.len()).copy_from_slice(words);
    }

    /// Appends a range of zeros and returns them, to be overwritten.
    pub fn push_zeros(payload: &mut Vec<u64>, at: VirtAddr, words: usize) -> &mut [u64] {
        assert!(words < 1 << 16);
        payload.push(at.0 | RANGE | (words as u64) << MASK_SHIFT);
        let start = payload.len();
        payload.resize(start + words, 0);
        &mut payload[start..]
    }

    /// Appends a record for `len` bytes from `at` on, 1 to [`MAX_RECORD_BYTES`], and returns the words that hold them:
    /// zeros, to be overwritten. The first one is the word that holds `at`.
    #[inline]
    pub fn push_bytes(payload: &mut Vec<u64>, at: VirtAddr, len: u64) -> &mut [u64] {
        assert!(len > 0 && len <= MAX_RECORD_BYTES);
        let lead = at.0 & KIND_MASK;
        payload.push((at.0 - lead) | BYTES | lead << MASK_SHIFT | len << LEN_SHIFT);
        let start = payload.len();
        payload.resize(start + words_that_hold(lead, len), 0);
        &mut payload[start..]
    }

    /// Takes the first record off `payload`; `None` if there is none, or if it makes no sense.
    #[inline]
    pub fn take(payload: &mut &'a [u64]) -> Option<Self> {
        let (&first, rest) = payload.split_first()?;
        let at = VirtAddr(first & ADDRESS_BITS & !KIND_MASK);
        let (record, rest) = match first & KIND_MASK {
            LINE => {
                let mask = (first >> MASK_SHIFT) as u8;
                let (words, rest) = rest.split_at_checked(mask.count_ones() as usize)?;
                (
                    Record::Line {
                        at: at.line_start(),
                        mask,
                        words,
                    },
                    rest,
                )
            }
            BITS => {
                let ([set, clear], rest) = rest.split_first_chunk()?;
                (
                    Record::Bits {
                        at,
                        set: *set,
                        clear: *clear,
                    },
                    rest,
                )
            }
            RANGE => {
                let (words, rest) = rest.split_at_checked((first >> MASK_SHIFT) as usize)?;
                (Record::Range { at, words }, rest)
            }
            BYTES => {
                let (lead, len) = (first >> MASK_SHIFT & KIND_MASK, first >> LEN_SHIFT);
                if len == 0 {
                    return None;
                }
                let (words, rest) = rest.split_at_checked(words_that_hold(lead, len))?;
                let at = at + lead;
                (Record::Bytes { at, len, words }, rest)
            }
            kind @ (SET | CLEARED) => {
                let (masks, rest) = rest.split_at_checked((first >> MASK_SHIFT) as usize)?;
                let set = kind == SET;
                (Record::Masks { at, set, masks }, rest)
            }
            _ => return None,
        };
        *payload = rest;
        Some(record)
    }

    /// First byte and length of the range that the record changes.
    #[inline]
    pub fn home(&self) -> (VirtAddr, u64) {
        match *self {
            Record::Line { at, .. } => (at, LINE_BYTES),
            Record::Bits { at, .. } => (at, 8),
            Record::Range { at, words } => (at, words.len() as u64 * 8),
            Record::Masks { at, masks, .. } => (at, masks.len() as u64 * 8),
            Record::Bytes { at, len, .. } => (at, len),
        }
    }
}

/// Words that hold `len` bytes, the first of which is byte `lead` of its word.
#[inline]
const fn words_that_hold(lead: u64, len: u64) -> usize {
    (lead + len).div_ceil(WORD_BYTES) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back() {
        let mut payload = Vec::new();
        Record::push_line(
            &mut payload,
            VirtAddr(0x1240),
            0b1000_0010,
            &[0, 11, 2, 3, 4, 5, 6, 77],
        );
        Record::push_bits(&mut payload, VirtAddr(0x48), 6, 1);
        Record::push_range(&mut payload, VirtAddr(0x100), &[1, 2, 3]);
        let mut rest = payload.as_slice();
        let line = Record::Line {
            at: VirtAddr(0x1240),
            mask: 0b1000_0010,
            words: &[11, 77],
        };
        assert_eq!(Record::take(&mut rest), Some(line));
        assert_eq!(
            Record::take(&mut rest),
            Some(Record::Bits {
                at: VirtAddr(0x48),
                set: 6,
                clear: 1
            })
        );
        assert_eq!(
            Record::take(&mut rest),
            Some(Record::Range {
                at: VirtAddr(0x100),
                words: &[1, 2, 3]
            })
        );
        assert_eq!(Record::take(&mut rest), None);
        assert!(rest.is_empty());
    }

    #[test]
    fn records_of_bytes_read_back() {
        for lead in 0..8 {
            for len in [
                1,
                2,
                3,
                7,
                8,
                9,
                17,
                4096,
                MAX_RECORD_BYTES - 1,
                MAX_RECORD_BYTES,
            ] {
                let at = VirtAddr(0x7fff_ffff_f008 + lead);
                let mut payload = Vec::new();
                let words = Record::push_bytes(&mut payload, at, len);
                assert_eq!(words.len() as u64, (lead + len).div_ceil(8));
                words.fill(0x0102_0304_0506_0708);
                let held = words.to_vec();
                let mut rest = payload.as_slice();
                let record = Record::take(&mut rest).unwrap();
                let words = held.as_slice();
                assert_eq!(record, Record::Bytes { at, len, words });
                assert_eq!(record.home(), (at, len));
                assert!(rest.is_empty());
                payload.pop();
                assert_eq!(Record::take(&mut payload.as_slice()), None, "cut off");
            }
        }
        assert_eq!(Record::take(&mut [0x1000 | BYTES].as_slice()), None, "none");
    }

    /// The payload is as version 1 wrote it, word by word.
    #[test]
    fn records_of_version_1_read_as_before() {
        let payload = [0x0003_0000_0000_1003, 1, 2, 3];
        let mut rest = payload.as_slice();
        let words = &payload[1..];
        let at = VirtAddr(0x1000);
        assert_eq!(Record::take(&mut rest), Some(Record::Range { at, words }));
        assert!(rest.is_empty());
    }

    /// The masks of a payload, word by word, without empty ones.
    fn masks_of(payload: &[u64]) -> Vec<(VirtAddr, bool, u64)> {
        let (mut rest, mut found) = (payload, Vec::new());
        while let Some(record) = Record::take(&mut rest) {
            let Record::Masks { at, set, masks } = record else {
                panic!("{record:?}");
            };
            assert_eq!(record.home(), (at, masks.len() as u64 * 8));
            let words = masks.iter().enumerate().filter(|(_, mask)| **mask != 0);
            found.extend(words.map(|(i, &mask)| (at + i as u64 * 8, set, mask)));
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn masks_read_back_and_take_two_words_a_bit_at_most() {
        for (step, words) in [
            (1, 1),
            (1, 300_000),
            (2, 1000),
            (3, 1000),
            (4, 1000),
            (512, 99),
        ] {
            let bits = |i: u64| (VirtAddr(0xe0_0000 + i * step * 8), 1 << (i % 64));
            let wanted: Vec<_> = (0..words).map(bits).collect();
            for set in [true, false] {
                let mut payload = Vec::new();
                Record::push_masks(&mut payload, set, &wanted);
                let read = masks_of(&payload);
                assert!(
                    read.iter()
                        .map(|&(at, _, mask)| (at, mask))
                        .eq(wanted.iter().copied())
                );
                assert!(read.iter().all(|&(_, of, _)| of == set));
                assert!(
                    payload.len() as u64 <= 2 * words,
                    "{step}: {}",
                    payload.len()
                );
                if step == 1 {
                    assert!(payload.len() as u64 <= words + words.div_ceil(60_000));
                }
                let cut = &mut &payload[..1];
                assert_eq!(Record::take(cut), None);
            }
        }
    }

    #[test]
    fn the_checksum_covers_header_and_payload() {
        let header = EntryHeader {
            lsn: 5,
            watermark: 3,
            payload_words: 2,
            extents: 0,
            checksum: 0,
        };
        let good = header.checksum(b"0123456789abcdef");
        assert_ne!(
            good,
            EntryHeader { lsn: 6, ..header }.checksum(b"0123456789abcdef")
        );
        assert_ne!(
            good,
            EntryHeader {
                watermark: 4,
                ..header
            }
            .checksum(b"0123456789abcdef")
        );
        assert_ne!(
            good,
            EntryHeader {
                payload_words: 1,
                ..header
            }
            .checksum(b"0123456789abcdef")
        );
        assert_ne!(good, header.checksum(b"0123456789abcdeF"));
    }
}
