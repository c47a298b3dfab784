//! Contents behind a checksum, told apart only as far as the checksum tells them apart.
//!
//! A log entry of many lines that a crash has torn is refused, whichever of its lines are missing. A run that recorded
//! everything under the checksum would have to be repeated for each of these images, and there are as many as there are
//! sets of lines. But the checksum was made of a content that was in memory at some time. So the run needs to record
//! only the words up to the first that differs from that content, and nothing if the checksum belongs to no content
//! that was ever there, as with a torn header. So the number of runs grows like the number of an entry's lines.
//!
//! This relies on checksums being injective on the contents that lines can have; 64 bits are, except for one in 2^64
//! pairs. [`crate::Exploration::EachWord`] does not rely on it. A recovery may make a checksum, too: where an earlier
//! life's recovery has stored, everything is recorded. The run knows its own stores, and a checksum that it made itself
//! covers words that it has looked at.

use core::ops::RangeInclusive;
use firn_units::WORD_BYTES;
use rustc_hash::FxHashMap;

use crate::memory::cells::{LINE_WORDS, is_mark};
use crate::memory::event::Event;

pub(crate) type Word = [u8; WORD_BYTES as usize];

/// A store of the execution that is crashed.
#[derive(Clone, Copy)]
struct Store {
    word: u64,
    old: u64,
    new: u64,
}

/// What was in memory while the execution ran.
#[derive(Default)]
pub(crate) struct Torn {
    /// Its stores in their order.
    stores: Vec<Store>,
    /// Lines that recoveries store to, each with the fewest crashes in recovery after which an image may show it. The
    /// content behind a checksum there may have been in memory only during a recovery.
    rewritten: FxHashMap<u64, u32>,
    /// Lines whose loads may have gone unrecorded.
    spared: Vec<RangeInclusive<u64>>,
    /// Crashes in recovery before the current run; `None` while everything must be recorded.
    depth: Option<u32>,
}

impl Torn {
    /// Starts over with an execution.
    pub(crate) fn begin(&mut self, trace: &[Event]) {
        *self = Self::default();
        for event in trace {
            match *event {
                Event::Store { word, old, new, .. } if !is_mark(word) => {
                    self.stores.push(Store { word, old, new });
                }
                Event::Zero { line, ref old, .. } => {
                    let words = (line * LINE_WORDS..).zip(&old[..LINE_WORDS as usize]);
                    let stores = words.map(|(word, &old)| Store { word, old, new: 0 });
                    self.stores.extend(stores);
                }
                _ => {}
            }
        }
    }

    /// Records that images after `depth` crashes in recovery may show a recovery's stores to a line. Returns whether
    /// runs on them may have left loads of it unrecorded.
    pub(crate) fn rewrite(&mut self, line: u64, depth: u32) -> bool {
        let from = self.rewritten.entry(line).or_insert(u32::MAX);
        let news = depth < *from;
        *from = depth.min(*from);
        news && self.spared.iter().any(|lines| lines.contains(&line))
    }

    /// Sets the number of crashes in recovery before the run that begins; `None` when no run is active.
    pub(crate) fn set_depth(&mut self, depth: Option<u32>) {
        self.depth = depth;
    }

    /// Whether the current run need not record everything.
    pub(crate) fn spares(&self) -> bool {
        self.depth.is_some()
    }

    /// Whether the former contents of these lines are known for all images of the current run.
    pub(crate) fn knows(&self, mut lines: RangeInclusive<u64>) -> bool {
        let is_rewritten =
            |line, depth| self.rewritten.get(&line).is_some_and(|&from| from <= depth);
        self.depth
            .is_some_and(|depth| !lines.any(|line| is_rewritten(line, depth)))
    }

    /// Notes that loads of these lines may go unrecorded.
    pub(crate) fn spare(&mut self, lines: RangeInclusive<u64>) {
        if !self.spared.contains(&lines) {
            self.spared.push(lines);
        }
    }

    /// The content of the words from `first` on at a time when `is_whole` held for it, if it ever did. Words that the
    /// execution never stored to hold `now`.
    pub(crate) fn whole(
        &self,
        first: u64,
        now: &[Word],
        is_whole: &dyn Fn(&[u8]) -> bool,
    ) -> Option<Vec<Word>> {
        let place = |store: &Store| {
            let place = store.word.checked_sub(first)? as usize;
            (place < now.len()).then_some(place)
        };
        let mut content = now.to_vec();
        for store in self.stores.iter().rev() {
            if let Some(place) = place(store) {
                content[place] = store.old.to_le_bytes();
            }
        }
        let mut stores = self.stores.iter();
        loop {
            if is_whole(content.as_flattened()) {
                return Some(content);
            }
            let (place, store) = stores.find_map(|store| Some((place(store)?, store)))?;
            content[place] = store.new.to_le_bytes();
        }
    }
}
