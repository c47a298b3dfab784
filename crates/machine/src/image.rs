//! What memory holds: as its program sees it, and as the devices have it.

use firn_fibers::prefetch;
use firn_units::{DevAddr, LINE_BYTES, PhysAddr, WORD_BYTES};
use memmap2::{Advice, MmapMut};

use crate::controller::FIRST_DRAM_LINE;
use crate::mechanism::Regions;

/// Bytes of a line as the program sees it and as the persistent device has it at the same address, one behind the
/// other: who persists it finds both in one page of the host's.
const PAIR_BYTES: u64 = 2 * LINE_BYTES;
const LINE: usize = LINE_BYTES as usize;
const WORD: usize = WORD_BYTES as usize;
/// Byte at which the volatile device begins.
const DRAM: u64 = FIRST_DRAM_LINE * LINE_BYTES;

/// Persistent memory as its program sees it, and what the devices hold: the persistent one all of it and what a
/// mechanism keeps there besides, the volatile one only what a mechanism keeps there.
pub(crate) struct Images {
    /// Pairs of lines; the first ones of a mechanism's lines are of no use.
    memory: MmapMut,
    /// Lines of the volatile device.
    dram: Vec<u8>,
}

impl Images {
    /// Of so many bytes for the program, all zero. The host gives memory for what is touched, in huge pages if it
    /// has any: a program's accesses are all over its memory.
    pub(crate) fn new(bytes: u64, regions: Regions) -> Self {
        let lines = (bytes + regions.nvm).div_ceil(LINE_BYTES);
        let memory = MmapMut::map_anon((lines * PAIR_BYTES) as usize);
        let memory = memory.expect("the host has addresses for two images of memory");
        // Without huge pages it is slower, that is all.
        let _ = memory.advise(Advice::HugePage);
        let dram = regions.dram.next_multiple_of(LINE_BYTES);
        Self {
            memory,
            dram: vec![0; dram as usize],
        }
    }

    /// The host will soon be asked for a line of the program's.
    #[inline(always)]
    pub(crate) fn expect(&self, line: u64) {
        let at = line.saturating_mul(PAIR_BYTES) as usize;
        if let Some(bytes) = self.memory.get(at..) {
            prefetch(bytes);
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self, word: u64) -> u64 {
        let bytes = self.memory.get(place(word)..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline(always)]
    pub(crate) fn store(&mut self, word: u64, value: u64) {
        let bytes = self.memory[place(word)..].first_chunk_mut::<WORD>();
        *bytes.expect("memory has whole words") = value.to_le_bytes();
    }

    /// A device has accepted the program's line. What the program has in volatile memory is kept nowhere.
    #[inline(always)]
    pub(crate) fn persist(&mut self, from: PhysAddr, to: DevAddr) {
        if from.bytes() >= DRAM {
            return;
        }
        let source = pair(from.bytes());
        match to.bytes().checked_sub(DRAM) {
            None => {
                let target = pair(to.bytes()) + LINE;
                self.memory.copy_within(source..source + LINE, target);
            }
            Some(at) => {
                let line = &self.memory[source..source + LINE];
                self.dram[at as usize..][..LINE].copy_from_slice(line);
            }
        }
    }

    /// Copies a line from one place of a device to another.
    pub(crate) fn transfer(&mut self, from: DevAddr, to: DevAddr) {
        let mut line = [0; LINE];
        line.copy_from_slice(self.device_line(from));
        self.device_line_mut(to).copy_from_slice(&line);
    }

    /// The line that a device has there.
    fn device_line(&self, at: DevAddr) -> &[u8] {
        match at.bytes().checked_sub(DRAM) {
            None => &self.memory[pair(at.bytes()) + LINE..][..LINE],
            Some(at) => &self.dram[at as usize..][..LINE],
        }
    }

    fn device_line_mut(&mut self, at: DevAddr) -> &mut [u8] {
        match at.bytes().checked_sub(DRAM) {
            None => &mut self.memory[pair(at.bytes()) + LINE..][..LINE],
            Some(at) => &mut self.dram[at as usize..][..LINE],
        }
    }

    pub(crate) fn device_word(&self, at: DevAddr) -> u64 {
        let line = self.device_line(at.line_start());
        let bytes = line[(at.bytes() % LINE_BYTES) as usize..].first_chunk();
        u64::from_le_bytes(*bytes.expect("a line has whole words"))
    }

    pub(crate) fn set_device_word(&mut self, at: DevAddr, value: u64) {
        let line = self.device_line_mut(at.line_start());
        let bytes = line[(at.bytes() % LINE_BYTES) as usize..].first_chunk_mut::<WORD>();
        *bytes.expect("a line has whole words") = value.to_le_bytes();
    }

    /// Zeros a line, on the device as well.
    pub(crate) fn clear(&mut self, at: PhysAddr, home: DevAddr) {
        self.memory[pair(at.bytes())..][..LINE].fill(0);
        self.device_line_mut(home).fill(0);
    }

    /// The power was gone: volatile memory holds nothing.
    pub(crate) fn lose_power(&mut self) {
        self.dram.fill(0);
    }

    /// The program's line is what lies at `home`.
    pub(crate) fn recover(&mut self, at: PhysAddr, home: DevAddr) {
        let mut line = [0; LINE];
        line.copy_from_slice(self.device_line(home));
        self.memory[pair(at.bytes())..][..LINE].copy_from_slice(&line);
    }
}

/// Where the pair of the line at `at` begins.
#[inline(always)]
const fn pair(at: u64) -> usize {
    (at / LINE_BYTES * PAIR_BYTES) as usize
}

/// Where a word is, as the program sees it.
#[inline(always)]
fn place(word: u64) -> usize {
    let byte = word * WORD_BYTES;
    (byte + (byte & !(LINE_BYTES - 1))) as usize
}
