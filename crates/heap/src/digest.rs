//! An open pool's volatile knowledge, as one number.

use core::hash::{Hash, Hasher};
use core::sync::atomic::Ordering;
use std::hash::DefaultHasher;

use firn_media::Medium;

use crate::pool::Pool;

impl<M: Medium> Pool<M> {
    /// Identifies the volatile knowledge of a pool that was opened just now: two pools with equal digests and equal
    /// media continue alike. For explorers of many crashes, most of which lead to the same state.
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
