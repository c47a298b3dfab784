//! The view of a policy, and the actions it can choose.

/// The choices of a scheduler.
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

/// A scheduler's choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Run(usize),
    Drain(usize),
    DrainAll(usize),
}
