//! The purposes of time spent, so that a timed medium can draw a breakdown.

use crate::Probe;

/// The purposes that a breakdown tells apart (FFCCD, figures 5, 14 and 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Scope {
    /// Copying an object to its destination.
    Copy,
    /// Asking whether an address lies in a relocation page.
    Check,
    /// Finding the destination of an object.
    Lookup,
    /// Reading or changing the movement state of an object.
    State,
    /// Healing a reference.
    Reference,
    /// Marking.
    Mark,
    /// Choosing pages and planning destinations.
    Summary,
    /// Closing a cycle.
    Finish,
}

/// A table that the heap keeps in volatile memory outside [`crate::Words`], because nobody changes it while it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Table {
    /// Which pages are emptied and filled.
    Frames,
    /// Where the objects of each emptied page go.
    Forwarding,
}

/// Ends its scope when dropped. Costs nothing on media without time.
pub struct ScopeGuard<'m, M: Probe> {
    medium: &'m M,
    scope: Scope,
}

impl<'m, M: Probe> ScopeGuard<'m, M> {
    pub(crate) fn enter(medium: &'m M, scope: Scope) -> Self {
        medium.scope_begin(scope);
        Self { medium, scope }
    }
}

impl<M: Probe> Drop for ScopeGuard<'_, M> {
    fn drop(&mut self) {
        self.medium.scope_end(self.scope);
    }
}
