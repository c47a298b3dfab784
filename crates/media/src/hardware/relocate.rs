//! Copies that say when they reached persistence.

use firn_units::{LINE_BYTES, VirtAddr};

/// An instruction `relocate`, and a buffer of reached bits behind it.
///
/// A copy made by it carries a mark with each of its lines to persistence, so that after a crash software knows which
/// lines of a copy arrived, without a fence a copy.
///
/// Source: FFCCD, section 4.1.
pub trait Relocate: Send + Sync {
    /// Copies `len` bytes and remembers per line of the destination when it reached persistence.
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64);

    /// Whether a `relocate` stored to the line that holds `at` since it was cleared. After a power failure:
    /// whether what it stored reached persistence.
    fn reached(&self, at: VirtAddr) -> bool;

    /// Whether one of the lines that `len` bytes from `at` touch was reached. A medium that tries every image of
    /// memory relies on the caller completing all of them then ([`Relocate::unless_reached`]), whichever it was.
    fn any_reached(&self, at: VirtAddr, len: u64) -> bool {
        let mut lines = (at.line_start().0..at.0 + len).step_by(LINE_BYTES as usize);
        lines.any(|line| self.reached(VirtAddr(line)))
    }

    /// Completes the line that holds `at` by `copy`, unless it was reached. A medium that tries every image of
    /// memory relies on `copy` storing to this line alone, the mark last, and on the caller going on in the same
    /// way whether it was reached or not.
    fn unless_reached(&self, at: VirtAddr, copy: &mut dyn FnMut()) {
        if !self.reached(at) {
            copy();
        }
    }

    /// Clears what is known of the lines that `len` bytes from `at` touch. Durable from the thread's next
    /// fence on. Lines that a cache holds since a `relocate` say so again when they reach persistence: write
    /// them back before.
    fn clear_reached(&self, at: VirtAddr, len: u64);
}
