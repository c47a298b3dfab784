//! Nested parts of a transaction.

use firn_media::Medium;

use super::frames::settle_fresh_frames;
use super::{slots, write_set};
use crate::operation::{Core, State};

/// Rolls a nested part back when dropped, unless it is kept.
#[doc(hidden)]
pub struct Savepoint<'t, M: Medium> {
    pub(super) mark: Option<write_set::Mark>,
    pub(super) allocated: usize,
    pub(super) freed: usize,
    pub(super) linked: usize,
    pub(super) core: &'t Core<M>,
}

impl<M: Medium> Savepoint<'_, M> {
    /// Keeps the part's changes.
    pub fn keep(mut self) {
        self.mark = None;
        self.core.state.borrow_mut().changes.writes.keep();
    }
}

impl<M: Medium> Drop for Savepoint<'_, M> {
    fn drop(&mut self) {
        let Some(mark) = self.mark.take() else { return };
        self.core.newest.set(0);
        let mut state = self.core.state.borrow_mut();
        let State { changes, cache, .. } = &mut *state;
        changes.writes.roll_back(&mark);
        changes.freed.truncate(self.freed);
        changes.linked.truncate(self.linked);
        if changes.allocated.len() > self.allocated {
            settle_fresh_frames(&self.core.inner.medium, cache);
        }
        for change in changes.allocated.drain(self.allocated..) {
            slots::return_slot(&self.core.inner, change.slot);
        }
    }
}
