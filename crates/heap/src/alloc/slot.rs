//! Where objects lie: the slot and run that an address names.

use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::Frame;
use firn_media::Medium;
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

use crate::error::Error;

/// Place of an object, allocated or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    /// Where the header lies.
    pub(crate) at: VirtAddr,
    /// Bytes of the slot, header included.
    pub(crate) bytes: u64,
    /// The slot's place in its run.
    pub(crate) place: Place,
}

/// A slot of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// First frame of the run.
    pub(crate) frame: Frame,
    /// Number of the slot; zero for large objects.
    pub(crate) index: u64,
    /// The class; `None` for large objects.
    pub(crate) class: Option<Class>,
}

impl Place {
    pub(crate) fn bit(self) -> (u64, u64) {
        (self.index / 64, 1 << (self.index % 64))
    }

    /// Where the slot's allocation bit lies on media.
    pub(crate) fn bitmap_word_at(self) -> VirtAddr {
        self.frame.bitmap_at() + self.index / 64 * WORD_BYTES
    }

    /// Index in statistics by class; the last is for large objects.
    pub(crate) fn class_index(self) -> usize {
        self.class.map_or(CLASSES, Class::index)
    }
}

/// Frames of the run that starts here.
pub(super) fn run_frames<M: Medium>(medium: &M, frame: Frame) -> u64 {
    let at = frame.word_at();
    FrameUse::from_word(medium.load_u64(at), at).map_or(1, FrameUse::frames)
}

/// The first frame of the run in which a byte lies, and its use; `None` if the byte lies in no run.
///
/// Errors: the frame table is damaged.
fn run_holding<M: Medium>(medium: &M, at: VirtAddr) -> Result<Option<(Frame, FrameUse)>, Error> {
    let frame = Frame::holding(at);
    let what = FrameUse::from_word(medium.load_u64(frame.word_at()), frame.word_at())?;
    let FrameUse::Tail { back } = what else {
        return Ok(Some((frame, what)));
    };
    let first = frame.0.checked_sub(back).map(Frame);
    let Some(frame) = first.filter(|first| first.chunk().is_data()) else {
        return Ok(None);
    };
    let what = FrameUse::from_word(medium.load_u64(frame.word_at()), frame.word_at())?;
    Ok(Some((frame, what)))
}

/// The end of the slot in which a byte of the pool's data lies, allocated or not; `None` for a byte in no slot.
pub(crate) fn end_of_slot<M: Medium>(medium: &M, at: VirtAddr) -> Option<VirtAddr> {
    let (frame, what) = run_holding(medium, at).ok()??;
    let len = match what {
        FrameUse::Slots(class) => {
            let index = class.slot_of(at - frame.start());
            (index < class.slots()).then(|| (index + 1) * class.slot_bytes())
        }
        FrameUse::Large { frames } => Some(frames * FRAME_BYTES),
        _ => None,
    };
    len.map(|len| frame.start() + len)
}

/// The slot whose object's header lies at `at`. Reads only media, so it also serves pools that are only inspected.
pub(crate) fn locate<M: Medium>(medium: &M, at: VirtAddr) -> Result<Slot, Error> {
    let nothing = || Error::NotAllocated { at: at.0 };
    if at.0 >= medium.len() || !at.0.is_multiple_of(16) || !Frame::holding(at).chunk().is_data() {
        return Err(nothing());
    }
    let (frame, what) = run_holding(medium, at)?.ok_or_else(nothing)?;
    let offset = at - frame.start();
    match what {
        FrameUse::Slots(class) => {
            let index = class.slot_of(offset);
            if index >= class.slots() || index * class.slot_bytes() != offset {
                return Err(nothing());
            }
            let place = Place {
                frame,
                index,
                class: Some(class),
            };
            Ok(Slot {
                at,
                bytes: class.slot_bytes(),
                place,
            })
        }
        FrameUse::Large { frames } if offset == 0 => {
            let place = Place {
                frame,
                index: 0,
                class: None,
            };
            Ok(Slot {
                at,
                bytes: frames * FRAME_BYTES,
                place,
            })
        }
        _ => Err(nothing()),
    }
}
