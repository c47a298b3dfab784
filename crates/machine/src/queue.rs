//! The write-pending queue: lines on their way to persistent memory.

use std::collections::VecDeque;

use crate::time::Ticks;

/// Parts of the filter: many more than a queue usually has entries, so that few lines share one.
const PARTS: usize = 2048;

/// A line on its way to persistent memory.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) line: u64,
    pub(crate) written_at: Ticks,
    /// From this time on the device takes it, and another store to the line needs an entry of its own.
    pub(crate) begun_at: Ticks,
}

/// Entries, in the order in which the device will have written them.
pub(crate) struct Queue {
    entries: usize,
    pending: VecDeque<Pending>,
    /// Number of entries whose lines fall into each part. If it is zero, nothing is searched.
    filter: Box<[u32; PARTS]>,
}

impl Queue {
    pub(crate) fn new(entries: usize) -> Self {
        Self {
            entries,
            pending: VecDeque::with_capacity(entries),
            filter: Box::new([0; PARTS]),
        }
    }

    /// Whether it has an entry of this line that satisfies `holds`.
    #[inline(always)]
    pub(crate) fn has(&self, line: u64, holds: impl Fn(&Pending) -> bool) -> bool {
        self.filter[part(line)] > 0
            && self
                .pending
                .iter()
                .any(|pending| pending.line == line && holds(pending))
    }

    /// Removes the entries whose lines have been written by `now`.
    #[inline(always)]
    pub(crate) fn retire(&mut self, now: Ticks) {
        while self
            .pending
            .front()
            .is_some_and(|first| first.written_at <= now)
        {
            self.drop_first();
        }
    }

    /// Returns when there is an entry for one more line.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, now: Ticks) -> Ticks {
        if self.pending.len() < self.entries {
            return now;
        }
        self.drop_first().unwrap_or(now).max(now)
    }

    /// Inserts an entry. Banks finish out of order, but most entries belong at the end.
    #[inline(always)]
    pub(crate) fn insert(&mut self, new: Pending) {
        self.filter[part(new.line)] += 1;
        let is_earlier = |pending: &Pending| pending.written_at <= new.written_at;
        if self.pending.back().is_none_or(is_earlier) {
            return self.pending.push_back(new);
        }
        let place = self.pending.partition_point(is_earlier);
        self.pending.insert(place, new);
    }

    /// Removes the first entry. Returns when its line has been written.
    #[inline(always)]
    fn drop_first(&mut self) -> Option<Ticks> {
        let first = self.pending.pop_front()?;
        self.filter[part(first.line)] -= 1;
        Some(first.written_at)
    }
}

/// The part of the filter that a line falls into.
#[inline(always)]
fn part(line: u64) -> usize {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    (line.wrapping_mul(SPREAD) >> (64 - PARTS.ilog2())) as usize
}
