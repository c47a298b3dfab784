//! Frame words: the use of each frame.

use firn_units::VirtAddr;

use crate::FormatError;
use crate::class::{CLASSES, Class};
use crate::sealed::Seal;

/// The use of a frame. A free frame's word is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameUse {
    /// Nothing.
    Free,
    /// First frame of a run of slots.
    Slots(Class),
    /// First frame of an object of its own.
    Large {
        /// Frames of the object.
        frames: u64,
    },
    /// Part of a lane's overflow. Holds no object, and is free once the pool is reopened.
    Log,
    /// Part of the collector's plan. Holds no object, and is free while no cycle is open.
    Plan,
    /// Address space of a retained cycle, which old references may still name: the frames that it emptied, and its
    /// plan. Holds no object, and is free once no such plan names it.
    Kept,
    /// A later frame of a run or of a large object.
    Tail {
        /// Distance to the first frame.
        back: u64,
    },
}

const KIND_BITS: u32 = 4;
/// Bit of a kind: the run is a destination of the open cycle; it is free if no cycle is open.
const RESERVED: u64 = 8;
const SLOTS: u64 = 1;
const LARGE: u64 = 2;
const LOG: u64 = 3;
const TAIL: u64 = 4;
const PLAN: u64 = 5;
const KEPT: u64 = 6;
/// Most frames of an object.
pub const MAX_FRAMES: u64 = 1 << 32;

/// The words of runs, by class.
static RUNS: [u64; CLASSES] = {
    let mut words = [0; CLASSES];
    let mut index = 0;
    while index < CLASSES {
        if let Some(class) = Class::from_index(index) {
            words[index] = FrameUse::Slots(class).to_word();
        }
        index += 1;
    }
    words
};

/// The precomputed word of a run of this class. Comparing a word with it tells as much as decoding the word, and takes
/// one load.
#[inline(always)]
pub fn run_word(class: Class) -> u64 {
    RUNS[class.index()]
}

/// The class of the run that has this word; `None` for any other word. Takes one load, like a comparison with
/// [`run_word`].
#[inline(always)]
pub fn class_of_run(word: u64) -> Option<Class> {
    let class = Class::from_index((word >> KIND_BITS) as usize & (CLASSES - 1))?;
    (word == run_word(class)).then_some(class)
}

impl FrameUse {
    /// The word on media.
    pub const fn to_word(self) -> u64 {
        self.word_with(0)
    }

    /// The word of the first frame of a run that a cycle of the collector fills. The run counts only while that cycle
    /// is open.
    pub fn to_reserved_word(self) -> u64 {
        self.word_with(RESERVED)
    }

    /// Whether this word, which is sound, belongs to a run that a cycle fills.
    pub fn is_reserved(word: u64) -> bool {
        word & RESERVED != 0
    }

    const fn word_with(self, flag: u64) -> u64 {
        let (kind, operand) = match self {
            FrameUse::Free => return 0,
            FrameUse::Slots(class) => (SLOTS, class.index() as u64),
            FrameUse::Large { frames } => (LARGE, frames),
            FrameUse::Log => (LOG, 0),
            FrameUse::Plan => (PLAN, 0),
            FrameUse::Kept => (KEPT, 0),
            FrameUse::Tail { back } => (TAIL, back),
        };
        Seal::Frame.seal(kind | flag | (operand << KIND_BITS))
    }

    /// Reads the word found at `at`.
    #[inline]
    pub fn from_word(word: u64, at: VirtAddr) -> Result<Self, FormatError> {
        if word == 0 {
            return Ok(FrameUse::Free);
        }
        let value = Seal::Frame.open_at(word, at)?;
        let operand = value >> KIND_BITS;
        let range = || FormatError::Range {
            what: "a frame word",
            at: at.bytes(),
            found: word,
        };
        let long = |frames| {
            if (1..=MAX_FRAMES).contains(&frames) {
                Ok(frames)
            } else {
                Err(range())
            }
        };
        match value & ((1 << KIND_BITS) - 1) & !RESERVED {
            SLOTS => Class::from_index(operand as usize)
                .map(FrameUse::Slots)
                .ok_or_else(range),
            LARGE => Ok(FrameUse::Large {
                frames: long(operand)?,
            }),
            LOG => Ok(FrameUse::Log),
            PLAN => Ok(FrameUse::Plan),
            KEPT => Ok(FrameUse::Kept),
            TAIL => Ok(FrameUse::Tail {
                back: long(operand)?,
            }),
            _ => Err(range()),
        }
    }

    /// Frames that this first frame stands for.
    pub fn frames(self) -> u64 {
        match self {
            FrameUse::Slots(class) => class.frames(),
            FrameUse::Large { frames } => frames,
            FrameUse::Free
            | FrameUse::Log
            | FrameUse::Plan
            | FrameUse::Kept
            | FrameUse::Tail { .. } => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        let uses = [
            FrameUse::Free,
            FrameUse::Slots(Class::for_bytes(144).unwrap()),
            FrameUse::Large { frames: 17 },
            FrameUse::Log,
            FrameUse::Plan,
            FrameUse::Kept,
            FrameUse::Tail { back: 16 },
        ];
        for u in uses {
            assert_eq!(FrameUse::from_word(u.to_word(), VirtAddr(0)), Ok(u));
        }
    }

    #[test]
    fn the_words_of_runs_are_theirs() {
        for class in (0..CLASSES).filter_map(Class::from_index) {
            let run = FrameUse::Slots(class);
            assert_eq!(FrameUse::from_word(run_word(class), VirtAddr(0)), Ok(run));
            assert_ne!(run_word(class), run.to_reserved_word());
        }
    }

    #[test]
    fn a_reserved_run_says_so() {
        let run = FrameUse::Slots(Class::for_bytes(144).unwrap());
        let reserved = run.to_reserved_word();
        assert_eq!(FrameUse::from_word(reserved, VirtAddr(0)), Ok(run));
        assert!(FrameUse::is_reserved(reserved) && !FrameUse::is_reserved(run.to_word()));
    }

    #[test]
    fn a_flipped_bit_is_an_error() {
        let word = FrameUse::Large { frames: 5 }.to_word();
        for bit in 0..64 {
            assert!(
                FrameUse::from_word(word ^ (1 << bit), VirtAddr(8)).is_err(),
                "bit {bit}"
            );
        }
    }
}
