//! Loads that an explorer need not learn in full: of contents behind a checksum, and of marks.

use core::ops::Range;

use firn_units::{VirtAddr, WORD_BYTES};

use crate::medium::shared::Shared;
use crate::memory::cells::{line_of, mark_of};
use crate::memory::event::Event;
use crate::memory::footprint::{Looked, Scan};
use crate::memory::torn::Torn;

impl Shared {
    /// Performs `Memory::load_checked` where part of it need not be recorded; otherwise does nothing.
    pub(crate) fn load_torn(
        &self,
        at: VirtAddr,
        into: &mut [u8],
        is_whole: &dyn Fn(&[u8]) -> bool,
    ) -> Option<bool> {
        let (words, rest) = into.as_chunks_mut::<{ WORD_BYTES as usize }>();
        let is_even = at.bytes().is_multiple_of(WORD_BYTES) && rest.is_empty();
        if !is_even || words.is_empty() || self.simulating() || self.is_dead() {
            return None;
        }
        let first = at.bytes() / WORD_BYTES;
        let lines = line_of(first)..=line_of(first + words.len() as u64 - 1);
        let varies = lines.clone().any(|line| self.memory.has_fresh(line));
        let is_known = |torn: &mut Torn| torn.knows(lines.clone());
        if !varies || !self.footprint.with_torn(is_known) {
            return None;
        }
        for (word, place) in words.iter_mut().zip(first..) {
            *word = self.memory.load(place).to_le_bytes();
        }
        if is_whole(words.as_flattened()) {
            return None;
        }
        let whole = self.footprint.with_torn(|torn| {
            torn.spare(lines);
            torn.whole(first, words, is_whole)
        });
        if let Some(whole) = whole {
            let equal = whole.iter().zip(&*words).take_while(|(a, b)| a == b);
            let equal = equal.count() as u64;
            (first..=first + equal).for_each(|word| _ = self.load(word));
        }
        into.fill(0);
        Some(false)
    }

    /// Begins to complete a line if marks need not be recorded in full. Returns whether the line is unmarked.
    pub(crate) fn begin_completion(&self, line: u64) -> Option<bool> {
        if !self.spares_mark(line) {
            return None;
        }
        let unmarked = self.memory.load(mark_of(line)) == 0;
        self.footprint
            .record(Looked::Begins(line), u64::from(unmarked));
        Some(unmarked)
    }

    /// Whether a line of a copy is marked.
    pub(crate) fn any_marked(&self, mut lines: Range<u64>) -> bool {
        let is_fresh = |line: &u64| self.memory.look(mark_of(*line)).1;
        let first = lines.clone().find(is_fresh);
        let Some(first) = first.filter(|_| self.spares_marks(lines.clone())) else {
            return lines.any(|line| self.load(mark_of(line)) != 0);
        };
        let is_marked = |line: &u64| self.memory.load(mark_of(*line)) != 0;
        // Marks that are not fresh are equal in all images that come here.
        if lines
            .clone()
            .any(|line| !is_fresh(&line) && is_marked(&line))
        {
            return true;
        }
        let mut lines = first..lines.end;
        let scan = Scan {
            lines: lines.end - first,
            is_marked: self.footprint.counts_as_marked(&lines)
                || lines.any(|line| is_marked(&line)),
        };
        self.footprint.record(Looked::Scans(first), scan.value());
        scan.is_marked
    }

    /// Whether the mark of a line may differ from image to image and need not be recorded in full.
    fn spares_mark(&self, line: u64) -> bool {
        self.memory.look(mark_of(line)).1 && self.spares_marks(line..line + 1)
    }

    /// Whether the marks of these lines need not be recorded in full. A line that the run stored to is excluded: the
    /// current class does not have its content.
    fn spares_marks(&self, lines: Range<u64>) -> bool {
        let spares = || self.footprint.with_torn(|torn| torn.spares());
        if self.simulating() || self.is_dead() || !spares() {
            return false;
        }
        let state = self.lock();
        let mut stored_to = state.trace.iter().flatten().filter_map(Event::stores_to);
        !stored_to.any(|line| lines.contains(&line))
    }

    /// An unmarked line is complete: from here on it behaves like a marked one.
    pub(crate) fn end_completion(&self, line: u64) {
        assert!(
            self.memory.load(mark_of(line)) != 0,
            "a line that was completed is marked"
        );
        self.footprint.record(Looked::Ends(line), 0);
        self.memory.mark_fresh(line);
    }
}
