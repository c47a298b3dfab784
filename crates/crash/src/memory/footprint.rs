//! What a run read: the loads of words that may differ from image to image.
//!
//! A word is fresh until its first load, which is recorded, or its first store, after which its content says nothing
//! about the image. Fresh bits are kept beside the words ([`crate::memory::pages`]), so other loads cost a test of a
//! bit.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use firn_units::WORD_BYTES;

use crate::memory::cells::line_of;
use crate::memory::pages::Memory;
use crate::memory::torn::Torn;

/// What a run looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Looked {
    /// A word, or a mark: the first load, before any store to it.
    Word(u64),
    /// Whether any line of a copy is marked. Names the first of the lines that may be either; the value also holds
    /// their number ([`Scan`]).
    Scans(u64),
    /// Whether a line is unmarked, as its completion begins.
    Begins(u64),
    /// What the completion made of an unmarked line.
    Ends(u64),
}

/// The answer to the question whether any line of a copy is marked.
pub(crate) struct Scan {
    /// Lines from the first one that may be marked or not.
    pub(crate) lines: u64,
    pub(crate) is_marked: bool,
}

impl Scan {
    /// The answer encoded as a number.
    pub(crate) fn value(&self) -> u64 {
        self.lines << 1 | u64::from(self.is_marked)
    }

    pub(crate) fn of_value(value: u64) -> Self {
        Self {
            lines: value >> 1,
            is_marked: value & 1 != 0,
        }
    }
}

/// What a run looked at, and the value found.
#[derive(Clone, Copy)]
pub(crate) struct FirstLoad {
    pub(crate) what: Looked,
    pub(crate) value: u64,
    /// Events of the trace before it.
    pub(crate) at: u32,
}

/// The loads that were recorded.
#[derive(Default)]
pub(crate) struct Footprint {
    loads: Mutex<Vec<FirstLoad>>,
    /// Events of the trace so far.
    events: AtomicU32,
    /// Lines whose words become fresh again when recovery is complete.
    again: Mutex<Vec<u64>>,
    /// Lines that count as marked in that question, whatever the image says.
    marked: Mutex<Vec<u64>>,
    /// The contents that checksums were made of.
    torn: Mutex<Torn>,
}

impl Footprint {
    pub(crate) fn set_events(&self, events: usize) {
        self.events.store(events as u32, Relaxed);
    }

    /// Sets the lines whose next loads are recorded again when recovery is complete.
    pub(crate) fn mark_again(&self, lines: Vec<u64>) {
        *self.again.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    /// Sets the lines that count as marked.
    pub(crate) fn set_marked(&self, lines: Vec<u64>) {
        *self.marked.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    /// Whether one of these lines counts as marked.
    pub(crate) fn counts_as_marked(&self, lines: &Range<u64>) -> bool {
        let marked = self.marked.lock();
        let marked = marked.unwrap_or_else(PoisonError::into_inner);
        marked.iter().any(|line| lines.contains(line))
    }

    /// Calls `what` with the contents that checksums were made of.
    pub(crate) fn with_torn<R>(&self, what: impl FnOnce(&mut Torn) -> R) -> R {
        what(&mut self.torn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records what a run found.
    pub(crate) fn record(&self, what: Looked, value: u64) {
        let at = self.events.load(Relaxed);
        let loads = self.loads.lock();
        let load = FirstLoad { what, value, at };
        loads.unwrap_or_else(PoisonError::into_inner).push(load);
    }

    /// Loads recorded so far.
    pub(crate) fn len(&self) -> usize {
        let loads = self.loads.lock();
        loads.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Starts over. Returns what was recorded.
    pub(crate) fn take(&self) -> Vec<FirstLoad> {
        self.events.store(0, Relaxed);
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        // The next run will record about as many loads.
        let room = Vec::with_capacity(loads.len());
        core::mem::replace(&mut *loads, room)
    }

    /// Makes the lines fresh that [`Footprint::mark_again`] was given.
    pub(crate) fn begin_verification(&self, memory: &Memory) {
        let again = self.again.lock();
        for &line in &*again.unwrap_or_else(PoisonError::into_inner) {
            memory.mark_fresh(line);
        }
    }

    /// The cache's content of a word; the load is recorded if it has to be.
    #[inline(always)]
    pub(crate) fn load(&self, memory: &Memory, word: u64) -> u64 {
        let (value, fresh) = memory.look(word);
        if fresh {
            self.record_load(memory, word, value);
        }
        value
    }

    #[cold]
    fn record_load(&self, memory: &Memory, word: u64, value: u64) {
        memory.clear_fresh_word(word);
        self.record(Looked::Word(word), value);
    }

    /// The cache's content of words of one line; the loads are recorded if they have to be.
    pub(crate) fn load_words(
        &self,
        memory: &Memory,
        first: u64,
        into: &mut [[u8; WORD_BYTES as usize]],
    ) {
        if !memory.has_fresh(line_of(first)) {
            return memory.copy_words(first, into);
        }
        let at = self.events.load(Relaxed);
        let loads = self.loads.lock();
        let mut loads = loads.unwrap_or_else(PoisonError::into_inner);
        for (into, word) in into.iter_mut().zip(first..) {
            let (value, fresh) = memory.look(word);
            if fresh {
                memory.clear_fresh_word(word);
                let what = Looked::Word(word);
                loads.push(FirstLoad { what, value, at });
            }
            *into = value.to_le_bytes();
        }
    }

    /// Records a load of every word: the caller looks at all of memory.
    pub(crate) fn load_everything(&self, memory: &Memory) {
        for word in memory.fresh_words() {
            self.load(memory, word);
        }
    }
}
