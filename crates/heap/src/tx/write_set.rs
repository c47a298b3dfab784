//! The write set: the stores of a transaction so far, one shadow per line.
//!
//! Nothing reaches the objects before the transaction's entry is durable (rule R1), so the
//! transaction's own reads look here first. An index by open addressing finds a line's shadow; it is
//! emptied by raising its era.

use core::cell::Cell;

use firn_format::lane::Record;
use firn_units::{LINE_BYTES, VirtAddr, WORDS_PER_LINE};

/// The lines to which a transaction may have stored: one bit for each, by its number. Lines share bits; where the bit
/// is clear nothing was stored, so most reads need not look into the write set.
#[derive(Default)]
pub(crate) struct StoredLines(Cell<u64>);

impl StoredLines {
    #[inline(always)]
    fn bit(at: VirtAddr) -> u32 {
        (at.0 / LINE_BYTES % u64::from(u64::BITS)) as u32
    }

    /// Whether nothing was stored.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether something may have been stored to the line of `at`.
    #[inline(always)]
    pub(crate) fn may_hold(&self, at: VirtAddr) -> bool {
        self.0.get() >> Self::bit(at) & 1 != 0
    }

    /// Notes a store of a word.
    #[inline(always)]
    pub(crate) fn note_word(&self, at: VirtAddr) {
        self.0.set(self.0.get() | 1 << Self::bit(at));
    }

    /// Notes a store of some bytes.
    #[inline]
    pub(crate) fn note(&self, at: VirtAddr, bytes: u64) {
        let lines = (at.0 % LINE_BYTES + bytes).div_ceil(LINE_BYTES);
        let bits = u64::MAX
            .checked_shl(lines as u32)
            .map_or(u64::MAX, |above| !above);
        self.0.set(self.0.get() | bits.rotate_left(Self::bit(at)));
    }

    pub(crate) fn clear(&self) {
        self.0.set(0);
    }
}

/// Shadow of one line: the words of `mask` were stored.
struct Shadow {
    at: u64,
    mask: u8,
    words: [u64; WORDS_PER_LINE],
}

/// A word's state before a nested transaction changed it.
struct Undo {
    shadow: u32,
    word: u8,
    was_stored: bool,
    old: u64,
}

/// Stores of a transaction, in shadows of whole lines.
pub(crate) struct WriteSet {
    shadows: Vec<Shadow>,
    /// Era in the upper half, position in `shadows` in the lower.
    index: Vec<u64>,
    /// 64 minus the number of bits of an index position.
    shift: u32,
    era: u32,
    /// The last shadow that was looked up: the next word often lies in the same line.
    last: Cell<usize>,
    /// Kept only while a nested transaction is open.
    undo: Vec<Undo>,
    nested: usize,
}

/// A point to which the write set can be rolled back.
pub(crate) struct Mark(usize);

const FIRST_INDEX: usize = 64;

/// The position in an index of 2^(64 - `shift`) places at which the search for a line begins.
///
/// A transaction's lines lie in steps, one behind the other or objects apart. A single product distributes some steps
/// unevenly: for a million adjacent lines a search took 23 probes with bits from the product's middle, and 25 with its
/// upper bits for lines 2 MiB apart. Folding it and multiplying again is even for all (1.5 probes).
#[inline(always)]
fn home(line: u64, shift: u32) -> usize {
    let product = (line / LINE_BYTES).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let folded = product ^ product >> 32;
    (folded.wrapping_mul(0xd6e8_feb8_6659_fd93) >> shift) as usize
}

impl WriteSet {
    pub(crate) fn new() -> Self {
        Self {
            shadows: Vec::new(),
            index: vec![0; FIRST_INDEX],
            shift: u64::BITS - FIRST_INDEX.ilog2(),
            era: 1,
            last: Cell::new(0),
            undo: Vec::new(),
            nested: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.shadows.clear();
        self.undo.clear();
        self.nested = 0;
        self.era = self.era.wrapping_add(1);
        if self.era == 0 {
            self.index.fill(0);
            self.era = 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shadows.is_empty()
    }

    /// How many lines were stored to.
    pub(crate) fn len(&self) -> u64 {
        self.shadows.len() as u64
    }

    #[inline]
    fn find(&self, line: u64) -> Option<usize> {
        let mask = self.index.len() - 1;
        let mut probe = home(line, self.shift);
        loop {
            let slot = self.index[probe];
            if (slot >> 32) as u32 != self.era {
                return None;
            }
            let position = slot as u32 as usize;
            if self.shadows[position].at == line {
                return Some(position);
            }
            probe = (probe + 1) & mask;
        }
    }

    #[inline]
    fn shadow(&mut self, line: u64) -> &mut Shadow {
        if self
            .shadows
            .get(self.last.get())
            .is_none_or(|s| s.at != line)
        {
            let found = self.find(line).unwrap_or_else(|| self.insert(line));
            self.last.set(found);
        }
        &mut self.shadows[self.last.get()]
    }

    fn insert(&mut self, line: u64) -> usize {
        let position = self.shadows.len();
        self.shadows.push(Shadow {
            at: line,
            mask: 0,
            words: [0; WORDS_PER_LINE],
        });
        if (position + 1) * 2 > self.index.len() {
            self.index = vec![0; self.index.len() * 2];
            self.shift -= 1;
            for position in 0..position {
                self.enter(self.shadows[position].at, position);
            }
        }
        self.enter(line, position);
        position
    }

    #[inline]
    fn enter(&mut self, line: u64, position: usize) {
        let mask = self.index.len() - 1;
        let mut probe = home(line, self.shift);
        while (self.index[probe] >> 32) as u32 == self.era {
            probe = (probe + 1) & mask;
        }
        self.index[probe] = u64::from(self.era) << 32 | position as u64;
    }

    /// The word at `at`, if this transaction stored it.
    #[inline]
    pub(crate) fn word(&self, at: VirtAddr) -> Option<u64> {
        let line = at.line_start().0;
        let shadow = match self.shadows.get(self.last.get()) {
            Some(last) if last.at == line => last,
            _ => {
                let found = self.find(line)?;
                self.last.set(found);
                &self.shadows[found]
            }
        };
        let word = (at.0 % LINE_BYTES / 8) as usize;
        (shadow.mask >> word & 1 != 0).then(|| shadow.words[word])
    }

    /// Stores the word at `at`.
    #[inline]
    pub(crate) fn store(&mut self, at: VirtAddr, value: u64) {
        let word = (at.0 % LINE_BYTES / 8) as usize;
        let nested = self.nested > 0;
        let shadow = self.shadow(at.line_start().0);
        let (was_stored, old) = (shadow.mask >> word & 1 != 0, shadow.words[word]);
        shadow.mask |= 1 << word;
        shadow.words[word] = value;
        if nested {
            self.undo.push(Undo {
                shadow: self.last.get() as u32,
                word: word as u8,
                was_stored,
                old,
            });
        }
    }

    /// Stores bytes. `home` returns the other bytes of the first and last word if these words were not stored yet.
    pub(crate) fn store_bytes(
        &mut self,
        at: VirtAddr,
        bytes: &[u8],
        home: impl Fn(VirtAddr) -> u64,
    ) {
        let mut at = at;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = (at.0 % 8) as usize;
            let word_at = VirtAddr(at.0 & !7);
            if within == 0 && rest.len() >= 8 {
                let room = ((LINE_BYTES - word_at.0 % LINE_BYTES) / 8) as usize;
                let count = room.min(rest.len() / 8);
                let mut words = [0u64; 8];
                for (word, bytes) in words.iter_mut().zip(rest.chunks_exact(8)).take(count) {
                    *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                }
                self.store_words(word_at, &words[..count]);
                rest = &rest[count * 8..];
                at = at + count as u64 * 8;
            } else {
                let step = (8 - within).min(rest.len());
                let old = self.word(word_at).unwrap_or_else(|| home(word_at));
                let mut word = old.to_le_bytes();
                word[within..within + step].copy_from_slice(&rest[..step]);
                self.store(word_at, u64::from_le_bytes(word));
                rest = &rest[step..];
                at = at + step as u64;
            }
        }
    }

    /// Stores consecutive words, of a new object.
    pub(crate) fn store_words(&mut self, at: VirtAddr, words: &[u64]) {
        let mut at = at;
        let mut rest = words;
        while !rest.is_empty() {
            let first = (at.0 % LINE_BYTES / 8) as usize;
            let here = rest.len().min(8 - first);
            let (now, later) = rest.split_at(here);
            if self.nested > 0 {
                for (i, &word) in now.iter().enumerate() {
                    self.store(at + i as u64 * 8, word);
                }
            } else {
                let shadow = self.shadow(at.line_start().0);
                match now.try_into() {
                    Ok(line) => shadow.words = line,
                    Err(_) => {
                        let words = shadow.words[first..].iter_mut();
                        words.zip(now).for_each(|(word, &now)| *word = now);
                    }
                }
                shadow.mask |= (((1u16 << here) - 1) << first) as u8;
            }
            at = at + here as u64 * 8;
            rest = later;
        }
    }

    /// Forgets the words of an object that is freed (rule A3).
    pub(crate) fn forget(&mut self, at: VirtAddr, len: u64) {
        let (start, end) = (at.0, at.0 + len);
        let lines = (end - start).div_ceil(LINE_BYTES) + 1;
        if lines as usize > self.shadows.len() {
            for shadow in &mut self.shadows {
                forget_in(shadow, start, end);
            }
        } else {
            let mut line = at.line_start().0;
            while line < end {
                if let Some(position) = self.find(line) {
                    forget_in(&mut self.shadows[position], start, end);
                }
                line += LINE_BYTES;
            }
        }
    }

    /// Appends one record per line to `payload`.
    pub(crate) fn emit(&self, payload: &mut Vec<u64>) {
        // The most that the lines can take: the payload of a long transaction is not copied again and again as it
        // grows.
        payload.reserve(self.shadows.len() * (WORDS_PER_LINE + 1));
        for s in self.shadows.iter().filter(|s| s.mask != 0) {
            Record::push_line(payload, VirtAddr(s.at), s.mask, &s.words);
        }
    }

    /// Every line with its stored words, in order of first store.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (VirtAddr, u8, &[u64; 8])> {
        self.shadows
            .iter()
            .filter(|s| s.mask != 0)
            .map(|s| (VirtAddr(s.at), s.mask, &s.words))
    }

    /// Begins a nested transaction.
    pub(crate) fn mark(&mut self) -> Mark {
        self.nested += 1;
        Mark(self.undo.len())
    }

    /// Ends the innermost nested transaction and keeps its stores.
    pub(crate) fn keep(&mut self) {
        self.nested -= 1;
        if self.nested == 0 {
            self.undo.clear();
        }
    }

    /// Ends the innermost nested transaction and drops its stores.
    pub(crate) fn roll_back(&mut self, mark: &Mark) {
        for undo in self.undo.drain(mark.0..).rev() {
            let shadow = &mut self.shadows[undo.shadow as usize];
            shadow.words[undo.word as usize] = undo.old;
            if !undo.was_stored {
                shadow.mask &= !(1 << undo.word);
            }
        }
        self.nested -= 1;
    }
}

fn forget_in(shadow: &mut Shadow, start: u64, end: u64) {
    for word in 0..8 {
        let at = shadow.at + word * 8;
        if at >= start && at < end {
            shadow.mask &= !(1 << word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_stored_last() {
        let mut set = WriteSet::new();
        for i in 0..1000u64 {
            set.store(VirtAddr(i * 40), i);
        }
        set.store(VirtAddr(40), 7);
        assert_eq!(set.word(VirtAddr(40)), Some(7));
        assert_eq!(set.word(VirtAddr(48)), None);
        set.clear();
        assert_eq!(set.word(VirtAddr(40)), None);
    }

    #[test]
    fn noted_lines_may_hold_and_others_do_not() {
        for (start, bytes) in
            (0..200).flat_map(|start| (1..300).map(move |bytes| (start * 8, bytes)))
        {
            let stored = StoredLines::default();
            assert!(stored.is_empty());
            stored.note_word(VirtAddr(77 * LINE_BYTES));
            stored.note(VirtAddr(start), bytes);
            let noted = start / LINE_BYTES..=(start + bytes - 1) / LINE_BYTES;
            for line in 0..2 * 64 {
                let of_range = noted.clone().any(|noted| noted % 64 == line % 64);
                let expected = of_range || line % 64 == 77 % 64;
                assert_eq!(stored.may_hold(VirtAddr(line * LINE_BYTES)), expected);
            }
        }
        let stored = StoredLines::default();
        stored.note(VirtAddr(8), 64 * LINE_BYTES);
        assert!((0..64).all(|line| stored.may_hold(VirtAddr(line * LINE_BYTES))));
        stored.clear();
        assert!(stored.is_empty());
    }

    /// How many index positions finding a line probes.
    fn looks(set: &WriteSet, line: u64) -> usize {
        let mask = set.index.len() - 1;
        let first = home(line, set.shift);
        let is_it = |probe: &usize| {
            let position = set.index[(first + probe) & mask] as u32 as usize;
            set.shadows[position].at == line
        };
        (0..).find(is_it).unwrap() + 1
    }

    /// Finding a line takes few probes, however many lines were stored to, and however they lie.
    #[test]
    fn a_line_is_found_in_two_looks_on_average() {
        // One object per line, three lines in each slot of four, random lines at one in five, one per page, one per
        // huge page.
        let patterns: [fn(u64) -> u64; 5] = [
            |k| k,
            |k| k / 3 * 4 + k % 3,
            |k| k.wrapping_mul(7_919) % 5_000_011,
            |k| k * 64,
            |k| k * 32_768,
        ];
        for (number, line) in patterns.into_iter().enumerate() {
            let mut set = WriteSet::new();
            let (mut stored, mut most) = (0, 1_000);
            while most <= 1_000_000 {
                for k in stored..most {
                    set.store(VirtAddr((0x38000 + line(k)) * LINE_BYTES), k);
                }
                (stored, most) = (most, most * 3 / 2);
                let lines = set.shadows.iter().map(|shadow| shadow.at);
                let sum: usize = lines.map(|line| looks(&set, line)).sum();
                let average = sum as f64 / set.len() as f64;
                assert!(
                    average < 2.0,
                    "pattern {number}, {stored} lines: {average} looks"
                );
            }
        }
    }

    #[test]
    fn a_nested_rollback_restores() {
        let mut set = WriteSet::new();
        set.store(VirtAddr(64), 1);
        let outer = set.mark();
        set.store(VirtAddr(64), 2);
        let inner = set.mark();
        set.store(VirtAddr(64), 3);
        set.store(VirtAddr(72), 4);
        set.roll_back(&inner);
        assert_eq!(
            (set.word(VirtAddr(64)), set.word(VirtAddr(72))),
            (Some(2), None)
        );
        set.roll_back(&outer);
        assert_eq!(set.word(VirtAddr(64)), Some(1));
    }

    #[test]
    fn forgotten_objects_leave_their_neighbours() {
        let mut set = WriteSet::new();
        for word in 0..16 {
            set.store(VirtAddr(word * 8), word);
        }
        set.forget(VirtAddr(48), 32);
        let left: Vec<_> = (0..16).filter_map(|w| set.word(VirtAddr(w * 8))).collect();
        assert_eq!(left, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15]);
    }
}
