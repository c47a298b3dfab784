//! The content of memory: as its program sees it, and as the devices have it.

use firn_fibers::prefetch;
use firn_units::{DevAddr, LINE_BYTES, PhysAddr, WORD_BYTES};
use memmap2::{Advice, MmapMut};

use crate::controller::FIRST_DRAM_LINE;
use crate::mechanism::Regions;

/// Bytes of a line as the program sees it, followed by the line that the persistent device has at that address. So
/// persisting a line finds both in one page of the host.
const PAIR_BYTES: u64 = 2 * LINE_BYTES;
const LINE: usize = LINE_BYTES as usize;
const WORD: usize = WORD_BYTES as usize;
/// Byte at which the volatile device begins.
const DRAM: u64 = FIRST_DRAM_LINE * LINE_BYTES;

/// Persistent memory as its program sees it, and the content of the devices. The persistent device holds all of this
/// memory and a mechanism's own data; the volatile device holds only a mechanism's own data.
pub(crate) struct Images {
    /// Pairs of lines. The first line of a pair is unused in a mechanism's own memory.
    memory: MmapMut,
    /// Lines of the volatile device.
    dram: Vec<u8>,
    /// A line copy that is still to be made, before anybody can notice.
    owed: PendingCopy,
}

/// The copy of a line that the persistent device has accepted. The host's caches may not have its two places in
/// `memory` yet, and copying at once would wait for both.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PendingCopy {
    source: usize,
    target: usize,
}

impl PendingCopy {
    /// Places that hold no line.
    const NOTHING: Self = Self {
        source: usize::MAX,
        target: usize::MAX,
    };
}

impl Images {
    /// Images of `bytes` zero bytes for the program. The host provides memory where it is touched, in huge pages if it
    /// has any, because a program's accesses are spread all over its memory.
    pub(crate) fn new(bytes: u64, regions: Regions) -> Self {
        let lines = (bytes + regions.nvm).div_ceil(LINE_BYTES);
        let memory = MmapMut::map_anon((lines * PAIR_BYTES) as usize);
        let memory = memory.expect("the host has addresses for two images of memory");
        // Without huge pages it is only slower.
        let _ = memory.advise(Advice::HugePage);
        let dram = regions.dram.next_multiple_of(LINE_BYTES);
        Self {
            memory,
            dram: vec![0; dram as usize],
            owed: PendingCopy::NOTHING,
        }
    }

    /// Prefetches a line of the program, which will soon be asked for.
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
        let place = place(word);
        if place & !(LINE - 1) == self.owed.source {
            self.settle();
        }
        let bytes = self.memory[place..].first_chunk_mut::<WORD>();
        *bytes.expect("memory has whole words") = value.to_le_bytes();
    }

    /// A device has accepted the program's line. The program's volatile memory is not kept anywhere.
    #[inline(always)]
    pub(crate) fn persist(&mut self, from: PhysAddr, to: DevAddr) {
        if from.bytes() >= DRAM {
            return;
        }
        self.settle();
        let source = pair(from.bytes());
        match to.bytes().checked_sub(DRAM) {
            None => {
                let target = pair(to.bytes()) + LINE;
                prefetch(&self.memory[source..]);
                prefetch(&self.memory[target..]);
                self.owed = PendingCopy { source, target };
            }
            Some(at) => {
                let line = &self.memory[source..source + LINE];
                self.dram[at as usize..][..LINE].copy_from_slice(line);
            }
        }
    }

    /// Makes the pending copy.
    #[inline(always)]
    fn settle(&mut self) {
        let PendingCopy { source, target } =
            core::mem::replace(&mut self.owed, PendingCopy::NOTHING);
        if source != PendingCopy::NOTHING.source {
            self.memory.copy_within(source..source + LINE, target);
        }
    }

    /// Copies a line from one place of a device to another.
    pub(crate) fn transfer(&mut self, from: DevAddr, to: DevAddr) {
        let mut line = [0; LINE];
        line.copy_from_slice(self.device_line(from));
        self.device_line_mut(to).copy_from_slice(&line);
    }

    /// The line that a device holds at `at`.
    fn device_line(&self, at: DevAddr) -> &[u8] {
        match at.bytes().checked_sub(DRAM) {
            None => {
                let place = pair(at.bytes()) + LINE;
                let is_owed = place == self.owed.target;
                let place = if is_owed { self.owed.source } else { place };
                &self.memory[place..][..LINE]
            }
            Some(at) => &self.dram[at as usize..][..LINE],
        }
    }

    fn device_line_mut(&mut self, at: DevAddr) -> &mut [u8] {
        self.settle();
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

    /// Zeros a line, also on the device.
    pub(crate) fn clear(&mut self, at: PhysAddr, home: DevAddr) {
        self.device_line_mut(home).fill(0);
        self.memory[pair(at.bytes())..][..LINE].fill(0);
    }

    /// The power was gone, so volatile memory holds nothing.
    pub(crate) fn lose_power(&mut self) {
        self.dram.fill(0);
    }

    /// Sets the program's line to the content at `home`.
    pub(crate) fn recover(&mut self, at: PhysAddr, home: DevAddr) {
        self.settle();
        let mut line = [0; LINE];
        line.copy_from_slice(self.device_line(home));
        self.memory[pair(at.bytes())..][..LINE].copy_from_slice(&line);
    }
}

/// The start of the pair of the line at `at`.
#[inline(always)]
const fn pair(at: u64) -> usize {
    (at / LINE_BYTES * PAIR_BYTES) as usize
}

/// The place of a word as the program sees it.
#[inline(always)]
fn place(word: u64) -> usize {
    let byte = word * WORD_BYTES;
    (byte + (byte & !(LINE_BYTES - 1))) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGIONS: Regions = Regions {
        nvm: 4 * LINE_BYTES,
        dram: 4 * LINE_BYTES,
    };

    /// Eight lines of a program, none of them persistent. The first word of each is the line's number.
    fn images() -> Images {
        let mut images = Images::new(8 * LINE_BYTES, REGIONS);
        for line in 0..8 {
            images.store(line * 8, line);
        }
        images
    }

    const fn line(number: u64) -> u64 {
        number * LINE_BYTES
    }

    #[test]
    fn a_device_has_a_line_as_it_was_when_it_was_accepted() {
        let mut images = images();
        images.persist(PhysAddr(line(3)), DevAddr(line(3)));
        assert_eq!(images.device_word(DevAddr(line(3))), 3);
        images.store(3 * 8, 33);
        assert_eq!(
            (images.device_word(DevAddr(line(3))), images.load(3 * 8)),
            (3, 33)
        );
        images.persist(PhysAddr(line(3)), DevAddr(line(9)));
        images.persist(PhysAddr(line(4)), DevAddr(line(4)));
        let found = [3, 4, 9].map(|number| images.device_word(DevAddr(line(number))));
        assert_eq!(found, [3, 4, 33]);
    }

    #[test]
    fn the_last_of_two_lines_for_one_place_is_there() {
        let mut images = images();
        images.persist(PhysAddr(line(1)), DevAddr(line(9)));
        images.persist(PhysAddr(line(2)), DevAddr(line(9)));
        assert_eq!(images.device_word(DevAddr(line(9))), 2);
        images.set_device_word(DevAddr(line(9)), 7);
        assert_eq!(images.device_word(DevAddr(line(9))), 7);
    }

    #[test]
    fn what_follows_a_line_that_was_accepted_comes_after_it() {
        let mut images = images();
        images.persist(PhysAddr(line(5)), DevAddr(line(5)));
        images.transfer(DevAddr(line(5)), DevAddr(line(10)));
        images.persist(PhysAddr(line(6)), DevAddr(line(6)));
        images.clear(PhysAddr(line(6)), DevAddr(line(6)));
        images.persist(PhysAddr(line(7)), DevAddr(line(11)));
        images.recover(PhysAddr(line(7)), DevAddr(line(5)));
        let found = [5, 10, 6, 11].map(|number| images.device_word(DevAddr(line(number))));
        assert_eq!((found, images.load(7 * 8)), ([5, 5, 0, 7], 5));
        images.persist(PhysAddr(line(2)), DevAddr(DRAM + line(1)));
        assert_eq!(images.device_word(DevAddr(DRAM + line(1))), 2);
    }
}
