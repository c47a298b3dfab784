//! Copies that record when they reach persistence.

use firn_units::{LINE_BYTES, VirtAddr};

/// An instruction `relocate`, and a buffer of reached bits behind it.
///
/// Each line of its copy carries a mark to persistence. So after a crash, software knows which lines of a copy arrived,
/// without a fence per copy.
///
/// Source: FFCCD, section 4.1.
pub trait Relocate: Send + Sync {
    /// Copies `len` bytes and records, for each line of the destination, when it reaches persistence.
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64);

    /// Whether a `relocate` has stored to the line that holds `at` since it was cleared. After a power failure: whether
    /// that store reached persistence.
    fn reached(&self, at: VirtAddr) -> bool;

    /// Whether one of the lines that the `len` bytes from `at` touch was reached. A medium that tries every image of
    /// memory relies on the caller then completing all of them ([`Relocate::unless_reached`]), whichever was reached.
    fn any_reached(&self, at: VirtAddr, len: u64) -> bool {
        let mut lines = (at.line_start().0..at.0 + len).step_by(LINE_BYTES as usize);
        lines.any(|line| self.reached(VirtAddr(line)))
    }

    /// Completes the line that holds `at` by `copy`, unless it was reached. A medium that tries every image of memory
    /// relies on `copy` storing only to this line, the mark last, and on the caller continuing identically whether the
    /// line was reached or not.
    fn unless_reached(&self, at: VirtAddr, copy: &mut dyn FnMut()) {
        if !self.reached(at) {
            copy();
        }
    }

    /// Clears the reached bits of the lines that the `len` bytes from `at` touch. Durable from the thread's next fence
    /// on. A line that a cache still holds since a `relocate` sets its bit again when it reaches persistence: write it
    /// back first.
    fn clear_reached(&self, at: VirtAddr, len: u64);
}
