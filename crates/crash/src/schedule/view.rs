//! What a policy sees, and the actions it can choose.

/// What a scheduler may choose from.
pub(crate) struct View<'a> {
    /// Scheduling points of the run so far.
    pub(crate) point: u64,
    /// The thread at a scheduling point, unless it cannot continue.
    pub(crate) current: Option<usize>,
    /// Threads that can continue, ascending, including the current one.
    pub(crate) runnable: &'a [usize],
    /// Threads with entries in their buffers, with the number of entries.
    pub(crate) buffered: &'a [(usize, usize)],
}

/// What a scheduler chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Run(usize),
    Drain(usize),
    DrainAll(usize),
}
