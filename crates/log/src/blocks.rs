//! Blocks in memory, at a multiple of their length, as a disk wants them that is written directly.

use core::ops::Range;

use bytemuck::{Pod, Zeroable};
use firn_format::log::BLOCK_BYTES;

const LEN: usize = BLOCK_BYTES as usize;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
struct Aligned([u8; LEN]);

/// Blocks one behind the other.
#[derive(Clone, Default)]
pub struct Blocks(Vec<Aligned>);

impl core::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} blocks", self.count())
    }
}

impl Blocks {
    /// `count` blocks of zeros.
    pub fn zeros(count: usize) -> Self {
        Self(vec![Aligned([0; LEN]); count])
    }

    /// Forgets the blocks, and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a block of zeros, to be filled in.
    pub(crate) fn push(&mut self) -> &mut [u8; LEN] {
        self.0.push(Aligned([0; LEN]));
        let last = self.0.len() - 1;
        &mut self.0[last].0
    }

    /// The first one's bytes.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn first_mut(&mut self) -> &mut [u8; LEN] {
        &mut self.0[0].0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The bytes of a range of them, one behind the other.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        bytemuck::cast_slice(&self.0[range])
    }

    /// Their bytes, block by block.
    pub fn iter(&self) -> impl Iterator<Item = &[u8; LEN]> {
        self.0.iter().map(|block| &block.0)
    }
}
