//! The fourth state of a collection: everything of the cycle has moved, and references still name sources.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_media::Medium;

use super::active::Active;
use super::marked::Marked;
use super::options::CollectOptions;
use super::released::Released;
use crate::error::Error;
use crate::inner::Inner;
use crate::relocation::Cycle;

/// A cycle of which everything has moved.
pub(super) struct Drained<'p, M: Medium> {
    pub(super) inner: &'p Inner<M>,
    pub(super) cycle: Arc<Cycle<M>>,
}

impl<'p, M: Medium> Drained<'p, M> {
    /// The cycle of `active`, whose every object has moved.
    pub(super) fn of(active: &Active<'p, M>) -> Self {
        Self {
            inner: active.inner,
            cycle: Arc::clone(&active.cycle),
        }
    }

    /// Heals every reference and ends the cycle: its pages are free. Without what marking has found every object is looked
    /// at.
    ///
    /// Errors: an operation stayed open; the pool is damaged. The cycle is in force still, unless its pages
    /// are free and only blocks could not be given back ([`Inner::release_retained`] does so later).
    pub(super) fn release(
        self,
        marked: Option<&Marked<'_, M>>,
        options: &CollectOptions,
    ) -> Result<Released, Error> {
        let inner = self.inner;
        self.heal(marked)?;
        if inner.keeps_addresses {
            self.heal_pairs()?;
        }
        self.close()?;
        let released_bytes = match inner.keeps_addresses {
            true => inner.release_retained(options.pages, options.everything)?,
            false => 0,
        };
        inner.collector.cycles_ended.fetch_add(1, Ordering::Release);
        Ok(Released::of(&self.cycle, released_bytes))
    }
}
