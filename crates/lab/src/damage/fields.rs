//! Damage that knows the format: fields of tables are changed and their checksums repaired, so that the code behind the
//! checksum is tested too.

use fastrand::Rng;
use firn_crash::Image;
use firn_format::checksum;
use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::{
    BITMAP_WORDS, FRONTIER, Frame, KEPT, LENGTH, PHASE, REGISTRY, REGISTRY_END, ROOTS,
    SUPERBLOCK_BYTES, SUPERBLOCKS, WATERMARK,
};
use firn_format::header::{ObjectHeader, TypeId};
use firn_format::lane::{ENTRY_HEADER_WORDS, EntryHeader, SLOT_PAYLOAD_WORDS, undo_done_at};
use firn_format::plan::{ENTRY_WORDS, PlanHeader, entries_checksum};
use firn_format::registry::RECORD_HEADER_BYTES;
use firn_format::sealed::{MAX_VALUE, Seal};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use super::mutation::{Mutation, any, wrong};
use super::sample::Sample;

/// Draws damage to a table. It may have no effect.
pub(super) fn draw(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    match rng.u32(0..12) {
        0 => superblock(&sample.image, rng),
        1 => Some(sealed(&sample.image, rng)),
        2 => record(&sample.image, rng),
        3 | 4 => entry(sample, rng),
        5 | 6 => plan(sample, rng),
        7 => frame_word(sample, rng),
        8 => bitmap(sample, rng),
        9 => root(&sample.image, rng),
        _ => header(sample, rng),
    }
}

fn words(image: &Image, at: VirtAddr, count: u64) -> Vec<u64> {
    let word = |i| image.load_u64(at + i * WORD_BYTES);
    (0..count).map(word).collect()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn stores(at: VirtAddr, words: &[u64]) -> Vec<(VirtAddr, u64)> {
    let at = (0..).map(|i| at + i * WORD_BYTES);
    at.zip(words.iter().copied()).collect()
}

/// Changes one word, or one byte of it.
fn spoil(words: &mut [u64], rng: &mut Rng) {
    if let Some(word) = rng.choice(words.iter_mut()) {
        *word = match rng.bool() {
            true => wrong(*word, rng),
            false => {
                let shift = rng.u32(0..8) * 8;
                *word & !(0xff << shift) | u64::from(rng.u8(..)) << shift
            }
        };
    }
}

/// A field of one copy of the superblock, or of both.
fn superblock(image: &Image, rng: &mut Rng) -> Option<Mutation> {
    let count = SUPERBLOCK_BYTES / WORD_BYTES;
    let at = *any(&SUPERBLOCKS, rng)?;
    let mut of = words(image, at, count);
    let (magic, used) = (of[0], 16.min(of.len() - 1));
    spoil(&mut of[1..used], rng);
    let (check, body) = of.split_last_mut()?;
    *check = checksum(&bytes(body), magic);
    let mut all = stores(at, &of);
    if rng.bool() {
        all = SUPERBLOCKS.iter().flat_map(|&at| stores(at, &of)).collect();
    }
    Some(Mutation::new("a field of the superblock", all))
}

/// A word that contains its own check.
fn sealed(image: &Image, rng: &mut Rng) -> Mutation {
    let all = [
        (Seal::Watermark, WATERMARK),
        (Seal::Phase, PHASE),
        (Seal::RegistryEnd, REGISTRY_END),
        (Seal::Length, LENGTH),
        (Seal::Frontier, FRONTIER),
        (Seal::Kept, KEPT),
        (Seal::UndoDone, undo_done_at(0)),
        (Seal::UndoDone, undo_done_at(1)),
    ];
    let (seal, at) = all[rng.usize(0..all.len())];
    let value = image.load_u64(at) & MAX_VALUE;
    let value = wrong(value, rng) & MAX_VALUE;
    Mutation::one("a sealed word", at, seal.seal(value))
}

/// A type's record.
fn record(image: &Image, rng: &mut Rng) -> Option<Mutation> {
    let end = Seal::RegistryEnd.open(image.load_u64(REGISTRY_END))?;
    let mut at = REGISTRY;
    let mut records = Vec::new();
    while at.0 < end.max(REGISTRY.0) && records.len() < 64 {
        let len = image.load_u64(at);
        if len < RECORD_HEADER_BYTES as u64 || !len.is_multiple_of(WORD_BYTES) || len > 1 << 16 {
            break;
        }
        records.push((at, len));
        at = at + len;
    }
    let &(at, len) = any(&records, rng)?;
    let mut of = words(image, at, len / WORD_BYTES);
    let head = RECORD_HEADER_BYTES / WORD_BYTES as usize;
    spoil(&mut of[head..], rng);
    of[1] = checksum(&bytes(&of[head..]), len);
    Some(Mutation::new("a field of a type", stores(at, &of)))
}

/// A field of a log entry: of its header, of its first record or extent, or of any later part.
fn entry(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let &at = any(&sample.map.entries, rng)?;
    let of = words(&sample.image, at, ENTRY_HEADER_WORDS as u64);
    let mut header = EntryHeader::from_words(of.try_into().ok()?);
    let (places, mut payload) = covered(&sample.image, at, &header);
    match rng.u32(0..7) {
        0 => header.lsn = wrong(header.lsn, rng),
        1 => header.watermark = wrong(header.watermark, rng),
        2 => header.payload_words = rng.u64(0..=header.payload_words),
        3 => header.extents = rng.usize(0..3),
        4 => spoil(payload.get_mut(..1)?, rng),
        _ => spoil(&mut payload, rng),
    }
    let len = match header.extents {
        0 => payload.len().min(header.payload_words as usize),
        _ => payload.len(),
    };
    header.checksum = header.checksum(&bytes(&payload[..len]));
    let mut all = stores(at, &header.to_words());
    all.extend(places.into_iter().zip(payload));
    Some(Mutation::new("a field of a log entry", all))
}

/// The words that an entry's checksum covers after its header, and their addresses.
fn covered(image: &Image, at: VirtAddr, header: &EntryHeader) -> (Vec<VirtAddr>, Vec<u64>) {
    let body = at + ENTRY_HEADER_WORDS as u64 * WORD_BYTES;
    let inline = match header.extents {
        0 => header.payload_words,
        extents => 2 * extents as u64,
    };
    let inline = words(image, body, inline.min(SLOT_PAYLOAD_WORDS as u64));
    let mut all = stores(body, &inline);
    if header.extents > 0 {
        for extent in inline.as_chunks::<2>().0 {
            let (start, count) = (VirtAddr(extent[0]), extent[1].min(image.len() / WORD_BYTES));
            all.extend(stores(start, &words(image, start, count)));
        }
    }
    all.into_iter().unzip()
}

/// A field of the collector's plan, or a settled word.
fn plan(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let plan = sample.map.plan?;
    let of = words(&sample.image, plan, ENTRY_WORDS as u64);
    let mut header = PlanHeader::from_words(&of.try_into().ok()?, plan).ok()?;
    let first = PlanHeader::entry_at(Frame::holding(plan), 0);
    let mut entries = words(
        &sample.image,
        first,
        header.entries * LINE_BYTES / WORD_BYTES,
    );
    match rng.u32(0..8) {
        0 => header.units = wrong(header.units, rng),
        1 => header.entries = wrong(header.entries, rng),
        2 => header.scheme = rng.u64(0..10),
        3 => {
            let settled = header.settled_at(Frame::holding(plan));
            let unit = rng.u64(0..header.units.max(1));
            let at = settled + unit * WORD_BYTES;
            let word = wrong(sample.image.load_u64(at), rng);
            return Some(Mutation::one("a settled word", at, word));
        }
        _ => spoil(&mut entries, rng),
    }
    let counted = header.entries.saturating_mul(ENTRY_WORDS as u64);
    let counted = counted.min(entries.len() as u64);
    header.checksum = entries_checksum(&entries[..counted as usize]);
    let mut all = stores(plan, &header.to_words());
    all.extend(stores(first, &entries));
    Some(Mutation::new("a field of the plan", all))
}

/// The use of a frame.
fn frame_word(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let frame = Frame::holding(*any(&sample.map.frames, rng)?);
    let frame = frame.plus(rng.u64(0..3));
    if !frame.chunk().is_data() {
        return None;
    }
    let what = match rng.u32(0..7) {
        0 => FrameUse::Free,
        1 => FrameUse::Large {
            frames: 1 << rng.u32(0..12),
        },
        2 => FrameUse::Tail {
            back: rng.u64(1..600),
        },
        3 => FrameUse::Plan,
        4 => FrameUse::Log,
        5 => FrameUse::Kept,
        _ => FrameUse::Slots(Class::from_index(rng.usize(0..CLASSES))?),
    };
    let word = match rng.u32(0..4) {
        0 => what.to_reserved_word(),
        _ => what.to_word(),
    };
    Some(Mutation::one(
        "another use of a frame",
        frame.word_at(),
        word,
    ))
}

/// Which slots of a frame are in use.
fn bitmap(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let frame = Frame::holding(*any(&sample.map.frames, rng)?);
    if !frame.chunk().is_data() {
        return None;
    }
    let at = frame.bitmap_at() + rng.u64(0..BITMAP_WORDS) * WORD_BYTES;
    let word = wrong(sample.image.load_u64(at), rng);
    Some(Mutation::one("other slots in use", at, word))
}

/// The name of a root.
fn root(image: &Image, rng: &mut Rng) -> Option<Mutation> {
    let at = firn_format::root::root_at(rng.usize(0..3));
    let mut of = words(image, at, 8);
    spoil(&mut of[..5], rng);
    of[5] = checksum(&bytes(&of[..5]), ROOTS.0);
    Some(Mutation::new("another root", stores(at, &of)))
}

/// The header of an object: its type, and how much of its slot it is.
fn header(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let at = any(&sample.map.references, rng)?.1.address();
    let old = ObjectHeader(sample.image.load_u64(at));
    let word = match rng.u32(0..4) {
        0 => ObjectHeader::new(old.type_id(), rng.u64(0..4096)),
        1 => ObjectHeader::new(TypeId(rng.u32(0..24)), old.slack_bytes()),
        2 => {
            let other = any(&sample.map.references, rng)?.1.address();
            ObjectHeader(sample.image.load_u64(other))
        }
        _ => ObjectHeader(wrong(old.0, rng)),
    };
    Some(Mutation::one("another header", at, word.0))
}
