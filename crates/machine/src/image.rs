//! What memory holds: as its program sees it, and as the devices have it.

use firn_units::{DevAddr, LINE_BYTES, PhysAddr, WORD_BYTES, WORDS_PER_LINE};

use crate::controller::FIRST_DRAM_LINE;
use crate::mechanism::Regions;

/// Byte at which the volatile device begins.
const DRAM: u64 = FIRST_DRAM_LINE * LINE_BYTES;

/// Persistent memory as its program sees it, and what the devices hold: the persistent one all of it and what a
/// mechanism keeps there besides, the volatile one only what a mechanism keeps there.
pub(crate) struct Images {
    current: Vec<u64>,
    nvm: Vec<u64>,
    dram: Vec<u64>,
}

/// Words of so many bytes, of which the last may be a part.
const fn words(bytes: u64) -> usize {
    bytes.div_ceil(WORD_BYTES) as usize
}

impl Images {
    /// Of so many bytes for the program, all zero. The host gives memory for what is touched.
    pub(crate) fn new(bytes: u64, regions: Regions) -> Self {
        Self {
            current: vec![0; words(bytes)],
            nvm: vec![0; words(bytes + regions.nvm)],
            dram: vec![0; words(regions.dram)],
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self, word: u64) -> u64 {
        self.current.get(word as usize).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(crate) fn store(&mut self, word: u64, value: u64) {
        self.current[word as usize] = value;
    }

    /// A device has accepted the program's line. What the program has in volatile memory is kept nowhere.
    #[inline(always)]
    pub(crate) fn persist(&mut self, from: PhysAddr, to: DevAddr) {
        if from.bytes() >= DRAM {
            return;
        }
        let source = (from.bytes() / WORD_BYTES) as usize;
        let (device, place) = match to.bytes().checked_sub(DRAM) {
            None => (&mut self.nvm, to.bytes() / WORD_BYTES),
            Some(at) => (&mut self.dram, at / WORD_BYTES),
        };
        device[place as usize..][..WORDS_PER_LINE]
            .copy_from_slice(&self.current[source..][..WORDS_PER_LINE]);
    }

    /// Copies a line from one place of a device to another.
    pub(crate) fn transfer(&mut self, from: DevAddr, to: DevAddr) {
        for word in (0..LINE_BYTES).step_by(WORD_BYTES as usize) {
            let value = self.device_word(from + word);
            self.set_device_word(to + word, value);
        }
    }

    pub(crate) fn device_word(&self, at: DevAddr) -> u64 {
        match at.bytes().checked_sub(DRAM) {
            None => self.nvm[(at.bytes() / WORD_BYTES) as usize],
            Some(at) => self.dram[(at / WORD_BYTES) as usize],
        }
    }

    pub(crate) fn set_device_word(&mut self, at: DevAddr, value: u64) {
        match at.bytes().checked_sub(DRAM) {
            None => self.nvm[(at.bytes() / WORD_BYTES) as usize] = value,
            Some(at) => self.dram[(at / WORD_BYTES) as usize] = value,
        }
    }

    /// Zeros a line, on the device as well.
    pub(crate) fn clear(&mut self, at: PhysAddr, home: DevAddr) {
        let word = (at.bytes() / WORD_BYTES) as usize;
        self.current[word..][..WORDS_PER_LINE].fill(0);
        for word in (0..LINE_BYTES).step_by(WORD_BYTES as usize) {
            self.set_device_word(home + word, 0);
        }
    }

    /// The power was gone: volatile memory holds nothing.
    pub(crate) fn lose_power(&mut self) {
        self.dram.fill(0);
    }

    /// The program's line is what lies at `home`.
    pub(crate) fn recover(&mut self, at: PhysAddr, home: DevAddr) {
        for word in (0..LINE_BYTES).step_by(WORD_BYTES as usize) {
            let value = self.device_word(home + word);
            self.store((at.bytes() + word) / WORD_BYTES, value);
        }
    }
}
