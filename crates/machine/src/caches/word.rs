//! The state of a line in a cache, besides the line's number.

/// Flags of a line.
pub(crate) mod flag {
    /// It was stored to since memory last saw it.
    pub(crate) const DIRTY: u32 = 1;
    /// No other core holds it.
    pub(crate) const OWNED: u32 = 2;
    /// A `relocate` stored to it: its receiver is told (FFCCD, section 4.2).
    pub(crate) const PENDING: u32 = 4;
    /// Flags that a line keeps when it moves to the next level.
    pub(crate) const KEPT: u32 = DIRTY | PENDING;
    /// Number of flag bits in a word. Above them, a core's levels have the line's slot in the next level, and the last
    /// level has the cores that hold the line.
    pub(crate) const BITS: u32 = 3;
}

/// Cores for which a word of the last level has bits.
pub(crate) const MOST_CORES: u32 = 16;
/// The bits of all cores.
pub(super) const SHARED: u32 = ((1 << MOST_CORES) - 1) << flag::BITS;

/// The bit of a core in a word of the last level.
#[inline(always)]
pub(super) const fn sharer(core: usize) -> u32 {
    1 << (flag::BITS + core as u32)
}

/// The cores that hold a line, by its word in the last level.
#[inline(always)]
pub(super) fn sharers(word: u32) -> impl Iterator<Item = usize> {
    let mut left = (word & SHARED) >> flag::BITS;
    core::iter::from_fn(move || {
        let next = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(next)
    })
}
