//! Damage to a pool: words are stored that the heap never stored, or the end is cut off.

use fastrand::Rng;
use firn_crash::{Crash, Image};
use firn_format::geometry::{Frame, LENGTH};
use firn_format::reference::RefWord;
use firn_format::sealed::Seal;
use firn_media::{Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};
use serde::{Deserialize, Serialize};

use super::fields;
use super::sample::Sample;

/// Damage of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// A description for a reader.
    pub what: String,
    /// Addresses, each with the word stored there.
    pub stores: Vec<(u64, u64)>,
    /// Bytes of the pool that are left, before anything is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
}

impl Mutation {
    pub(super) fn new(what: &str, stores: Vec<(VirtAddr, u64)>) -> Self {
        Self {
            what: what.to_owned(),
            stores: stores.into_iter().map(|(at, word)| (at.0, word)).collect(),
            cut: None,
        }
    }

    pub(super) fn one(what: &str, at: VirtAddr, word: u64) -> Self {
        Self::new(what, vec![(at, word)])
    }

    /// Whether it has no effect.
    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty() && self.cut.is_none()
    }
}

/// Applies all of it to a pool.
pub(super) fn apply<'m>(crash: &Crash, mutations: impl Iterator<Item = &'m Mutation> + Clone) {
    if let Some(cut) = mutations.clone().filter_map(|one| one.cut).min() {
        cut_off(crash, cut);
    }
    for &(at, word) in mutations.flat_map(|one| &one.stores) {
        if at % WORD_BYTES == 0 && at < crash.len() {
            crash.store_u64(VirtAddr(at), word);
        }
    }
}

/// Cuts the pool off after `len` bytes. The medium gives back whole lines and the blocks of whole frames, so the
/// remaining parts of the last ones are restored.
fn cut_off(crash: &Crash, len: u64) {
    if len >= crash.len() {
        return;
    }
    let end = VirtAddr(len);
    let (frame, line) = (VirtAddr(len - len % FRAME_BYTES), end.line_start());
    let mut kept = [0; LINE_BYTES as usize];
    let kept = &mut kept[..(end.0 - line.0) as usize];
    crash.load_bytes(line, kept);
    let cut = crash.truncate(len);
    let cut = cut.and_then(|()| crash.reserve(frame, len - frame.0));
    cut.expect("the simulated medium has room for less");
    crash.store_bytes(line, kept);
}

/// An item, if there is one.
pub(super) fn any<'i, T>(items: &'i [T], rng: &mut Rng) -> Option<&'i T> {
    rng.choice(items)
}

/// A word that is wrong in one of the usual ways.
pub(super) fn wrong(word: u64, rng: &mut Rng) -> u64 {
    match rng.u32(0..9) {
        0 => 0,
        1 => u64::MAX,
        2 => rng.u64(..),
        3 => rng.u64(0..64),
        4 => word.wrapping_add(1 << rng.u32(0..20)),
        5 => word.wrapping_sub(1 << rng.u32(0..20)),
        _ => word ^ 1 << rng.u32(0..64),
    }
}

/// Draws damage to a pool. It may have no effect.
pub(super) fn draw(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    match rng.u32(0..21) {
        0..2 => word(sample, rng),
        2..4 => from_elsewhere(sample, rng),
        4..7 => reference(sample, rng),
        7 => line(sample, rng),
        8 => frame(sample, rng),
        9 => swapped(sample, rng),
        10 => Some(shorter(sample, rng)),
        _ => fields::draw(sample, rng),
    }
}

fn word(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let &(at, word) = any(&sample.map.words, rng)?;
    Some(Mutation::one("a wrong word", at, wrong(word, rng)))
}

fn from_elsewhere(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let &(at, _) = any(&sample.map.words, rng)?;
    let &(_, word) = any(&sample.map.words, rng)?;
    Some(Mutation::one("a word from elsewhere", at, word))
}

/// Redirects a reference: to another object, the middle of one, an object that refers to this one, or beyond the pool.
fn reference(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let &(at, old) = any(&sample.map.references, rng)?;
    let &(from, other) = any(&sample.map.references, rng)?;
    let to = match rng.u32(0..6) {
        0 => VirtAddr(old.address().0.wrapping_add(16 * rng.u64(1..32))),
        1 => VirtAddr(from.0 & !15),
        2 => VirtAddr(at.0 & !(FRAME_BYTES - 1)),
        3 => VirtAddr(rng.u64(0..2 * sample.image.len()) & !15),
        _ => other.address(),
    };
    let tag = match rng.u32(0..4) {
        0 => rng.u8(0..16),
        _ => old.tag(),
    };
    let word = RefWord::new(old.pool(), to).with_tag(tag);
    Some(Mutation::one("another reference", at, word.0))
}

fn stretch(
    image: &Image,
    from: VirtAddr,
    to: VirtAddr,
    bytes: u64,
) -> impl Iterator<Item = (VirtAddr, u64)> {
    let words = (0..bytes).step_by(WORD_BYTES as usize);
    words.map(move |offset| (to + offset, image.load_u64(from + offset)))
}

/// A pool that was cut short, at the end of a frame or anywhere, and that claims its new or its former length.
fn shorter(sample: &Sample, rng: &mut Rng) -> Mutation {
    let bytes = rng.u64(0..sample.image.len());
    let cut = match rng.u32(0..4) {
        0 => bytes,
        1 => bytes / CHUNK_BYTES * CHUNK_BYTES,
        _ => bytes / FRAME_BYTES * FRAME_BYTES,
    };
    let said = Seal::Length.seal(cut / CHUNK_BYTES);
    Mutation {
        what: "a pool that was cut short".to_owned(),
        stores: rng.bool().then_some((LENGTH.0, said)).into_iter().collect(),
        cut: Some(cut),
    }
}

/// Zeroes a line, or replaces it by another.
fn line(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let (to, from) = (
        any(&sample.map.words, rng)?.0,
        any(&sample.map.words, rng)?.0,
    );
    let (to, from) = (to.line_start(), from.line_start());
    let mut stores: Vec<_> = stretch(&sample.image, from, to, LINE_BYTES).collect();
    if rng.bool() {
        stores.iter_mut().for_each(|(_, word)| *word = 0);
        return Some(Mutation::new("a zeroed line", stores));
    }
    Some(Mutation::new("a line from elsewhere", stores))
}

/// Zeroes a frame, or a part of it.
fn frame(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let &frame = any(&sample.map.frames, rng)?;
    let from = match rng.bool() {
        true => 0,
        false => rng.u64(0..FRAME_BYTES / LINE_BYTES) * LINE_BYTES,
    };
    let rest = stretch(
        &sample.image,
        frame + from,
        frame + from,
        FRAME_BYTES - from,
    );
    let stores = rest.filter(|(_, word)| *word != 0);
    let stores = stores.map(|(at, _)| (at, 0)).collect();
    Some(Mutation::new("a zeroed frame", stores))
}

/// Swaps two frames, with or without their words in the table.
fn swapped(sample: &Sample, rng: &mut Rng) -> Option<Mutation> {
    let (&one, &other) = (any(&sample.map.frames, rng)?, any(&sample.map.frames, rng)?);
    let image = &sample.image;
    let mut stores: Vec<_> = stretch(image, one, other, FRAME_BYTES).collect();
    stores.extend(stretch(image, other, one, FRAME_BYTES));
    stores.retain(|(at, word)| image.load_u64(*at) != *word);
    let (one, other) = (Frame::holding(one), Frame::holding(other));
    if one.chunk().is_data() && other.chunk().is_data() && rng.bool() {
        let (one, other) = (one.word_at(), other.word_at());
        stores.push((one, image.load_u64(other)));
        stores.push((other, image.load_u64(one)));
    }
    Some(Mutation::new("swapped frames", stores))
}
