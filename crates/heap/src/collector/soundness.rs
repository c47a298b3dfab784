//! What a plan on media must be before it is believed. Its checksums say that it is what somebody wrote; a
//! wrong one would have recovery copy beyond the pool, or take room for frames that there are not.

use firn_format::class::Class;
use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_format::plan::{Entry, PlanHeader};
use firn_units::FRAME_BYTES;

use super::cycle::frames_of;

/// Whether a plan is one that a pool of `len` bytes can have: its runs are frames of objects, no slot is
/// outside its run, and its units are as many as its header says.
pub(super) fn is_sound(len: u64, plan: Frame, header: &PlanHeader, entries: &[Entry]) -> bool {
    let mut units = 0;
    let entries_fit = entries.iter().all(|entry| {
        let unit = units;
        units += entry.count();
        entry.unit == unit && entry_fits(len, entry)
    });
    entries_fit && units == header.units && holds(len, plan, header.frames())
}

/// Whether so many frames from `first` on hold objects in a pool of `len` bytes.
fn holds(len: u64, first: Frame, frames: u64) -> bool {
    let all = len / FRAME_BYTES;
    let end = first.0.checked_add(frames).filter(|end| *end <= all);
    match end {
        Some(end) if frames > 0 => first.chunk().is_data() && Frame(end - 1).chunk().is_data(),
        _ => false,
    }
}

fn entry_fits(len: u64, entry: &Entry) -> bool {
    let slots = entry.class.map_or(1, Class::slots);
    let (count, frames) = (entry.count(), frames_of(entry));
    let survive = |slot| entry.survivors[slot as usize / 64] >> (slot % 64) & 1 != 0;
    if (slots..BITMAP_WORDS * 64).any(survive) || !holds(len, entry.source, frames) {
        return false;
    }
    let in_first = count.min(entry.split);
    let in_second = count - in_first;
    let first_fits =
        in_first == 0 || entry.first_slot + in_first <= slots && holds(len, entry.first, frames);
    let second_fits = in_second == 0 || in_second <= slots && holds(len, entry.second, frames);
    first_fits && second_fits
}
