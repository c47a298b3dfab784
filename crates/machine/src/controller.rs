//! The memory controller: the write-pending queue, and the devices behind it.
//!
//! A line is persistent from the moment when the queue accepts it: a power failure drains the queue.

use std::collections::VecDeque;

use crate::description::Description;
use crate::device::{Device, DeviceCounts};
use crate::time::{CYCLE, Ticks, cycles};

/// First line of volatile memory; those below are persistent memory's. Each has 128 GiB, so that the number of
/// a line has 32 bits.
pub(crate) const FIRST_DRAM_LINE: u64 = 1 << 31;

/// A line on its way to persistent memory.
#[derive(Clone, Copy)]
struct Pending {
    line: u64,
    written_at: Ticks,
    /// From here on the device takes it, and another store to the line needs an entry of its own.
    begun_at: Ticks,
}

/// What the queue did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// Lines accepted.
    pub accepted: u64,
    /// Of them, those that an entry of their line took in.
    pub coalesced: u64,
    /// Reads that an entry answered.
    pub forwarded: u64,
    /// Ticks that lines waited for an entry.
    pub(crate) full_ticks: Ticks,
}

impl QueueCounts {
    /// Cycles that lines waited for an entry.
    pub fn full_cycles(&self) -> u64 {
        self.full_ticks / CYCLE
    }
}

/// The controller and what lies behind it.
pub(crate) struct Controller {
    entries: usize,
    accept: Ticks,
    queue: VecDeque<Pending>,
    nvm: Device,
    dram: Device,
    counts: QueueCounts,
}

impl Controller {
    pub(crate) fn new(described: &Description) -> Self {
        let clock = described.core.clock_mhz;
        Self {
            entries: described.controller.queue_entries as usize,
            accept: cycles(described.controller.accept_cycles),
            queue: VecDeque::with_capacity(described.controller.queue_entries as usize),
            nvm: Device::new(&described.nvm, clock),
            dram: Device::new(&described.dram, clock),
            counts: QueueCounts::default(),
        }
    }

    pub(crate) fn counts(&self) -> (QueueCounts, DeviceCounts, DeviceCounts) {
        (self.counts, self.nvm.counts(), self.dram.counts())
    }

    /// When a line that is asked for at `now` is there.
    pub(crate) fn read(&mut self, line: u64, now: Ticks) -> Ticks {
        if line >= FIRST_DRAM_LINE {
            return self.dram.read(line - FIRST_DRAM_LINE, now);
        }
        self.retire(now);
        if self.queue.iter().any(|pending| pending.line == line) {
            self.counts.forwarded += 1;
            return now + self.accept;
        }
        self.nvm.read(line, now)
    }

    /// When a line that is sent at `now` is accepted, and so persistent.
    pub(crate) fn write(&mut self, line: u64, now: Ticks) -> Ticks {
        if line >= FIRST_DRAM_LINE {
            self.dram.write(line - FIRST_DRAM_LINE, now);
            return now;
        }
        self.retire(now);
        self.counts.accepted += 1;
        let waits = |pending: &&Pending| pending.line == line && pending.begun_at > now;
        if self.queue.iter().any(|pending| waits(&pending)) {
            self.counts.coalesced += 1;
            return now + self.accept;
        }
        let mut entered = now;
        if self.queue.len() == self.entries
            && let Some(first) = self.queue.pop_front()
        {
            entered = first.written_at.max(now);
            self.counts.full_ticks += entered - now;
        }
        let written_at = self.nvm.write(line, entered + self.accept);
        let begun_at = self.nvm.last_begun();
        // Banks finish out of order, the queue is in the order of the ends.
        let place = self
            .queue
            .partition_point(|pending| pending.written_at <= written_at);
        self.queue.insert(
            place,
            Pending {
                line,
                written_at,
                begun_at,
            },
        );
        entered + self.accept
    }

    fn retire(&mut self, now: Ticks) {
        while self
            .queue
            .front()
            .is_some_and(|first| first.written_at <= now)
        {
            self.queue.pop_front();
        }
    }
}
