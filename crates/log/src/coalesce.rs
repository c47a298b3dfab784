//! Coalescing: what a part of the log comes to at home.

use core::ops::Range;

use firn_format::log::{LineWords, Record};
use firn_units::{WORD_BYTES, WORDS_PER_LINE};
use rangemap::RangeSet;

/// What is to be done to the pool's file, in the order of the fields. Doing it again does no harm.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Home {
    /// Bytes that the file is to have at least.
    pub at_least: u64,
    /// Bytes that the file was cut to, and then grown again to [`Home::at_least`].
    pub cut: Option<u64>,
    /// Ranges that read as zeros and give their blocks back.
    pub discarded: Vec<Range<u64>>,
    /// Ranges that read as zeros and keep their blocks, or get them.
    pub zeroed: Vec<Range<u64>>,
    /// Words in runs.
    pub words: Runs,
}

/// Runs of words: ascending, none touches another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Runs {
    /// For each run its first byte in the pool, and where its content ends in `bytes`.
    ends: Vec<(u64, usize)>,
    /// The content of all of them.
    bytes: Vec<u8>,
}

impl Runs {
    /// Each run's first byte in the pool, and its content.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(at, end)| {
            let content = &self.bytes[start..end];
            start = end;
            (at, content)
        })
    }

    /// Bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Adds a word behind all others.
    fn push(&mut self, at: u64, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
        let end = self.bytes.len();
        let start = self.ends.iter().rev().nth(1).map_or(0, |&(_, end)| end);
        match self.ends.last_mut() {
            Some((first, last)) if *first + (*last - start) as u64 == at => *last = end,
            _ => self.ends.push((at, end)),
        }
    }
}

/// What the records come to, in their order: of each word the newest content (section III-E, algorithm 1). The paper
/// goes through transactions from the newest to the oldest and keeps the first content that it finds; a stable sort by
/// line does so for all lines at once.
pub fn coalesce(records: impl Iterator<Item = Record>) -> Home {
    let mut lines: Vec<LineWords> = Vec::new();
    let mut zeros = Zeros::default();
    for record in records {
        match record {
            Record::Lines(more) => lines.extend(more),
            Record::Reserve(range) => zeros.reserve(range),
            Record::Discard(range) => zeros.discard(range, lines.len()),
            Record::Truncate(len) => zeros.truncate(len, lines.len()),
        }
    }
    let mut order: Vec<u32> = (0..lines.len() as u32).collect();
    order.sort_by_key(|&index| lines[index as usize].line);
    let mut runs = Runs::default();
    for of_line in order.chunk_by(|&a, &b| lines[a as usize].line == lines[b as usize].line) {
        let line = lines[of_line[0] as usize].line;
        // What was stored before the line was discarded is gone.
        let from = zeros.newest_over(line);
        let (mut mask, mut words) = (0, [0; WORDS_PER_LINE]);
        for &index in of_line.iter().filter(|&&index| index as usize >= from) {
            let newer = &lines[index as usize];
            mask |= newer.mask;
            for (word, &content) in words
                .iter_mut()
                .zip(&newer.words)
                .enumerate()
                .filter_map(|(number, pair)| (newer.mask >> number & 1 != 0).then_some(pair))
            {
                *word = content;
            }
        }
        for number in (0..WORDS_PER_LINE).filter(|number| mask >> number & 1 != 0) {
            runs.push(line + number as u64 * WORD_BYTES, words[number]);
        }
    }
    Home {
        at_least: zeros.at_least,
        cut: zeros.cut,
        discarded: zeros.discarded.into_iter().collect(),
        zeroed: zeros.zeroed.into_iter().collect(),
        words: runs,
    }
}

/// What was discarded, and which lines came before.
#[derive(Default)]
struct Zeros {
    at_least: u64,
    cut: Option<u64>,
    discarded: RangeSet<u64>,
    zeroed: RangeSet<u64>,
    /// Ranges that were discarded, with the number of lines before.
    events: Vec<(Range<u64>, usize)>,
}

impl Zeros {
    fn reserve(&mut self, range: Range<u64>) {
        self.at_least = self.at_least.max(range.end);
        let again: Vec<_> = self.discarded.overlapping(&range).cloned().collect();
        for part in again {
            self.zeroed
                .insert(part.start.max(range.start)..part.end.min(range.end));
        }
        self.discarded.remove(range);
    }

    fn discard(&mut self, range: Range<u64>, before: usize) {
        if range.is_empty() {
            return;
        }
        self.zeroed.remove(range.clone());
        self.discarded.insert(range.clone());
        self.events.push((range, before));
    }

    fn truncate(&mut self, len: u64, before: usize) {
        self.discard(len..u64::MAX, before);
        self.cut = Some(self.cut.map_or(len, |cut| cut.min(len)));
        self.at_least = self.at_least.min(len);
    }

    /// The number of lines before the newest discarding of a line.
    fn newest_over(&self, line: u64) -> usize {
        let over = self
            .events
            .iter()
            .filter(|(range, _)| range.contains(&line));
        over.map(|&(_, before)| before).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use firn_units::{FRAME_BYTES, LINE_BYTES};

    use super::*;

    const FRAMES: u64 = 6;

    /// The pool's bytes, word by word, and which frames have blocks.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct File {
        words: Vec<u64>,
        backed: Vec<bool>,
    }

    impl File {
        fn new() -> Self {
            Self {
                words: vec![0; (FRAMES * FRAME_BYTES / WORD_BYTES) as usize],
                backed: vec![false; FRAMES as usize],
            }
        }

        fn zero(&mut self, range: Range<u64>, backed: Option<bool>) {
            let end = range.end.min(FRAMES * FRAME_BYTES);
            for at in (range.start..end).step_by(WORD_BYTES as usize) {
                self.words[(at / WORD_BYTES) as usize] = 0;
            }
            for frame in range.start / FRAME_BYTES..end / FRAME_BYTES {
                self.backed[frame as usize] = backed.unwrap_or(self.backed[frame as usize]);
            }
        }

        /// What a record means.
        fn take(&mut self, record: &Record) {
            match record {
                Record::Lines(lines) => {
                    for line in lines {
                        for number in 0..WORDS_PER_LINE {
                            if line.mask >> number & 1 != 0 {
                                let word = line.line / WORD_BYTES + number as u64;
                                self.words[word as usize] = line.words[number];
                            }
                        }
                    }
                }
                Record::Reserve(range) => {
                    for frame in range.start / FRAME_BYTES..range.end / FRAME_BYTES {
                        self.backed[frame as usize] = true;
                    }
                }
                Record::Discard(range) => self.zero(range.clone(), Some(false)),
                Record::Truncate(len) => self.zero(*len..FRAMES * FRAME_BYTES, Some(false)),
            }
        }

        fn bring_home(&mut self, home: &Home) {
            if let Some(cut) = home.cut {
                self.zero(cut..FRAMES * FRAME_BYTES, None);
            }
            for range in &home.discarded {
                self.zero(range.clone(), Some(false));
            }
            for range in &home.zeroed {
                self.zero(range.clone(), Some(true));
            }
            for (at, content) in home.words.iter() {
                for (word, bytes) in (at / WORD_BYTES..).zip(content.chunks(8)) {
                    self.words[word as usize] = u64::from_le_bytes(bytes.try_into().unwrap());
                }
            }
        }
    }

    fn any_record(random: &mut fastrand::Rng, value: &mut u64) -> Record {
        let range = |random: &mut fastrand::Rng| {
            let start = random.u64(..FRAMES);
            start * FRAME_BYTES..random.u64(start + 1..=FRAMES) * FRAME_BYTES
        };
        match random.u8(..10) {
            0 => Record::Discard(range(random)),
            1 => Record::Reserve(range(random)),
            2 => Record::Truncate(random.u64(..FRAMES) * FRAME_BYTES),
            _ => {
                let mut line = |random: &mut fastrand::Rng| {
                    let (line, mask) = (random.u64(..FRAMES * 3), random.u8(..));
                    *value += 1;
                    LineWords {
                        line: line / 3 * FRAME_BYTES + line % 3 * LINE_BYTES,
                        mask,
                        words: core::array::from_fn(|number| match mask >> number & 1 {
                            0 => 0,
                            _ => *value % 3 * *value,
                        }),
                    }
                };
                Record::Lines((0..random.u8(..4)).map(|_| line(random)).collect())
            }
        }
    }

    /// Coalesced or one after the other, in one checkpoint or in several, and twice: the words are the same.
    #[test]
    fn coalesced_records_come_to_what_they_come_to_one_by_one() {
        for seed in 0..3000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut value = 0;
            let records: Vec<Record> = (0..random.usize(1..40))
                .map(|_| any_record(&mut random, &mut value))
                .collect();
            let (mut one_by_one, mut home) = (File::new(), File::new());
            records.iter().for_each(|record| one_by_one.take(record));
            let cut = random.usize(..=records.len());
            for checkpoint in [&records[..cut], &records[cut..]] {
                let checkpoint = coalesce(checkpoint.iter().cloned());
                home.bring_home(&checkpoint);
                home.bring_home(&checkpoint);
                let runs: Vec<_> = checkpoint.words.iter().collect();
                for pair in runs.windows(2) {
                    assert!(pair[0].0 + (pair[0].1.len() as u64) < pair[1].0);
                }
            }
            assert_eq!(home.words, one_by_one.words, "seed {seed}");
        }
    }
}
