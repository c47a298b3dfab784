//! The collector's plan: the forwarding table of a cycle and the settled words of its units.
//!
//! ```text
//! line 0    header: entries, units, scheme, checksum
//! line 1..  one line per entry: a source run, its survivors' destinations, which slots survive
//! then      one word per unit: one once the copy counts and the source no longer does
//! ```
//! The survivors of a run move, in the order of their slots, to consecutive slots of one destination run, and from the
//! split on to a second one (FFCCD section 4.3.1 has only one destination page, and stalls if two sparse pages do not
//! fit into one). So a slot's destination follows from its rank among the survivors. An entry takes a line for 4 KiB,
//! where the paper's table takes 259 bytes.
//!
//! The last word of the header names the previous plan among those of retained cycles.
//!
//! The phase word says whether a plan counts and where it lies; it becomes durable last.

use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES, round_up};
use xxhash_rust::xxh3::Xxh3;

use crate::class::{CLASSES, Class, MAX_SLOTS};
use crate::geometry::{BITMAP_WORDS, Frame};
use crate::{FormatError, checksum};

/// Words of the header, and of an entry.
pub const ENTRY_WORDS: usize = (LINE_BYTES / WORD_BYTES) as usize;
/// Most entries of a plan.
pub const MAX_ENTRIES: u64 = 1 << 24;
/// Most units of a plan.
pub const MAX_UNITS: u64 = 1 << 28;

const FRAME_BITS: u32 = 40;
const FRAME_MASK: u64 = (1 << FRAME_BITS) - 1;
const LARGE: u64 = CLASSES as u64;
const SEED: u64 = 0x6669_726e_706c_616e;

/// The collector's phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No plan counts.
    Idle,
    /// Objects move by the plan that begins at this frame.
    Active(Frame),
    /// Every object of the plan has moved and no reference names its source any more; the source
    /// runs are being freed.
    Release(Frame),
}

impl Phase {
    /// The value that the phase word seals.
    pub const fn to_value(self) -> u64 {
        match self {
            Phase::Idle => 0,
            Phase::Active(plan) => 1 | plan.0 << 4,
            Phase::Release(plan) => 2 | plan.0 << 4,
        }
    }

    /// Reads a sealed value found at `at`.
    pub fn from_value(value: u64, at: VirtAddr) -> Result<Self, FormatError> {
        let plan = Frame(value >> 4);
        match value & 0xf {
            0 => Ok(Phase::Idle),
            1 => Ok(Phase::Active(plan)),
            2 => Ok(Phase::Release(plan)),
            _ => Err(FormatError::Range {
                what: "the collector's phase",
                at: at.bytes(),
                found: value,
            }),
        }
    }
}

/// The first line of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanHeader {
    /// Entries.
    pub entries: u64,
    /// Units: objects that move.
    pub units: u64,
    /// Number of the relocation scheme.
    pub scheme: u64,
    /// Checksum of all entries.
    pub checksum: u64,
}

impl PlanHeader {
    /// The words on media.
    pub fn to_words(self) -> [u64; ENTRY_WORDS] {
        let mut words = [0; ENTRY_WORDS];
        words[..4].copy_from_slice(&[self.entries, self.units, self.scheme, self.checksum]);
        words[4] = checksum(bytemuck::cast_slice(&words[..4]), SEED);
        words
    }

    /// Reads the header of the plan at `at`.
    pub fn from_words(words: &[u64; ENTRY_WORDS], at: VirtAddr) -> Result<Self, FormatError> {
        let header = Self {
            entries: words[0],
            units: words[1],
            scheme: words[2],
            checksum: words[3],
        };
        let sound = words[4] == checksum(bytemuck::cast_slice(&words[..4]), SEED);
        if !sound || header.entries > MAX_ENTRIES || header.units > MAX_UNITS {
            return Err(FormatError::Checksum {
                what: "the collector's plan",
                at: at.bytes(),
            });
        }
        Ok(header)
    }

    /// Frames that the plan takes.
    pub const fn frames(&self) -> u64 {
        let bytes = (1 + self.entries) * LINE_BYTES + self.units * WORD_BYTES;
        bytes.div_ceil(FRAME_BYTES)
    }

    /// The address of entry `index` of the plan at `plan`.
    pub const fn entry_at(plan: Frame, index: u64) -> VirtAddr {
        VirtAddr(plan.start().0 + (1 + index) * LINE_BYTES)
    }

    /// The address at which the plan at `plan` names the previous retained cycle's plan, by its first frame; zero means
    /// none.
    pub const fn before_at(plan: Frame) -> VirtAddr {
        VirtAddr(plan.start().0 + LINE_BYTES - WORD_BYTES)
    }

    /// Frames of the plan that hold entries, without those that hold only settled words.
    pub const fn entry_frames(&self) -> u64 {
        ((1 + self.entries) * LINE_BYTES).div_ceil(FRAME_BYTES)
    }

    /// The address of the first settled word.
    pub const fn settled_at(&self, plan: Frame) -> VirtAddr {
        Self::entry_at(plan, self.entries)
    }
}

/// The checksum over the words of all entries, computed piece by piece.
pub struct EntriesChecksum(Xxh3);

impl Default for EntriesChecksum {
    fn default() -> Self {
        Self(Xxh3::with_seed(SEED))
    }
}

impl EntriesChecksum {
    /// Adds the words of the next entries.
    pub fn update(&mut self, words: &[u64]) {
        self.0.update(bytemuck::cast_slice(words));
    }

    /// The checksum of all words added.
    pub fn value(&self) -> u64 {
        self.0.digest()
    }
}

/// The checksum over the words of all entries.
pub fn entries_checksum(words: &[u64]) -> u64 {
    checksum(bytemuck::cast_slice(words), SEED)
}

/// One source run of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// First frame of the source run.
    pub source: Frame,
    /// Class of source and destinations; `None` for a large object.
    pub class: Option<Class>,
    /// Run to which the first survivors move.
    pub first: Frame,
    /// Slot there of the first survivor.
    pub first_slot: u64,
    /// Number of survivors that move there; the others fill the second run from its start. For a large object, the
    /// frames of its run.
    pub split: u64,
    /// Run to which the survivors from the split on move.
    pub second: Frame,
    /// Unit of the first survivor; the others' units follow.
    pub unit: u64,
    /// Bit i: slot i survives.
    pub survivors: [u64; BITMAP_WORDS as usize],
}

impl Entry {
    /// The words on media.
    pub fn to_words(&self) -> [u64; ENTRY_WORDS] {
        let class = self.class.map_or(LARGE, |c| c.index() as u64);
        let mut words = [
            self.source.0 | class << FRAME_BITS,
            self.first.0 | self.first_slot << FRAME_BITS,
            self.second.0 | self.split << FRAME_BITS,
            self.unit,
            0,
            0,
            0,
            0,
        ];
        words[4..].copy_from_slice(&self.survivors);
        words
    }

    /// Reads the entry at `at`, whose checksum was verified.
    pub fn from_words(words: &[u64; ENTRY_WORDS], at: VirtAddr) -> Result<Self, FormatError> {
        let range = || FormatError::Range {
            what: "an entry of the collector's plan",
            at: at.bytes(),
            found: words[0],
        };
        let class = match words[0] >> FRAME_BITS {
            LARGE => None,
            index => Some(Class::from_index(index as usize).ok_or_else(range)?),
        };
        let entry = Self {
            source: Frame(words[0] & FRAME_MASK),
            class,
            first: Frame(words[1] & FRAME_MASK),
            first_slot: words[1] >> FRAME_BITS,
            split: words[2] >> FRAME_BITS,
            second: Frame(words[2] & FRAME_MASK),
            unit: words[3],
            survivors: [words[4], words[5], words[6], words[7]],
        };
        if entry.first_slot > MAX_SLOTS || entry.split > MAX_SLOTS || entry.unit > MAX_UNITS {
            return Err(range());
        }
        Ok(entry)
    }

    /// The number of surviving slots.
    #[inline]
    pub fn count(&self) -> u64 {
        self.survivors
            .iter()
            .map(|w| u64::from(w.count_ones()))
            .sum()
    }

    /// The number of survivors below `slot`, if `slot` survives.
    #[inline]
    pub fn rank(&self, slot: u64) -> Option<u64> {
        let (word, bit) = (slot as usize / 64, slot % 64);
        if *self.survivors.get(word)? >> bit & 1 == 0 {
            return None;
        }
        let below = u64::from((self.survivors[word] & ((1 << bit) - 1)).count_ones());
        Some(
            self.survivors[..word]
                .iter()
                .map(|w| u64::from(w.count_ones()))
                .sum::<u64>()
                + below,
        )
    }

    /// The slot whose rank is `rank`.
    pub fn slot_of_rank(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        for (word, &bits) in self.survivors.iter().enumerate() {
            let here = u64::from(bits.count_ones());
            if left < here {
                let mut bits = bits;
                for _ in 0..left {
                    bits &= bits - 1;
                }
                return Some(word as u64 * 64 + u64::from(bits.trailing_zeros()));
            }
            left -= here;
        }
        None
    }

    /// The surviving slots, in ascending order.
    pub fn slots(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.survivors.iter().enumerate().flat_map(|(word, &bits)| {
            let mut left = bits;
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| u64::from(left.trailing_zeros()))?;
                left &= left - 1;
                Some(word as u64 * 64 + bit)
            })
        })
    }

    /// Run and slot to which the survivor of this rank moves.
    #[inline]
    pub fn destination(&self, rank: u64) -> (Frame, u64) {
        if rank < self.split {
            (self.first, self.first_slot + rank)
        } else {
            (self.second, rank - self.split)
        }
    }
}

/// Bytes of a plan, in whole frames.
pub const fn plan_bytes(entries: u64, units: u64) -> u64 {
    round_up((1 + entries) * LINE_BYTES + units * WORD_BYTES, FRAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            source: Frame(4000),
            class: Class::from_index(8),
            first: Frame(7777),
            first_slot: 25,
            split: 3,
            second: Frame(7778),
            unit: 99,
            survivors: [0b1011_0010, 0, 1 << 63, 0],
        }
    }

    #[test]
    fn entries_read_back() {
        let e = entry();
        assert_eq!(Entry::from_words(&e.to_words(), VirtAddr(0)), Ok(e));
        let large = Entry { class: None, ..e };
        assert_eq!(Entry::from_words(&large.to_words(), VirtAddr(0)), Ok(large));
    }

    #[test]
    fn ranks_and_slots_are_inverse() {
        let e = entry();
        assert_eq!(e.count(), 5);
        for rank in 0..5 {
            let slot = e.slot_of_rank(rank).unwrap();
            assert_eq!(e.rank(slot), Some(rank));
        }
        assert_eq!(e.slot_of_rank(5), None);
        assert_eq!(e.rank(0), None);
        assert_eq!(e.rank(300), None);
        assert_eq!(e.destination(2), (Frame(7777), 27));
        assert_eq!(e.destination(3), (Frame(7778), 0));
    }

    #[test]
    fn a_damaged_header_is_noticed() {
        let header = PlanHeader {
            entries: 3,
            units: 40,
            scheme: 2,
            checksum: 5,
        };
        let mut words = header.to_words();
        assert_eq!(PlanHeader::from_words(&words, VirtAddr(0)), Ok(header));
        words[1] += 1;
        assert!(PlanHeader::from_words(&words, VirtAddr(0)).is_err());
    }

    #[test]
    fn phases_read_back() {
        for phase in [
            Phase::Idle,
            Phase::Active(Frame(12)),
            Phase::Release(Frame(1 << 30)),
        ] {
            assert_eq!(Phase::from_value(phase.to_value(), VirtAddr(0)), Ok(phase));
        }
        assert!(Phase::from_value(7, VirtAddr(0)).is_err());
    }
}
