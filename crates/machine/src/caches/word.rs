//! What a cache knows of a line, besides its number.

/// Flags of a line.
pub(crate) mod flag {
    /// It was stored to since memory saw it.
    pub(crate) const DIRTY: u32 = 1;
    /// No other core holds it.
    pub(crate) const OWNED: u32 = 2;
    /// A `relocate` stored to it: whoever receives it is told (FFCCD, section 4.2).
    pub(crate) const PENDING: u32 = 4;
    /// What a line keeps when it moves to the next level.
    pub(crate) const KEPT: u32 = DIRTY | PENDING;
    /// Bits of a word that are flags. A core's levels have the slot of the next level above them, the last level
    /// the cores that hold the line.
    pub(crate) const BITS: u32 = 3;
}

/// Cores that a word of the last level has bits for.
pub(crate) const MOST_CORES: u32 = 16;
/// The bits of all cores.
pub(super) const SHARED: u32 = ((1 << MOST_CORES) - 1) << flag::BITS;

/// The bit of a core in a word of the last level.
#[inline(always)]
pub(super) const fn sharer(core: usize) -> u32 {
    1 << (flag::BITS + core as u32)
}

/// The cores that a word of the last level says hold its line.
#[inline(always)]
pub(super) fn sharers(word: u32) -> impl Iterator<Item = usize> {
    let mut left = (word & SHARED) >> flag::BITS;
    core::iter::from_fn(move || {
        let next = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(next)
    })
}
