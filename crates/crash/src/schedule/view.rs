//! What a policy sees, and what it can say.

/// What a scheduler may choose from.
pub(crate) struct View<'a> {
    /// Scheduling points of the run so far.
    pub(crate) point: u64,
    /// The thread at a scheduling point, unless it cannot go on.
    pub(crate) current: Option<usize>,
    /// Threads that can go on, ascending, the current one among them.
    pub(crate) runnable: &'a [usize],
    /// Threads whose buffers hold something, with how much.
    pub(crate) buffered: &'a [(usize, usize)],
}

/// What a scheduler chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Run(usize),
    Drain(usize),
    DrainAll(usize),
}
