//! Slots that come into use beside a step of the collector.

use core::ops::Deref;
use std::sync::Arc;

use firn_media::Medium;

use crate::alloc::TakenSlots;
use crate::inner::Inner;

/// Slots that came into use since [`Noted::begin`]. Dropping this ends the noting.
pub(super) struct Noted<'p, M: Medium> {
    inner: &'p Inner<M>,
    slots: Arc<TakenSlots<M>>,
}

impl<'p, M: Medium> Noted<'p, M> {
    /// Nothing noted yet.
    pub(super) fn new(inner: &'p Inner<M>) -> Self {
        Self {
            inner,
            slots: Arc::new(TakenSlots::new(&inner.medium)),
        }
    }

    /// Begins the noting. No operation is open.
    pub(super) fn begin(&self) {
        let allocator = &self.inner.allocator;
        allocator.note_in(&self.inner.medium, &self.slots);
    }

    /// The slots, which readers may keep.
    pub(super) fn slots(&self) -> &Arc<TakenSlots<M>> {
        &self.slots
    }
}

impl<M: Medium> Deref for Noted<'_, M> {
    type Target = TakenSlots<M>;

    fn deref(&self) -> &TakenSlots<M> {
        &self.slots
    }
}

impl<M: Medium> Drop for Noted<'_, M> {
    fn drop(&mut self) {
        let allocator = &self.inner.allocator;
        allocator.stop_noting(&self.inner.medium, &self.slots);
    }
}
