//! A plan on media: writing it, reading it, and the meaning of its entries.
//!
//! A plan on media is trusted only if it is sound. Its checksums only show that it is unchanged since it was written; a
//! wrong plan would make recovery copy beyond the pool, or reserve memory for frames that do not exist.

use firn_format::class::Class;
use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_format::plan::{ENTRY_WORDS, EntriesChecksum, Entry, PlanHeader, entries_checksum};
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

use super::scheme::Scheme;
use crate::error::Error;
use crate::steps;

/// Entries of a plan that are written together.
const WRITTEN_TOGETHER: usize = 64;

/// Writes a plan to media, with its write-backs.
pub(crate) fn write_plan<M: Medium>(
    medium: &M,
    plan: Frame,
    all: &[Entry],
    units: u64,
    scheme: &Scheme,
) -> PlanHeader {
    let _scope = medium.scope(Scope::Summary);
    let mut checksum = EntriesChecksum::default();
    for (piece, entries) in all.chunks(WRITTEN_TOGETHER).enumerate() {
        let mut words = [0; WRITTEN_TOGETHER * ENTRY_WORDS];
        for (words, entry) in words.chunks_exact_mut(ENTRY_WORDS).zip(entries) {
            words.copy_from_slice(&entry.to_words());
        }
        let words = &words[..entries.len() * ENTRY_WORDS];
        checksum.update(words);
        let at = PlanHeader::entry_at(plan, (piece * WRITTEN_TOGETHER) as u64);
        medium.store_bytes(at, bytemuck::cast_slice(words));
    }
    let header = PlanHeader {
        entries: all.len() as u64,
        units,
        scheme: scheme.number,
        checksum: checksum.value(),
    };
    medium.store_bytes(plan.start(), bytemuck::cast_slice(&header.to_words()));
    medium.zero(header.settled_at(plan), header.units * WORD_BYTES);
    let bytes = (1 + header.entries) * LINE_BYTES + header.units * WORD_BYTES;
    medium.write_back_for(&steps::PLAN_WRITE_BACK, plan.start(), bytes);
    header
}

/// Reads the entries of a plan.
///
/// Errors: the plan is damaged.
pub(crate) fn load_entries<M: Medium>(
    medium: &M,
    plan: Frame,
) -> Result<(PlanHeader, Vec<Entry>), Error> {
    let line = |at: VirtAddr| -> [u64; ENTRY_WORDS] {
        core::array::from_fn(|i| medium.load_u64(at + i as u64 * WORD_BYTES))
    };
    let header = PlanHeader::from_words(&line(plan.start()), plan.start())?;
    let damaged = || Error::Damaged {
        what: "the collector's plan",
        at: plan.start().0,
    };
    if plan.start().0 + header.frames() * FRAME_BYTES > medium.len() {
        return Err(damaged());
    }
    let mut words = vec![0u64; header.entries as usize * ENTRY_WORDS];
    medium.load_bytes(
        PlanHeader::entry_at(plan, 0),
        bytemuck::cast_slice_mut(&mut words),
    );
    if entries_checksum(&words) != header.checksum {
        return Err(damaged());
    }
    let mut entries = Vec::with_capacity(header.entries as usize);
    for (index, words) in words.as_chunks::<ENTRY_WORDS>().0.iter().enumerate() {
        let at = PlanHeader::entry_at(plan, index as u64);
        entries.push(Entry::from_words(words, at)?);
    }
    match is_sound(medium.len(), plan, &header, &entries) {
        true => Ok((header, entries)),
        false => Err(damaged()),
    }
}

#[inline]
pub(crate) fn destination_of(entry: &Entry, rank: u64) -> VirtAddr {
    let (frame, slot) = entry.destination(rank);
    frame.start() + slot * entry.class.map_or(0, Class::slot_bytes)
}

/// The slot that starts `offset` bytes into a run.
#[inline]
pub(super) fn exact_slot(class: Option<Class>, offset: u64) -> Option<u64> {
    match class {
        Some(class) => {
            let slot = class.slot_of(offset);
            (slot * class.slot_bytes() == offset).then_some(slot)
        }
        None => (offset == 0).then_some(0),
    }
}

/// Frames of an entry's runs; a large object's entry keeps them where others keep the split.
pub(crate) fn frames_of(entry: &Entry) -> u64 {
    entry.class.map_or(entry.split, Class::frames)
}

/// Where an entry moves the byte at `at`, which lies in its source; `None` if it belonged to no object.
pub(crate) fn moved(entry: &Entry, at: VirtAddr) -> Option<VirtAddr> {
    let offset = at.0.checked_sub(entry.source.start().0)?;
    let (slot, start) = match entry.class {
        Some(class) => {
            let slot = class.slot_of(offset);
            (slot, slot * class.slot_bytes())
        }
        None => (0, 0),
    };
    let rank = entry.rank(slot)?;
    Some(destination_of(entry, rank) + (offset - start))
}

/// Whether a pool of `len` bytes can have this plan: its runs are frames of objects, no slot is outside its run, and
/// its header has the right number of units.
fn is_sound(len: u64, plan: Frame, header: &PlanHeader, entries: &[Entry]) -> bool {
    let mut units = 0;
    let entries_fit = entries.iter().all(|entry| {
        let unit = units;
        units += entry.count();
        entry.unit == unit && entry_fits(len, entry)
    });
    entries_fit && units == header.units && holds(len, plan, header.frames())
}

/// Whether `frames` frames from `first` on are in the data of a pool of `len` bytes.
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
