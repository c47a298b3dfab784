//! A resolved location in persistent memory.

/// A location that a reference resolved to, borrowed from its medium.
///
/// Resolving masks the address into the medium's window, so a load through a place never leaves the window: a damaged
/// reference reads zeros or other objects' words, never foreign memory. On mapped memory a place is a bare pointer and
/// [`Place::load_u64`] is one `mov`.
pub trait Place: Copy {
    /// Loads the word `byte` bytes after this place. Relaxed: ordered like a plain `mov`.
    ///
    /// `byte` must be a multiple of [`firn_units::WORD_BYTES`].
    fn load_u64(self, byte: u32) -> u64;
}
