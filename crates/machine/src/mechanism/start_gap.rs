//! Start-Gap: wear levelling by a gap that wanders through memory (Qureshi and others, MICRO 2009, section 4).
//!
//! Memory has one line more than the program. Every [`PERIOD`] writes, the line before the gap moves into the gap, and
//! the gap is then where that line was. Once the gap has been everywhere, each line lies one further, and `start`
//! counts this. Two registers say where each line is. They lie in a line of their own, which is written when they
//! change. Until then both places of the moved line hold its content, so a power failure may leave the old registers or
//! the new ones.

use firn_media::Offers;
use firn_units::{DevAddr, LINE_BYTES, PhysAddr};

use super::{Counts, Mechanism, MechanismSpec, MemoryPort, OutgoingLine, Regions, Site};
use crate::DRAM_START;
use crate::time::Ticks;

/// Writes between two moves (section 4.2).
const PERIOD: u64 = 100;

struct StartGap {
    /// Lines of the program.
    lines: u64,
    /// How far all lines have wandered, and the line that holds nothing.
    start: u64,
    gap: u64,
    writes: u64,
    moves: u64,
}

impl StartGap {
    fn new(site: &Site<'_>) -> Self {
        let lines = site.capacity / LINE_BYTES;
        Self {
            lines,
            start: 0,
            gap: lines,
            writes: 0,
            moves: 0,
        }
    }

    /// The address of the registers: behind the line that memory has more than the program.
    fn registers(&self) -> DevAddr {
        DevAddr((self.lines + 1) * LINE_BYTES)
    }

    fn move_gap(&mut self, now: Ticks, port: &mut MemoryPort<'_>) {
        let line = |number: u64| DevAddr(number * LINE_BYTES);
        let (from, start) = match self.gap {
            0 => (self.lines, (self.start + 1) % self.lines),
            gap => (gap - 1, self.start),
        };
        let moved_at = port.transfer(line(from), line(self.gap), now);
        (self.gap, self.start) = (from, start);
        let registers = self.registers();
        // One word, so that a power failure leaves both or neither.
        port.set_word(registers, self.start << 32 | self.gap << 1 | 1);
        port.send(registers, moved_at);
        self.moves += 1;
    }
}

impl Mechanism for StartGap {
    fn home(&self, at: PhysAddr) -> DevAddr {
        if at >= DRAM_START {
            return at.unmapped();
        }
        let line = (at.bytes() / LINE_BYTES + self.start) % self.lines;
        DevAddr((line + u64::from(line >= self.gap)) * LINE_BYTES)
    }

    fn read(&mut self, at: PhysAddr, now: Ticks, port: &mut MemoryPort<'_>) -> Ticks {
        port.read(self.home(at), now)
    }

    fn write(&mut self, leaving: OutgoingLine, now: Ticks, port: &mut MemoryPort<'_>) -> Ticks {
        let accepted_at = port.write(self.home(leaving.at), leaving.at, now);
        if leaving.at < DRAM_START {
            self.writes += 1;
            if self.writes.is_multiple_of(PERIOD) {
                self.move_gap(accepted_at, port);
            }
        }
        accepted_at
    }

    fn recovers(&mut self, port: &mut MemoryPort<'_>) {
        let word = port.word(self.registers());
        if word & 1 != 0 {
            (self.start, self.gap) = (word >> 32, word >> 1 & 0x7fff_ffff);
        }
    }

    fn counts(&self) -> Counts {
        vec![("gap moves", self.moves)]
    }
}

/// Wear levelling by a wandering gap.
pub static START_GAP: MechanismSpec = MechanismSpec {
    name: "start-gap",
    about: "wear levelling: a gap wanders through persistent memory, a line every hundred writes",
    source: "Qureshi and others, MICRO 2009, section 4; the example of docs/mechanisms.md",
    offers: |_| Offers::NONE,
    regions: |_| Regions {
        nvm: 2 * LINE_BYTES,
        dram: 0,
    },
    build: |site| Box::new(StartGap::new(site)),
    parts: &[],
};
