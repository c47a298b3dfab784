//! A class of images: every line at any of its candidates, independently.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::explore::lazy::candidates::Candidates;
use crate::memory::cells::{Line, index_of, line_of};
use crate::memory::footprint::Looked;
use crate::memory::pages::Memory;

/// What a run looked at in a line that has a slot: slot and place in one number. A place is the index of a word or of
/// the mark, or [`SCANS`], [`BEGINS`] or [`ENDS`].
pub(crate) type Key = u32;

/// Place of a question whether any line of a copy is marked; its line is the copy's first that may be either.
pub(crate) const SCANS: usize = PLACES - 3;
/// Place of the beginning of a line's completion.
pub(crate) const BEGINS: usize = PLACES - 2;
/// Place of the end of a line's completion.
pub(crate) const ENDS: usize = PLACES - 1;
/// Places of a line.
const PLACES: usize = 16;

/// The lines that differ from the beginning in some image of the exploration, numbered as they are met, and what each
/// may hold in the current class.
///
/// Invariant: in every image, a line without a slot holds what it held at the beginning.
#[derive(Default)]
pub(crate) struct ImageClass {
    slots: FxHashMap<u64, u32>,
    lines: Vec<u64>,
    base: Vec<Rc<Candidates>>,
    now: Vec<Rc<Candidates>>,
    /// Per slot, the fewest crashes in recovery after which its content may differ.
    varies_from: Vec<u32>,
    /// What memory holds of each line, if it is a first candidate that was laid out.
    laid: Vec<Option<Rc<Candidates>>>,
    /// Lines with more than one candidate: a bit for each slot.
    open: Vec<u64>,
    hash: u128,
}

/// Finds slots. Remembers the last line's slot, as successive words are mostly of one line.
pub(crate) struct Finder<'a> {
    class: &'a ImageClass,
    line: u64,
    slot: Option<usize>,
}

impl Finder<'_> {
    /// The slot of the line of a word, if it has one.
    #[inline]
    pub(crate) fn of(&mut self, line: u64) -> Option<usize> {
        if self.line != line {
            self.line = line;
            self.slot = self.class.slot_of(line);
        }
        self.slot
    }
}

impl ImageClass {
    /// Records that images after `depth` crashes in recovery may differ in a line. Returns whether that is news.
    pub(crate) fn vary(&mut self, line: u64, depth: u32, memory: &Memory) -> bool {
        if let Some(&slot) = self.slots.get(&line) {
            let from = &mut self.varies_from[slot as usize];
            let news = *from > depth;
            *from = depth.min(*from);
            return news;
        }
        let slot = self.lines.len() as u32;
        let content = Rc::new(Candidates::one(line, memory.line(line)));
        self.slots.insert(line, slot);
        self.lines.push(line);
        self.base.push(Rc::clone(&content));
        self.now.push(content);
        self.varies_from.push(depth);
        self.laid.push(None);
        let bits = u64::BITS as usize;
        self.open.resize(self.lines.len().div_ceil(bits), 0);
        true
    }

    /// Every line that has a slot.
    pub(crate) fn lines(&self) -> &[u64] {
        &self.lines
    }

    pub(crate) fn line(&self, slot: usize) -> u64 {
        self.lines[slot]
    }

    pub(crate) fn get(&self, slot: usize) -> &Rc<Candidates> {
        &self.now[slot]
    }

    /// Sets what a line may hold from now on. Returns what it could hold before.
    pub(crate) fn set(&mut self, slot: usize, candidates: Rc<Candidates>) -> Rc<Candidates> {
        let before = core::mem::replace(&mut self.now[slot], candidates);
        let now = &self.now[slot];
        self.hash ^= before.hash() ^ now.hash();
        let (place, bit) = (slot / u64::BITS as usize, 1 << (slot % u64::BITS as usize));
        match now.len() > 1 {
            true => self.open[place] |= bit,
            false => self.open[place] &= !bit,
        }
        before
    }

    /// Hash of the class, relative to the beginning.
    pub(crate) fn hash(&self) -> u128 {
        self.hash
    }

    /// Number of images.
    pub(crate) fn images(&self) -> u128 {
        let mut images = 1_u128;
        for (place, &bits) in self.open.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                let slot = place * u64::BITS as usize + left.trailing_zeros() as usize;
                images = images.saturating_mul(self.now[slot].len() as u128);
                left &= left - 1;
            }
        }
        images
    }

    /// The slot's part of the key is the result of `slot_of`.
    pub(crate) fn key(looked: Looked, slot_of: impl FnOnce(u64) -> usize) -> Key {
        let (line, place) = match looked {
            Looked::Word(word) => (line_of(word), index_of(word)),
            Looked::Scans(line) => (line, SCANS),
            Looked::Begins(line) => (line, BEGINS),
            Looked::Ends(line) => (line, ENDS),
        };
        (slot_of(line) * PLACES + place) as u32
    }

    /// The slot of a line, if it has one.
    pub(crate) fn slot_of(&self, line: u64) -> Option<usize> {
        self.slots.get(&line).map(|&slot| slot as usize)
    }

    /// A finder for lines that are looked up again and again.
    pub(crate) fn finder(&self) -> Finder<'_> {
        Finder {
            class: self,
            line: u64::MAX,
            slot: None,
        }
    }

    /// Slot and place of a key.
    pub(crate) fn place(key: Key) -> (usize, usize) {
        (key as usize / PLACES, key as usize % PLACES)
    }

    /// The image that a run begins with: every line at its first candidate, by slot.
    pub(crate) fn image(&self) -> Vec<Line> {
        self.now.iter().map(|line| *line.first()).collect()
    }

    /// What the line of a slot held at the beginning.
    pub(crate) fn base(&self, slot: usize) -> &Line {
        self.base[slot].first()
    }

    /// Lays that image out, and marks the words whose loads must be recorded after `depth` crashes.
    pub(crate) fn lay(&mut self, memory: &Memory, depth: u32) {
        let each = self.lines.iter().zip(&self.now).zip(&self.varies_from);
        for (((&line, candidates), &from), laid) in each.zip(&mut self.laid) {
            let is_laid = laid
                .as_ref()
                .is_some_and(|laid| Rc::ptr_eq(laid, candidates));
            if !is_laid {
                memory.set_line(line, candidates.first());
                *laid = Some(Rc::clone(candidates));
            }
            if from <= depth {
                memory.mark_fresh(line);
            }
        }
    }

    /// Removes those marks.
    pub(crate) fn unmark(&self, memory: &Memory) {
        for &line in &self.lines {
            memory.clear_fresh(line);
        }
    }

    /// Lays out the content of the beginning.
    pub(crate) fn lay_base(&mut self, memory: &Memory) {
        for (&line, candidates) in self.lines.iter().zip(&self.base) {
            memory.set_line(line, candidates.first());
        }
        self.laid.fill(None);
    }
}
