//! A session's own slots: allocation without a lock and without a shared line.

use firn_format::class::{CLASSES, Class};
use firn_format::geometry::Frame;

/// The run of slots that a session allocates from, and the free slots it has taken out of it.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    pub(crate) frame: Frame,
    /// Free slots in hand, of bitmap word `word`.
    pub(crate) bits: u64,
    pub(crate) word: u64,
    pub(crate) owned: bool,
}

/// A session's current runs, one a class.
pub(crate) struct Cache {
    /// The session's lane: the owner of these runs.
    pub(super) lane: usize,
    current: Box<[Current; CLASSES]>,
    /// First frames of runs whose words must reach media with the next commit.
    pub(crate) fresh: Vec<Frame>,
}

impl Cache {
    pub(crate) fn new(lane: usize) -> Self {
        let none = Current {
            frame: Frame(0),
            bits: 0,
            word: 0,
            owned: false,
        };
        Self {
            lane,
            current: Box::new([none; CLASSES]),
            fresh: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn of(&mut self, class: Class) -> &mut Current {
        &mut self.current[class.index()]
    }
}
