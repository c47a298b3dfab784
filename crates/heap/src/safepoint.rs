//! Safepoints: operations, and stopping them all for a change of phase.
//!
//! Entering an operation is a locked exchange followed by a look at the stop flag (rule T1): with a
//! plain store both sides could miss each other under TSO.

use firn_media::{Lock, Medium, Words};

/// Words from one lane's flag to the next: a cache line.
const STRIDE: usize = 8;
const QUIET: u64 = 0;
const INSIDE: u64 = 1;
/// How long one request keeps the flag raised before it withdraws, in nanoseconds.
const PATIENCE_NS: u64 = 100_000;
/// Pause between a withdrawn request and the next, in calls of [`Medium::pause`].
const RELIEF: u32 = 80;

/// Who is inside an operation, and whether someone wants the world to stop.
pub(crate) struct Safepoint<M: Medium> {
    /// Word 0: the stop flag. From word [`STRIDE`]: one flag a lane.
    words: M::Words,
    lanes: usize,
    /// One request at a time.
    requests: Lock<()>,
}

impl<M: Medium> Safepoint<M> {
    pub(crate) fn new(medium: &M, lanes: usize) -> Self {
        Self {
            words: medium.words((lanes + 1) * STRIDE),
            lanes,
            requests: Lock::new(()),
        }
    }

    /// Enters an operation. Returns whether it had to wait for a phase change.
    #[inline]
    pub(crate) fn enter(&self, medium: &M, lane: usize) -> bool {
        let mut attempt = 0;
        loop {
            self.words.swap((lane + 1) * STRIDE, INSIDE);
            if self.words.load(0) == 0 {
                return attempt > 0;
            }
            self.words.store((lane + 1) * STRIDE, QUIET);
            while self.words.load(0) != 0 {
                medium.pause(attempt);
                attempt += 1;
            }
        }
    }

    /// Leaves the operation.
    #[inline]
    pub(crate) fn leave(&self, lane: usize) {
        self.words.store((lane + 1) * STRIDE, QUIET);
    }

    /// Runs `change` while no operation is open anywhere. Gives up after `limit_ns` nanoseconds of
    /// asking; counts withdrawn requests in `starved`.
    pub(crate) fn stop<R>(
        &self,
        medium: &M,
        limit_ns: u64,
        starved: &mut u64,
        change: impl FnOnce() -> R,
    ) -> Option<R> {
        let _request = self.requests.lock(medium);
        let begin = medium.now_ns();
        loop {
            {
                let _raised = RaisedFlag::raise(self);
                if self.all_quiet_soon(medium) {
                    return Some(change());
                }
            }
            *starved += 1;
            if medium.now_ns().saturating_sub(begin) >= limit_ns {
                return None;
            }
            for attempt in 0..RELIEF {
                medium.pause(attempt);
            }
        }
    }

    fn all_quiet_soon(&self, medium: &M) -> bool {
        let raised = medium.now_ns();
        let mut attempt = 0;
        for lane in 1..=self.lanes {
            while self.words.load(lane * STRIDE) != QUIET {
                if medium.now_ns().saturating_sub(raised) > PATIENCE_NS {
                    return false;
                }
                // Never sleep here: the flag is up and everybody waits.
                medium.pause(attempt % 32);
                attempt += 1;
            }
        }
        true
    }
}

/// The stop flag while it is up. It goes down even if the change, or waiting for it, panics.
struct RaisedFlag<'a, M: Medium>(&'a Safepoint<M>);

impl<'a, M: Medium> RaisedFlag<'a, M> {
    fn raise(safepoint: &'a Safepoint<M>) -> Self {
        safepoint.words.swap(0, 1);
        Self(safepoint)
    }
}

impl<M: Medium> Drop for RaisedFlag<'_, M> {
    fn drop(&mut self) {
        self.0.words.store(0, 0);
    }
}
