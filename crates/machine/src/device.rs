//! A device: when a requested line arrives, and when a sent line has been written.

use firn_units::LINE_BYTES;

use crate::description::{self, Latency};
use crate::time::{Ticks, cycles, transfer};
use crate::traffic::{Cause, Traffic};

/// A row that a bank has open.
#[derive(Clone, Copy)]
struct Bank {
    row: u64,
    written: bool,
    free_at: Ticks,
}

/// Row of a bank that has no row open.
const CLOSED: u64 = u64::MAX;

/// Counts of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounts {
    /// Lines read.
    pub reads: u64,
    /// Lines written.
    pub writes: u64,
    /// Lines read, by cause.
    pub read: Traffic,
    /// Lines written, by cause.
    pub written: Traffic,
    /// Reads of the array, because no open row had the line.
    pub array_reads: u64,
    /// Accesses to an open row. Devices of a fixed latency have no rows.
    pub row_hits: u64,
    /// Accesses to another row.
    pub row_misses: u64,
}

impl DeviceCounts {
    /// The counts since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            read: self.read.since(&before.read),
            written: self.written.since(&before.written),
            array_reads: self.array_reads - before.array_reads,
            row_hits: self.row_hits - before.row_hits,
            row_misses: self.row_misses - before.row_misses,
        }
    }
}

/// The duration of an access.
#[derive(Clone, Copy)]
enum Taken {
    Fixed {
        read: Ticks,
        write: Ticks,
    },
    Rows {
        hit: Ticks,
        clean_miss: Ticks,
        dirty_miss: Ticks,
    },
}

impl Taken {
    fn of(latency: &Latency) -> Self {
        match *latency {
            Latency::Fixed { read, write } => Self::Fixed {
                read: cycles(read),
                write: cycles(write),
            },
            Latency::Rows {
                hit,
                clean_miss,
                dirty_miss,
                ..
            } => Self::Rows {
                hit: cycles(hit),
                clean_miss: cycles(clean_miss),
                dirty_miss: cycles(dirty_miss),
            },
        }
    }
}

/// Memory behind the controller.
pub(crate) struct Device {
    taken: Taken,
    row_lines: u64,
    banks: Vec<Bank>,
    line_read: Ticks,
    line_written: Ticks,
    /// When each direction has transferred all lines requested so far.
    read_free_at: Ticks,
    write_free_at: Ticks,
    last_begun: Ticks,
    counts: DeviceCounts,
}

impl Device {
    pub(crate) fn new(described: &description::Device, clock_mhz: u32) -> Self {
        let closed = Bank {
            row: CLOSED,
            written: false,
            free_at: 0,
        };
        let (banks, row_bytes) = match described.latency {
            Latency::Fixed { .. } => (0, 0),
            Latency::Rows {
                banks, row_bytes, ..
            } => (banks, row_bytes),
        };
        let line = |rate| transfer(LINE_BYTES, rate, clock_mhz);
        Self {
            taken: Taken::of(&described.latency),
            row_lines: u64::from(row_bytes) / LINE_BYTES,
            banks: vec![closed; banks as usize],
            line_read: line(described.read_megabytes_per_s),
            line_written: line(described.write_megabytes_per_s),
            read_free_at: 0,
            write_free_at: 0,
            last_begun: 0,
            counts: DeviceCounts::default(),
        }
    }

    /// The counts. On devices without rows, all reads are reads of the array.
    pub(crate) fn counts(&self) -> DeviceCounts {
        let array_reads = match self.taken {
            Taken::Fixed { .. } => self.counts.reads,
            Taken::Rows { .. } => self.counts.array_reads,
        };
        DeviceCounts {
            array_reads,
            ..self.counts
        }
    }

    /// Returns when a line requested at `now` arrives.
    pub(crate) fn read(&mut self, line: u64, now: Ticks, cause: Cause) -> Ticks {
        self.counts.reads += 1;
        self.counts.read.count(cause);
        let begin = now.max(self.read_free_at);
        self.read_free_at = begin + self.line_read;
        self.access(line, begin, false)
    }

    /// Returns when a line sent at `now` has been written.
    pub(crate) fn write(&mut self, line: u64, now: Ticks, cause: Cause) -> Ticks {
        self.counts.writes += 1;
        self.counts.written.count(cause);
        let begin = now.max(self.write_free_at);
        self.write_free_at = begin + self.line_written;
        self.last_begun = begin;
        self.access(line, begin, true)
    }

    /// When the device began with the line sent last.
    pub(crate) fn last_begun(&self) -> Ticks {
        self.last_begun
    }

    /// Consecutive rows lie on consecutive banks.
    fn access(&mut self, line: u64, begin: Ticks, writes: bool) -> Ticks {
        let (hit, clean, dirty) = match self.taken {
            Taken::Fixed { read, write } => return begin + if writes { write } else { read },
            Taken::Rows {
                hit,
                clean_miss,
                dirty_miss,
            } => (hit, clean_miss, dirty_miss),
        };
        let row = line / self.row_lines;
        let banks = self.banks.len() as u64;
        let bank = &mut self.banks[(row % banks) as usize];
        let taken = match (bank.row == row, bank.written) {
            (true, _) => hit,
            (false, true) => dirty,
            (false, false) => clean,
        };
        let is_hit = bank.row == row;
        self.counts.row_hits += u64::from(is_hit);
        self.counts.row_misses += u64::from(!is_hit);
        self.counts.array_reads += u64::from(!is_hit && !writes);
        let end = begin.max(bank.free_at) + taken;
        *bank = Bank {
            row,
            written: writes || is_hit && bank.written,
            free_at: end,
        };
        end
    }
}
