//! Size classes.
//!
//! Slots of up to `FINE_MAX_BYTES` come in steps of [`GRAIN_BYTES`], with one frame per run. Above, there are `STEPS`
//! classes per doubling up to [`MAX_SLOT_BYTES`], in runs of several frames: rounding wastes at most 1/17, a run's tail
//! at most 1/16. Objects above the last class take whole frames.

use firn_units::FRAME_BYTES;

/// Number of slot classes.
pub const CLASSES: usize = 128;
/// Largest slot, in bytes.
pub const MAX_SLOT_BYTES: u64 = 32 << 10;
/// Step of the small classes, and the alignment of every object, in bytes.
pub const GRAIN_BYTES: u64 = 16;
/// Largest slot of the small classes.
const FINE_MAX_BYTES: u64 = 512;
/// Number of small classes.
const FINE_CLASSES: usize = (FINE_MAX_BYTES / GRAIN_BYTES) as usize;
/// Classes per doubling above the small ones.
const STEPS: u64 = 16;
/// Most slots of a run: the bits of a frame's bitmap.
pub const MAX_SLOTS: u64 = 256;

/// A size class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Class(u8);

struct Shape {
    slot_bytes: u32,
    frames: u16,
    slots: u16,
    /// 2^32 / slot_bytes, rounded up: turns a division by the slot size into a multiplication.
    reciprocal: u32,
}

const fn slot_bytes_of(index: usize) -> u64 {
    if index < FINE_CLASSES {
        (index as u64 + 1) * GRAIN_BYTES
    } else {
        let above = (index - FINE_CLASSES) as u64;
        let base = FINE_MAX_BYTES << (above / STEPS);
        base + base / STEPS * (above % STEPS + 1)
    }
}

const fn shape_of(index: usize) -> Shape {
    let slot = slot_bytes_of(index);
    let mut frames = 1;
    if index >= FINE_CLASSES {
        loop {
            let bytes = frames * FRAME_BYTES;
            if bytes >= slot && (bytes % slot) * 16 <= bytes {
                break;
            }
            frames += 1;
        }
    }
    let slots = frames * FRAME_BYTES / slot;
    assert!(slots >= 1 && slots <= MAX_SLOTS);
    Shape {
        slot_bytes: slot as u32,
        frames: frames as u16,
        slots: slots as u16,
        reciprocal: ((1u64 << 32) / slot + 1) as u32,
    }
}

static SHAPES: [Shape; CLASSES] = {
    let mut shapes = [const {
        Shape {
            slot_bytes: 0,
            frames: 0,
            slots: 0,
            reciprocal: 0,
        }
    }; CLASSES];
    let mut i = 0;
    while i < CLASSES {
        shapes[i] = shape_of(i);
        i += 1;
    }
    shapes
};

const _: () = assert!(slot_bytes_of(CLASSES - 1) == MAX_SLOT_BYTES);

impl Class {
    /// The smallest class whose slot holds `bytes`, header included; `None` above the last class.
    #[inline]
    pub const fn for_bytes(bytes: u64) -> Option<Self> {
        if bytes <= FINE_MAX_BYTES {
            let grains = if bytes == 0 {
                1
            } else {
                bytes.div_ceil(GRAIN_BYTES)
            };
            return Some(Self((grains - 1) as u8));
        }
        if bytes > MAX_SLOT_BYTES {
            return None;
        }
        let doublings = (bytes - 1).ilog2() - FINE_MAX_BYTES.ilog2();
        let base = FINE_MAX_BYTES << doublings;
        let step = (bytes - 1 - base) / (base / STEPS);
        Some(Self(
            (FINE_CLASSES as u64 + doublings as u64 * STEPS + step) as u8,
        ))
    }

    /// The class with this index, if there is one.
    #[inline]
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < CLASSES {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// The index, below [`CLASSES`].
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize & (CLASSES - 1)
    }

    /// Bytes of a slot, header included.
    #[inline(always)]
    pub fn slot_bytes(self) -> u64 {
        u64::from(SHAPES[self.index()].slot_bytes)
    }

    /// Frames of a run.
    #[inline(always)]
    pub fn frames(self) -> u64 {
        u64::from(SHAPES[self.index()].frames)
    }

    /// Slots of a run.
    #[inline(always)]
    pub fn slots(self) -> u64 {
        u64::from(SHAPES[self.index()].slots)
    }

    /// The slot that holds the byte `offset` of a run. May be one too high for offsets in the tail.
    #[inline(always)]
    pub fn slot_of(self, offset: u64) -> u64 {
        (offset * u64::from(SHAPES[self.index()].reciprocal)) >> 32
    }

    /// Whether a slot begins `offset` bytes after the start of a run, a multiple of [`GRAIN_BYTES`], and lies entirely
    /// in the run's first frame.
    #[inline(always)]
    pub fn starts_in_first_frame(self, offset: u64) -> bool {
        let grain = offset / GRAIN_BYTES;
        let starts = STARTS[self.index()][(grain / WORD_BITS) as usize % FRAME_WORDS];
        starts >> (grain % WORD_BITS) & 1 != 0
    }

    /// All classes, smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CLASSES).map(|i| Self(i as u8))
    }
}

const WORD_BITS: u64 = u64::BITS as u64;
/// Words that hold one bit for each grain of a frame.
const FRAME_WORDS: usize = (FRAME_BYTES / GRAIN_BYTES / WORD_BITS) as usize;

/// For each class, a bit for each grain of a run's first frame at which a slot begins that also ends in that frame.
static STARTS: [[u64; FRAME_WORDS]; CLASSES] = {
    let mut starts = [[0; FRAME_WORDS]; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let slot = slot_bytes_of(class);
        let mut offset = 0;
        while offset + slot <= FRAME_BYTES {
            let grain = offset / GRAIN_BYTES;
            starts[class][(grain / WORD_BITS) as usize] |= 1 << (grain % WORD_BITS);
            offset += slot;
        }
        class += 1;
    }
    starts
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_fitting_class_is_chosen() {
        for bytes in 1..=MAX_SLOT_BYTES {
            let class = Class::for_bytes(bytes).unwrap();
            assert!(class.slot_bytes() >= bytes);
            if class.index() > 0 {
                assert!(Class(class.0 - 1).slot_bytes() < bytes, "{bytes}");
            }
        }
        assert_eq!(Class::for_bytes(MAX_SLOT_BYTES + 1), None);
    }

    #[test]
    fn waste_stays_within_an_eighth() {
        for bytes in 520..=MAX_SLOT_BYTES {
            let class = Class::for_bytes(bytes).unwrap();
            let run = class.frames() * FRAME_BYTES;
            let used = class.slots() * bytes;
            assert!(run - used <= run / 8, "{bytes}: {used} of {run}");
        }
    }

    #[test]
    fn slots_of_a_first_frame_start_where_they_are() {
        for class in Class::all() {
            for offset in (0..FRAME_BYTES).step_by(GRAIN_BYTES as usize) {
                let slot = class.slot_of(offset);
                let is_start = slot * class.slot_bytes() == offset;
                let ends = offset + class.slot_bytes() <= FRAME_BYTES;
                assert_eq!(class.starts_in_first_frame(offset), is_start && ends);
            }
        }
    }

    #[test]
    fn slot_of_divides() {
        for class in Class::all() {
            for slot in 0..class.slots() {
                let start = slot * class.slot_bytes();
                assert_eq!(class.slot_of(start), slot);
                assert_eq!(class.slot_of(start + class.slot_bytes() - 1), slot);
            }
        }
    }
}
