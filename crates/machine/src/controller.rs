//! The memory controller: the write-pending queue, and the devices behind it.
//!
//! A line is persistent once the queue accepts it: a power failure drains the queue.

use crate::description::Description;
use crate::device::{Device, DeviceCounts};
use crate::queue::{Pending, Queue};
use crate::time::{CYCLE, Ticks, cycles};
use crate::traffic::Cause;

/// First line of volatile memory; lower lines belong to persistent memory. Each has 128 GiB, so that a line's number
/// fits into 32 bits.
pub(crate) const FIRST_DRAM_LINE: u64 = 1 << 31;

/// Counts of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// Lines accepted.
    pub accepted: u64,
    /// Accepted lines that an existing entry of their line took in.
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

/// The controller and the devices behind it.
pub(crate) struct Controller {
    accept: Ticks,
    queue: Queue,
    nvm: Device,
    dram: Device,
    counts: QueueCounts,
}

impl Controller {
    pub(crate) fn new(described: &Description) -> Self {
        let clock = described.core.clock_mhz;
        Self {
            accept: cycles(described.controller.accept_cycles),
            queue: Queue::new(described.controller.queue_entries as usize),
            nvm: Device::new(&described.nvm, clock),
            dram: Device::new(&described.dram, clock),
            counts: QueueCounts::default(),
        }
    }

    pub(crate) fn counts(&self) -> (QueueCounts, DeviceCounts, DeviceCounts) {
        (self.counts, self.nvm.counts(), self.dram.counts())
    }

    /// Returns when a line requested at `now` arrives.
    pub(crate) fn read(&mut self, line: u64, now: Ticks, cause: Cause) -> Ticks {
        if line >= FIRST_DRAM_LINE {
            return self.dram.read(line - FIRST_DRAM_LINE, now, cause);
        }
        self.queue.retire(now);
        if self.queue.has(line, |_| true) {
            self.counts.forwarded += 1;
            return now + self.accept;
        }
        self.nvm.read(line, now, cause)
    }

    /// Returns when a line sent at `now` is accepted, and so persistent.
    pub(crate) fn write(&mut self, line: u64, now: Ticks, cause: Cause) -> Ticks {
        if line >= FIRST_DRAM_LINE {
            self.dram.write(line - FIRST_DRAM_LINE, now, cause);
            return now;
        }
        self.queue.retire(now);
        self.counts.accepted += 1;
        if self.queue.has(line, |pending| pending.begun_at > now) {
            self.counts.coalesced += 1;
            return now + self.accept;
        }
        let entered = self.queue.make_room(now);
        self.counts.full_ticks += entered - now;
        let written_at = self.nvm.write(line, entered + self.accept, cause);
        self.queue.insert(Pending {
            line,
            written_at,
            begun_at: self.nvm.last_begun(),
        });
        entered + self.accept
    }
}
