//! What an open pool knows besides what lies on media, in one number.

use core::hash::{Hash, Hasher};
use core::sync::atomic::Ordering;
use std::hash::DefaultHasher;

use firn_media::Medium;

use crate::pool::Pool;

impl<M: Medium> Pool<M> {
    /// Identifies what a pool knows that was opened just now, besides what lies on media: two with the same
    /// digest and the same media go on alike. For those who look at many crashes, most of which end in the
    /// same.
    #[doc(hidden)]
    pub fn volatile_digest(&self) -> u64 {
        let (inner, mut all) = (&*self.inner, DefaultHasher::new());
        let numbers = (inner.redo.counter(), inner.redo.known_durable());
        let exact = inner.exact.load(Ordering::Acquire);
        (numbers, exact, inner.recounts(), inner.types.end()).hash(&mut all);
        if let Some(cycle) = inner.collector.cycle(&inner.medium) {
            cycle.digest(&mut all);
        }
        inner.allocator.digest(&inner.medium, &mut all);
        all.finish()
    }
}
