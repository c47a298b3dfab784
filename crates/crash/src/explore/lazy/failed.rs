//! Images that a check rejected, while it is found out how they come to be.

use crate::memory::cells::Line;

/// An image that a check rejected.
pub(crate) struct Failed {
    pub(crate) message: String,
    /// What the outermost execution that is named yet started from.
    pub(crate) image: Vec<Line>,
    /// The last crash first: events done, and what it left.
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
