//! Images that a check rejected, while their origin is traced.

use crate::memory::cells::Line;

/// An image that a check rejected.
pub(crate) struct Failed {
    pub(crate) message: String,
    /// The starting image of the outermost execution named so far.
    pub(crate) image: Vec<Line>,
    /// The last crash first: events done, and the image left.
    pub(crate) crashes: Vec<(usize, Vec<Line>)>,
}

impl Failed {
    /// The crashes, the first one first: events done, and every line by slot.
    pub(crate) fn in_order(self) -> (String, Vec<(usize, Vec<Line>)>) {
        let mut crashes = self.crashes;
        crashes.reverse();
        (self.message, crashes)
    }
}
