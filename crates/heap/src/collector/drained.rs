//! The fourth state of a collection: all objects of the cycle have moved, and references still name sources.

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

/// A cycle whose objects have all moved.
pub(super) struct Drained<'p, M: Medium> {
    pub(super) inner: &'p Inner<M>,
    pub(super) cycle: Arc<Cycle<M>>,
}

impl<'p, M: Medium> Drained<'p, M> {
    /// The cycle of `active`, whose objects have all moved.
    pub(super) fn of(active: &Active<'p, M>) -> Self {
        Self {
            inner: active.inner,
            cycle: Arc::clone(&active.cycle),
        }
    }

    /// Heals every reference and ends the cycle: its pages are free. Without the findings of a marking it looks at
    /// every object.
    ///
    /// Errors: an operation stayed open; the pool is damaged. The cycle is then still in force, unless its pages are
    /// free and only blocks could not be given back ([`Inner::release_retained`] does so later).
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
