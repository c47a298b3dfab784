//! Lines with a pending bit that arrive at the controller (section 4.2).

use firn_hardware::reached::{self, Access, Bitmap, Buffer, PhysPage};
use firn_units::{DevAddr, FRAME_BYTES, LINE_BYTES, PhysAddr, WORD_BYTES};

use super::REACHED_BUFFER;
use crate::mechanism::{Asked, Board, Counts};
use crate::time::Ticks;

/// The reached bitmap buffer before the bitmap in memory.
pub(super) struct Reach {
    bitmap: DevAddr,
    buffer: Buffer,
    hits: u64,
    misses: u64,
    written: u64,
}

/// The bitmap, which lies behind the program's memory.
struct InMemory<'m, 'b> {
    bitmap: DevAddr,
    board: &'m mut Board<'b>,
}

fn word_of(bitmap: DevAddr, page: PhysPage) -> DevAddr {
    bitmap + page.0 * WORD_BYTES
}

impl Bitmap for InMemory<'_, '_> {
    fn load(&self, page: PhysPage) -> u64 {
        self.board.word(word_of(self.bitmap, page))
    }

    fn store(&mut self, page: PhysPage, word: u64) {
        self.board.set_word(word_of(self.bitmap, page), word);
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

    fn in_memory<'m, 'b>(&self, board: &'m mut Board<'b>) -> InMemory<'m, 'b> {
        let bitmap = self.bitmap;
        InMemory { bitmap, board }
    }

    /// A line with its pending bit was accepted at `now`. A miss of the buffer reads a word from memory, and may
    /// write another one.
    pub(super) fn arrives(&mut self, at: PhysAddr, now: Ticks, board: &mut Board<'_>) {
        let access = self.buffer.reach(at, &mut self.in_memory(board));
        let Access::Miss { written } = access else {
            self.hits += 1;
            return;
        };
        self.misses += 1;
        let line = |page| word_of(self.bitmap, page).line_start();
        let asked_at = now + REACHED_BUFFER;
        board.read_own(line(PhysPage::holding(at)), asked_at);
        if let Some(page) = written {
            self.written += 1;
            board.send(line(page), asked_at);
        }
    }

    pub(super) fn drain(&mut self, board: &mut Board<'_>) {
        let mut memory = InMemory {
            bitmap: self.bitmap,
            board,
        };
        self.buffer.drain(&mut memory);
    }

    /// Software asks: the buffer goes to memory, where it loads the page's word.
    pub(super) fn asked(&mut self, at: PhysAddr, board: &mut Board<'_>) -> (bool, Asked) {
        self.drain(board);
        let word = word_of(self.bitmap, PhysPage::holding(at));
        let asked = Asked {
            ticks: REACHED_BUFFER,
            loads: vec![PhysAddr(word.bytes()).line_start()],
        };
        (board.word(word) & reached::line_bit(at) != 0, asked)
    }

    /// Software clears the bits of a range, by its pages' words in memory. The buffer forgets them first.
    pub(super) fn clear(&mut self, at: PhysAddr, len: u64, board: &mut Board<'_>) -> Asked {
        self.drain(board);
        let mut asked = Asked {
            ticks: REACHED_BUFFER,
            loads: Vec::new(),
        };
        let mut line = at.line_start();
        while line < at + len {
            let page = PhysPage::holding(line);
            let place = word_of(self.bitmap, page);
            let end = PhysAddr((page.0 + 1) * FRAME_BYTES);
            let mut word = board.word(place);
            while line < end && line < at + len {
                word &= !reached::line_bit(line);
                line = line + LINE_BYTES;
            }
            board.set_word(place, word);
            asked.loads.push(PhysAddr(place.bytes()).line_start());
        }
        asked.loads.dedup();
        asked
    }

    pub(super) fn counts(&self) -> Counts {
        vec![
            ("reached buffer hits", self.hits),
            ("reached buffer misses", self.misses),
            ("reached words written", self.written),
        ]
    }
}
