//! The prefixes of a log, laid out in memory one after the other.

use crate::memory::log::{Difference, Log};
use crate::memory::pages::Memory;
use crate::memory::persistence::line_hash;

/// Steps memory through the images that a crash may leave of a medium with a log: one for each prefix of the records
/// that has everything durable.
pub(crate) struct Prefixes {
    /// Number of records in the shortest prefix.
    durable: u64,
    /// How memory at first differs from the shortest prefix, then each prefix from the one before.
    differences: Vec<Difference>,
    /// What memory held at first, and its hash.
    memory: Difference,
    hash: u128,
    /// The prefix that memory holds, as an index.
    now: Option<usize>,
    /// The first prefix that is new.
    first: usize,
}

impl Prefixes {
    /// All prefixes of a log, or only the longest. `hash` is that of memory.
    pub(crate) fn new(log: &Log, only_longest: bool, memory: &Memory, hash: u128) -> Self {
        let differences = log.differences(memory);
        Self {
            durable: log.durable(),
            memory: log.memory(memory),
            hash,
            now: None,
            first: if only_longest {
                differences.len() - 1
            } else {
                0
            },
            differences,
        }
    }

    pub(crate) fn total(&self) -> u128 {
        (self.differences.len() - self.first) as u128
    }

    /// Number of records in the prefix that memory holds.
    pub(crate) fn records(&self) -> Option<u64> {
        self.now.map(|now| self.durable + now as u64)
    }

    /// Lays out the shortest prefix.
    pub(crate) fn begin(&mut self, memory: &Memory, hash: &mut u128) {
        self.lay(self.first, memory, hash);
    }

    /// Lays out the longest prefix.
    pub(crate) fn longest(&mut self, memory: &Memory, hash: &mut u128) {
        self.lay(self.differences.len() - 1, memory, hash);
    }

    /// Lays out the next prefix. False after the longest.
    pub(crate) fn advance(&mut self, memory: &Memory, hash: &mut u128) -> bool {
        let next = self.now.map_or(self.first, |now| now + 1);
        let is_one = next < self.differences.len();
        if is_one {
            self.lay(next, memory, hash);
        }
        is_one
    }

    /// Lays out any prefix.
    pub(crate) fn draw(&mut self, random: &mut fastrand::Rng, memory: &Memory, hash: &mut u128) {
        let longest = self.differences.len() - 1;
        let drawn = match random.u8(..4) {
            0 => longest,
            1 => self.first,
            _ => random.usize(self.first..=longest),
        };
        self.lay(drawn, memory, hash);
    }

    /// Builds the image with the first `records` records. Errors: no crash leaves that prefix.
    pub(crate) fn go_to(
        &mut self,
        records: u64,
        memory: &Memory,
        hash: &mut u128,
    ) -> Result<(), String> {
        let index = records
            .checked_sub(self.durable)
            .map(|index| index as usize);
        match index.filter(|&index| index < self.differences.len()) {
            Some(index) => {
                self.lay(index, memory, hash);
                Ok(())
            }
            None => Err(format!("a crash cannot leave {records} records")),
        }
    }

    /// Restores memory to what it was at first.
    pub(crate) fn restore(&mut self, memory: &Memory, hash: &mut u128) {
        if self.now.take().is_some() {
            set(&self.memory, memory, &mut 0);
            *hash = self.hash;
        }
    }

    fn lay(&mut self, index: usize, memory: &Memory, hash: &mut u128) {
        let from = match self.now {
            Some(now) if now <= index => now + 1,
            // A later prefix, or what no record has captured: start from the shortest one.
            _ => {
                self.restore(memory, hash);
                0
            }
        };
        for difference in &self.differences[from..=index] {
            set(difference, memory, hash);
        }
        self.now = Some(index);
    }
}

fn set(difference: &Difference, memory: &Memory, hash: &mut u128) {
    for (line, content) in &difference.lines {
        *hash ^= line_hash(*line, &memory.line(*line)) ^ line_hash(*line, content);
        memory.set_line(*line, content);
    }
    for &(frame, backed) in &difference.frames {
        memory.set_backed(frame, backed);
    }
    if let Some(len) = difference.len {
        memory.set_len(len);
    }
}
