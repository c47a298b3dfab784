//! The log of a medium in [`firn_media::Domain::Logged`]: its records, and what a prefix of them comes to.
//!
//! A crash leaves a prefix of the records that has at least those that are durable. Stores that no record has captured
//! are in no prefix, so memory as the threads see it may be no image at all.

use core::ops::Range;

use firn_units::{FRAME_BYTES, LINE_BYTES};
use rustc_hash::FxHashMap;

use crate::memory::cells::{Line, PAGE_LINES};
use crate::memory::event::Event;
use crate::memory::pages::Memory;

/// What a record of the log says. It survives as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Words of lines got this content; the lines come by their numbers.
    Lines(Box<[(u64, Words)]>),
    /// Blocks were reserved for frames, and the medium grew to at least this length.
    Reserve {
        /// Numbers of the frames.
        frames: Range<u64>,
    },
    /// Lines read as zeros, and frames lost their blocks.
    Discard {
        /// Numbers of the lines.
        lines: Range<u64>,
        /// Numbers of the frames.
        frames: Range<u64>,
    },
    /// The medium ends here.
    Truncate {
        /// Bytes that are left.
        len: u64,
    },
}

/// Some of a line's words, or its mark, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Which of them, a bit each, in a line's order.
    which: u16,
    /// Their content; zero for the others.
    content: Line,
}

impl Words {
    /// Adds a word, by its place in the line.
    pub(crate) fn set(&mut self, index: usize, word: u64) {
        self.which |= 1 << index;
        self.content[index] = word;
    }

    /// The line after these words were stored to it.
    fn over(&self, mut line: Line) -> Line {
        let words = line.iter_mut().zip(&self.content).enumerate();
        for (_, (word, &new)) in words.filter(|(index, _)| self.which >> index & 1 != 0) {
            *word = new;
        }
        line
    }
}

impl Record {
    /// A word that distinguishes the record in an execution's hash.
    pub(crate) fn digest(&self) -> u64 {
        let mix =
            |all: u64, word: u64| (all.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        match self {
            Self::Lines(lines) => lines.iter().fold(1, |all, (line, words)| {
                let start = mix(mix(all, *line), u64::from(words.which));
                words
                    .content
                    .iter()
                    .fold(start, |all, word| mix(all, *word))
            }),
            Self::Reserve { frames } => mix(mix(2, frames.start), frames.end),
            Self::Discard { lines, .. } => mix(mix(3, lines.start), lines.end),
            Self::Truncate { len } => mix(4, *len),
        }
    }
}

/// A change of lines, blocks and length.
#[derive(Clone, Default)]
pub(crate) struct Difference {
    pub(crate) lines: Vec<(u64, Line)>,
    pub(crate) frames: Vec<(u64, bool)>,
    pub(crate) len: Option<u64>,
}

/// The part of the log that a crash may lose.
#[derive(Clone, Default)]
pub(crate) struct Log {
    /// Records that are not known to be durable, the oldest first.
    records: Vec<Record>,
    /// Number of records before them.
    durable: u64,
    base: Base,
}

/// What the durable records come to.
///
/// Invariant: where it says nothing, memory is as the durable records say, and as all later records say.
#[derive(Clone, Default)]
struct Base {
    lines: FxHashMap<u64, Line>,
    frames: FxHashMap<u64, bool>,
    len: Option<u64>,
}

impl Base {
    /// What a record changes of the lines, frames and length that may differ from memory, if lines were as `before` says.
    fn difference(&self, record: &Record, len: u64, before: impl Fn(u64) -> Line) -> Difference {
        let over = |&(line, words): &(u64, Words)| (line, words.over(before(line)));
        let zeros = |lines: &Range<u64>| -> Vec<(u64, Line)> {
            let gone = self.lines.keys().filter(|line| lines.contains(line));
            gone.map(|&line| (line, Line::default())).collect()
        };
        let frames_in = |frames: &Range<u64>, backed| -> Vec<(u64, bool)> {
            let some = self.frames.keys().filter(|frame| frames.contains(frame));
            some.map(|&frame| (frame, backed)).collect()
        };
        match record {
            Record::Lines(lines) => Difference {
                lines: lines.iter().map(over).collect(),
                ..Difference::default()
            },
            Record::Reserve { frames } => Difference {
                frames: frames_in(frames, true),
                len: Some(len.max(frames.end * FRAME_BYTES)),
                ..Difference::default()
            },
            Record::Discard { lines, frames } => Difference {
                lines: zeros(lines),
                frames: frames_in(frames, false),
                len: None,
            },
            Record::Truncate { len } => Difference {
                lines: zeros(&(len / LINE_BYTES..u64::MAX)),
                frames: frames_in(&(len / FRAME_BYTES..u64::MAX), false),
                len: Some(*len),
            },
        }
    }

    fn apply(&mut self, difference: Difference) {
        self.lines.extend(difference.lines);
        self.frames.extend(difference.frames);
        if self.len.is_some() {
            self.len = difference.len.or(self.len);
        }
    }

    /// Forgets what memory holds, too. No record is left that says something else.
    fn forget_equal(&mut self, memory: &Memory) {
        self.lines
            .retain(|&line, content| memory.line(line) != *content);
        self.frames
            .retain(|&frame, backed| memory.is_backed(frame) != *backed);
        self.len = self.len.filter(|&len| len != memory.len());
    }
}

impl Log {
    /// Takes in an event that has *not* been applied to `memory` yet.
    pub(crate) fn take_in(&mut self, event: &Event, memory: &Memory) {
        match event {
            Event::Store { .. } | Event::Zero { .. } => {
                if let Some(line) = event.changes() {
                    let before = || memory.line(line);
                    self.base.lines.entry(line).or_insert_with(before);
                }
            }
            Event::Length { old, .. } => _ = self.base.len.get_or_insert(*old),
            Event::Backing { frame, backed, .. } => {
                self.base.frames.entry(*frame).or_insert(!backed);
            }
            Event::Append { record, .. } => self.append(record, memory),
            Event::Durable { ticket, .. } => self.settle(*ticket, memory),
            _ => {}
        }
    }

    fn append(&mut self, record: &Record, memory: &Memory) {
        if let Record::Lines(lines) = record {
            // A line may have changed and changed back while it was read for the record.
            for (line, words) in lines {
                let now = memory.line(*line);
                if now != words.over(now) {
                    self.base.lines.entry(*line).or_insert(now);
                }
            }
        }
        self.records.push(record.clone());
    }

    /// Everything up to record number `ticket` is durable.
    fn settle(&mut self, ticket: u64, memory: &Memory) {
        let newly = ticket.saturating_sub(self.durable) as usize;
        for record in self.records.drain(..newly.min(self.records.len())) {
            let len = self.base.len.unwrap_or(memory.len());
            let durable = |line| {
                let differs = self.base.lines.get(&line);
                differs.copied().unwrap_or_else(|| memory.line(line))
            };
            let difference = self.base.difference(&record, len, durable);
            self.base.apply(difference);
            self.durable += 1;
        }
        if self.records.is_empty() {
            self.base.forget_equal(memory);
        }
    }

    /// Number of records that every crash leaves.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// Number of prefixes that a crash may leave.
    pub(crate) fn prefixes(&self) -> usize {
        self.records.len() + 1
    }

    /// Whether a line's content in memory may be lost.
    pub(crate) fn may_lose(&self, line: u64) -> bool {
        self.base.lines.contains_key(&line)
    }

    /// How memory differs from the shortest prefix, then each longer prefix from the one before.
    pub(crate) fn differences(&self, memory: &Memory) -> Vec<Difference> {
        let base = &self.base;
        let mut len = base.len.unwrap_or(memory.len());
        let mut all = vec![Difference {
            lines: base
                .lines
                .iter()
                .map(|(&line, &content)| (line, content))
                .collect(),
            frames: base
                .frames
                .iter()
                .map(|(&frame, &backed)| (frame, backed))
                .collect(),
            len: Some(len),
        }];
        let mut lines = base.lines.clone();
        for record in &self.records {
            let before = |line| {
                let differs = lines.get(&line);
                differs.copied().unwrap_or_else(|| memory.line(line))
            };
            let difference = base.difference(record, len, before);
            len = difference.len.unwrap_or(len);
            lines.extend(difference.lines.iter().copied());
            all.push(difference);
        }
        all
    }

    /// What memory holds of everything that some prefix may have otherwise.
    pub(crate) fn memory(&self, memory: &Memory) -> Difference {
        let (lines, frames) = (self.base.lines.keys(), self.base.frames.keys());
        let beyond = self.records.iter().flat_map(|record| match record {
            Record::Lines(lines) => &lines[..],
            _ => &[],
        });
        let lines = lines.copied().chain(beyond.map(|(line, _)| *line));
        Difference {
            lines: lines.map(|line| (line, memory.line(line))).collect(),
            frames: frames
                .map(|&frame| (frame, memory.is_backed(frame)))
                .collect(),
            len: Some(memory.len()),
        }
    }
}

const _: () = assert!(PAGE_LINES * LINE_BYTES == FRAME_BYTES, "a page is a frame");
