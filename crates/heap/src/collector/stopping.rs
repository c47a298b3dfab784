//! The moments without an open operation that a cycle asks for.

use std::sync::atomic::Ordering;

use firn_media::Medium;

use super::figures::publish_stops;
use crate::error::Error;
use crate::inner::Inner;
use crate::stops::Stops;

impl<M: Medium> Inner<M> {
    /// [`Inner::stop_for_cycle`], named by its step.
    pub(super) fn stop_for<R>(
        &self,
        stop: &firn_media::Step,
        change: impl FnOnce() -> R,
    ) -> Result<R, Error> {
        if self.medium.leaves_out(stop) {
            return Ok(change());
        }
        self.stop_for_cycle(change)
    }

    /// Stops the world for a step of the collector, and counts how long it stood.
    pub(super) fn stop_for_cycle<R>(&self, change: impl FnOnce() -> R) -> Result<R, Error> {
        let medium = &self.medium;
        let mut stops = Stops::default();
        let patience_ns = self.collector.patience_ns.load(Ordering::Relaxed);
        let result = self.stopped_within(patience_ns, &mut stops, change);
        self.collector.stops.lock(medium).add_all(&stops);
        publish_stops(self, &stops);
        result
    }
}
