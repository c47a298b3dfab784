//! The walk over a pool's tables: every run, and every allocated object, by address.

use firn_format::FormatError;
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame};
use firn_format::header::ObjectHeader;
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, VirtAddr};

use crate::alloc::{Place, Slot};
use crate::finding::Finding;
use crate::relocation::Part;
use crate::relocation::cycle::Cycle;

/// The chunks that may hold objects.
pub(crate) fn data_chunks(len: u64) -> impl Iterator<Item = Chunk> {
    (0..len / CHUNK_BYTES)
        .map(Chunk)
        .filter(|chunk| chunk.is_data())
}

/// Slots of a run; one for a large object.
pub(crate) fn slots(what: FrameUse) -> u64 {
    match what {
        FrameUse::Slots(class) => class.slots(),
        _ => 1,
    }
}

/// Bytes of a slot of a run.
pub(crate) fn slot_bytes(what: FrameUse) -> u64 {
    match what {
        FrameUse::Slots(class) => class.slot_bytes(),
        other => other.frames() * FRAME_BYTES,
    }
}

/// Where a slot of a run begins.
pub(crate) fn slot_at(frame: Frame, what: FrameUse, slot: u64) -> VirtAddr {
    frame.start() + slot * slot_bytes(what)
}

/// Every run that holds objects, in ascending order, or the defects of the tables.
pub(crate) fn runs<M: Medium>(medium: &M) -> Result<Vec<(Frame, FrameUse)>, Vec<Finding>> {
    let mut runs = Vec::new();
    let mut findings = Vec::new();
    let mut expect: u64 = 0;
    let mut head = Frame(0);
    for chunk in data_chunks(medium.len()) {
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            let at = frame.word_at();
            let mut find = |what: &str| {
                findings.push(Finding {
                    at: at.0,
                    what: what.into(),
                })
            };
            let what = match FrameUse::from_word(medium.load_u64(at), at) {
                Ok(what) => what,
                Err(error) => {
                    find(&error.to_string());
                    continue;
                }
            };
            match what {
                FrameUse::Tail { back } if expect > 0 => {
                    if frame.0 - head.0 != back {
                        find("a tail frame does not belong to the run before it");
                    }
                    expect -= 1;
                }
                FrameUse::Tail { .. } => find("a tail frame without a run"),
                _ if expect > 0 => {
                    find("a run ends early");
                    expect = 0;
                }
                FrameUse::Free | FrameUse::Log | FrameUse::Plan | FrameUse::Kept => {}
                FrameUse::Slots(_) | FrameUse::Large { .. } => {
                    (expect, head) = (what.frames() - 1, frame);
                    runs.push((frame, what));
                }
            }
        }
    }
    if findings.is_empty() {
        Ok(runs)
    } else {
        Err(findings)
    }
}

/// Every allocated object of a pool whose allocation bits on media are valid, by address. Runs that come or go
/// meanwhile may or may not be seen.
///
/// `cycle` is the one that is open or being released: its objects count once, at their destinations. Other reserved
/// runs belong to a plan that does not count yet.
///
/// Errors: a frame word is damaged.
pub(crate) fn each_allocated<M: Medium>(
    medium: &M,
    cycle: Option<&Cycle<M>>,
    mut visit: impl FnMut(Slot, ObjectHeader),
) -> Result<(), FormatError> {
    for chunk in data_chunks(medium.len()) {
        each_allocated_in(medium, chunk, cycle, &mut visit)?;
    }
    Ok(())
}

/// Every allocated object of the runs that begin in one chunk.
pub(crate) fn each_allocated_in<M: Medium>(
    medium: &M,
    chunk: Chunk,
    cycle: Option<&Cycle<M>>,
    visit: &mut impl FnMut(Slot, ObjectHeader),
) -> Result<(), FormatError> {
    for i in 0..FRAMES_PER_CHUNK {
        let frame = chunk.first_frame().plus(i);
        let Some(what) = counted_run(medium, cycle, frame)? else {
            continue;
        };
        for index in 0..slots(what) {
            if let Some(slot) = allocated_slot(medium, frame, what, index) {
                let content = cycle.map_or(slot.at, |cycle| cycle.content(medium, slot.at));
                let header = ObjectHeader(medium.load_u64(content));
                visit(slot, header);
            }
        }
    }
    Ok(())
}

/// The first allocated object that begins behind `after`, by address; see [`each_allocated`].
///
/// Errors: a frame word is damaged.
pub(crate) fn next_allocated<M: Medium>(
    medium: &M,
    cycle: Option<&Cycle<M>>,
    after: VirtAddr,
) -> Result<Option<Slot>, FormatError> {
    let mut frame = Frame::holding(after);
    let word = frame.word_at();
    // From the middle of a run, the run's first frame leads on.
    if frame.chunk().is_data()
        && after.0 < medium.len()
        && let FrameUse::Tail { back } = FrameUse::from_word(medium.load_u64(word), word)?
    {
        frame = Frame(frame.0.saturating_sub(back));
    }
    while frame.start().0 < medium.len() {
        if !frame.chunk().is_data() {
            frame = Chunk(frame.chunk().0 + 1).first_frame();
            continue;
        }
        let Some(what) = counted_run(medium, cycle, frame)? else {
            frame = frame.plus(1);
            continue;
        };
        let passed = after.0.checked_sub(frame.start().0);
        let first = passed.map_or(0, |offset| offset / slot_bytes(what) + 1);
        let found = (first..slots(what)).find_map(|i| allocated_slot(medium, frame, what, i));
        if found.is_some() {
            return Ok(found);
        }
        frame = frame.plus(what.frames());
    }
    Ok(None)
}

/// The run that begins with a frame, if its objects count.
fn counted_run<M: Medium>(
    medium: &M,
    cycle: Option<&Cycle<M>>,
    frame: Frame,
) -> Result<Option<FrameUse>, FormatError> {
    let word = medium.load_u64(frame.word_at());
    let what = FrameUse::from_word(word, frame.word_at())?;
    if !matches!(what, FrameUse::Slots(_) | FrameUse::Large { .. }) {
        return Ok(None);
    }
    let counts = match cycle.and_then(|cycle| cycle.part(frame)) {
        Some(Part::Source(_)) => false,
        Some(Part::Destination(_)) => true,
        None => !FrameUse::is_reserved(word),
    };
    Ok(counts.then_some(what))
}

/// A slot of a run, if an object is allocated there on media.
fn allocated_slot<M: Medium>(medium: &M, frame: Frame, what: FrameUse, index: u64) -> Option<Slot> {
    let class = match what {
        FrameUse::Slots(class) => Some(class),
        _ => None,
    };
    let place = Place {
        frame,
        index,
        class,
    };
    let is_allocated = medium.load_u64(place.bitmap_word_at()) & place.bit().1 != 0;
    is_allocated.then(|| Slot {
        at: slot_at(frame, what, index),
        bytes: slot_bytes(what),
        place,
    })
}
