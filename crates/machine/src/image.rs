//! What memory holds: now, and what a power failure would leave.

use firn_units::{LINE_BYTES, WORD_BYTES};
use memmap2::{Advice, MmapMut};

/// Bytes of a line as it is and as it is persistent, one behind the other: who persists it finds both in one
/// page of the host's.
const PAIR_BYTES: u64 = 2 * LINE_BYTES;
const LINE: usize = LINE_BYTES as usize;
const WORD: usize = WORD_BYTES as usize;

/// Persistent memory as its program sees it, and as the device and the queue before it have it.
pub(crate) struct Images {
    /// Pairs of lines.
    memory: MmapMut,
}

impl Images {
    /// Of so many bytes, all zero. The host gives memory for what is touched, in huge pages if it has any: a
    /// program's accesses are all over its memory.
    pub(crate) fn new(bytes: u64) -> Self {
        let memory = MmapMut::map_anon(2 * bytes as usize);
        let memory = memory.expect("the host has addresses for two images of memory");
        // Without huge pages it is slower, that is all.
        let _ = memory.advise(Advice::HugePage);
        Self { memory }
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

    /// The queue has accepted a line.
    #[inline(always)]
    pub(crate) fn persist(&mut self, line: u64) {
        let start = (line * PAIR_BYTES) as usize;
        self.memory.copy_within(start..start + LINE, start + LINE);
    }

    /// Zeros a range of whole lines, on the device as well.
    pub(crate) fn clear(&mut self, at: u64, len: u64) {
        debug_assert_eq!((at | len) % LINE_BYTES, 0);
        self.memory[2 * at as usize..2 * (at + len) as usize].fill(0);
    }

    /// Power fails: of the first `bytes`, what was not persistent is gone.
    pub(crate) fn lose_power(&mut self, bytes: u64) {
        for pair in self.memory[..2 * bytes as usize].chunks_exact_mut(2 * LINE) {
            let (current, persisted) = pair.split_at_mut(LINE);
            current.copy_from_slice(persisted);
        }
    }
}

/// Where a word is, as the program sees it.
#[inline(always)]
fn place(word: u64) -> usize {
    let byte = word * WORD_BYTES;
    (byte + (byte & !(LINE_BYTES - 1))) as usize
}
