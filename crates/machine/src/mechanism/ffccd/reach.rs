//! Lines with a pending bit that arrive at the controller (section 4.2).

use firn_hardware::reached::{self, Access, Bitmap, Buffer, PhysPage};
use firn_units::{DevAddr, FRAME_BYTES, LINE_BYTES, PhysAddr, WORD_BYTES};

use super::REACHED_BUFFER;
use crate::mechanism::{Cost, Counts, MemoryPort};
use crate::time::Ticks;

/// The reached bitmap buffer in front of the bitmap in memory.
pub(super) struct Reach {
    bitmap: DevAddr,
    buffer: Buffer,
    hits: u64,
    misses: u64,
    written: u64,
}

/// The bitmap, which follows the program's memory.
struct InMemory<'m, 'b> {
    bitmap: DevAddr,
    port: &'m mut MemoryPort<'b>,
}

fn word_of(bitmap: DevAddr, page: PhysPage) -> DevAddr {
    bitmap + page.0 * WORD_BYTES
}

impl Bitmap for InMemory<'_, '_> {
    fn load(&self, page: PhysPage) -> u64 {
        self.port.word(word_of(self.bitmap, page))
    }

    fn store(&mut self, page: PhysPage, word: u64) {
        self.port.set_word(word_of(self.bitmap, page), word);
    }
}

impl Reach {
    pub(super) fn new(bitmap: DevAddr) -> Self {
        Self {
            bitmap,
            buffer: Buffer::new(reached::ENTRIES),
            hits: 0,
            misses: 0,
            written: 0,
        }
    }

    fn in_memory<'m, 'b>(&self, port: &'m mut MemoryPort<'b>) -> InMemory<'m, 'b> {
        let bitmap = self.bitmap;
        InMemory { bitmap, port }
    }

    /// A line with its pending bit was accepted at `now`. A miss in the buffer reads a word from memory, and may write
    /// another one.
    pub(super) fn arrives(&mut self, at: PhysAddr, now: Ticks, port: &mut MemoryPort<'_>) {
        let access = self.buffer.reach(at, &mut self.in_memory(port));
        let Access::Miss { written } = access else {
            self.hits += 1;
            return;
        };
        self.misses += 1;
        let line = |page| word_of(self.bitmap, page).line_start();
        let asked_at = now + REACHED_BUFFER;
        port.read_own(line(PhysPage::holding(at)), asked_at);
        if let Some(page) = written {
            self.written += 1;
            port.send(line(page), asked_at);
        }
    }

    pub(super) fn drain(&mut self, port: &mut MemoryPort<'_>) {
        let mut memory = InMemory {
            bitmap: self.bitmap,
            port,
        };
        self.buffer.drain(&mut memory);
    }

    /// Software asks about a line: the buffer goes to memory, where software loads the page's word.
    pub(super) fn ask(&mut self, at: PhysAddr, port: &mut MemoryPort<'_>) -> (bool, Cost) {
        self.drain(port);
        let word = word_of(self.bitmap, PhysPage::holding(at));
        let cost = Cost {
            ticks: REACHED_BUFFER,
            loads: vec![PhysAddr(word.bytes()).line_start()],
        };
        (port.word(word) & reached::line_bit(at) != 0, cost)
    }

    /// Software clears the bits of a range through its pages' words in memory. The buffer goes to memory first.
    pub(super) fn clear(&mut self, at: PhysAddr, len: u64, port: &mut MemoryPort<'_>) -> Cost {
        self.drain(port);
        let mut cost = Cost {
            ticks: REACHED_BUFFER,
            loads: Vec::new(),
        };
        let mut line = at.line_start();
        while line < at + len {
            let page = PhysPage::holding(line);
            let place = word_of(self.bitmap, page);
            let end = PhysAddr((page.0 + 1) * FRAME_BYTES);
            let mut word = port.word(place);
            while line < end && line < at + len {
                word &= !reached::line_bit(line);
                line = line + LINE_BYTES;
            }
            port.set_word(place, word);
            cost.loads.push(PhysAddr(place.bytes()).line_start());
        }
        cost.loads.dedup();
        cost
    }

    pub(super) fn counts(&self) -> Counts {
        vec![
            ("reached buffer hits", self.hits),
            ("reached buffer misses", self.misses),
            ("reached words written", self.written),
        ]
    }
}
