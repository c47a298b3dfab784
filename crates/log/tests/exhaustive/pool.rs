//! The pool that the log belongs to: what programs do to it, and what it holds after each record.

use core::ops::Range;
use std::collections::BTreeMap;

use firn_format::log::{BLOCK_BYTES, LineWords, Record};
use firn_log::Home;
use firn_units::{FRAME_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::disk::{Contents, File, Id};

pub const FRAMES: u64 = 2;
/// Lines in a sector of the first frame, in another of its sectors, and in the second frame.
pub const LINES: [u64; 3] = [0, 1024, FRAME_BYTES];
/// Often enough for a record of two blocks.
const LONG: usize = 70;

/// What a thread does and then appends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Stores a word of its own to each of these lines.
    Store(&'static [usize]),
    /// Stores a word to a line, and appends the line again and again, with other contents before the last: two blocks.
    Long(usize),
    /// Discards the second frame.
    Discard,
    /// Reserves the second frame.
    Reserve,
    /// Cuts the second frame off.
    Truncate,
}

/// The pool's words that are not zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Words(pub BTreeMap<u64, u64>);

impl Words {
    /// Does deed number `number` of an opening.
    pub fn take(&mut self, deed: Deed, number: usize, opening: u64) {
        let value = opening * 1000 + number as u64 + 1;
        let mut store = |line: usize| {
            let word = number % WORDS_PER_LINE;
            self.0.insert(LINES[line] + word as u64 * WORD_BYTES, value);
        };
        match deed {
            Deed::Store(lines) => lines.iter().for_each(|&line| store(line)),
            Deed::Long(line) => store(line),
            Deed::Discard | Deed::Truncate => self.0.retain(|at, _| *at < FRAME_BYTES),
            Deed::Reserve => {}
        }
    }

    /// The record that a deed appends, with lines as these words have them.
    pub fn record(&self, deed: Deed) -> Record {
        let second = FRAME_BYTES..2 * FRAME_BYTES;
        match deed {
            Deed::Store(lines) => {
                Record::Lines(lines.iter().map(|&line| self.line(line)).collect())
            }
            Deed::Long(line) => {
                let other = LineWords {
                    words: [u64::MAX; WORDS_PER_LINE],
                    ..self.line(line)
                };
                let mut lines = vec![other; LONG];
                lines.push(self.line(line));
                Record::Lines(lines)
            }
            Deed::Discard => Record::Discard(second),
            Deed::Reserve => Record::Reserve(second),
            Deed::Truncate => Record::Truncate(FRAME_BYTES),
        }
    }

    fn line(&self, line: usize) -> LineWords {
        let at = |word: usize| LINES[line] + word as u64 * WORD_BYTES;
        LineWords {
            line: LINES[line],
            mask: u8::MAX,
            words: core::array::from_fn(|word| self.0.get(&at(word)).copied().unwrap_or(0)),
        }
    }

    /// What a pool's file holds.
    pub fn of(home: &[Id], contents: &Contents) -> Self {
        let mut words = BTreeMap::new();
        for (frame, &id) in home.iter().enumerate() {
            let (each, _) = contents.bytes(id).as_chunks::<{ WORD_BYTES as usize }>();
            let words_of_frame = each.iter().map(|bytes| u64::from_le_bytes(*bytes));
            for (index, word) in words_of_frame.enumerate().filter(|(_, word)| *word != 0) {
                words.insert(frame as u64 * FRAME_BYTES + index as u64 * WORD_BYTES, word);
            }
        }
        Self(words)
    }
}

/// Writes what records come to into the pool's file.
pub fn bring_home(file: &mut File, home: &Home, contents: &mut Contents) {
    let zeros = [home.cut.map_or(0..0, |cut| cut..FRAMES * FRAME_BYTES)];
    for range in home.discarded.iter().chain(&home.zeroed).chain(&zeros) {
        let Range { start, end } = *range;
        for frame in start / FRAME_BYTES..end.min(FRAMES * FRAME_BYTES) / FRAME_BYTES {
            file.write(frame as usize, crate::disk::ZEROS);
        }
    }
    for (at, bytes) in home.words.iter() {
        store(file, at, bytes, contents);
    }
}

/// Writes bytes of one block.
pub fn store(file: &mut File, at: u64, bytes: &[u8], contents: &mut Contents) {
    let (block, within) = ((at / BLOCK_BYTES) as usize, (at % BLOCK_BYTES) as usize);
    let mut content = *contents.bytes(file.now(block));
    content[within..][..bytes.len()].copy_from_slice(bytes);
    let id = contents.id(&content);
    file.write(block, id);
}
