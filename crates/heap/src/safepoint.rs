//! Safepoints: operations, and stopping them all for a change of phase.
//!
//! Entering an operation is a locked exchange followed by a look at the stop flag (rule T1): with a
//! plain store both sides could miss each other under TSO.

use firn_media::{Lock, Medium, Words};

use crate::stops::Stops;

/// Words from one lane's flag to the next: a cache line.
const STRIDE: usize = 8;
const QUIET: u64 = 0;
const INSIDE: u64 = 1;
/// How long a request keeps the flag raised at first before it withdraws, in nanoseconds. As long the
/// program then runs before the next.
const PATIENCE_NS: u64 = 100_000;
/// A request that was not granted for long keeps the flag up for one part in so many of that, so that
/// operations that are long, and follow each other, do not starve it.
const PATIENCE_SHARE: u64 = 16;
/// Pauses of a wait after which a medium yields, and does not sleep yet.
const YIELDING: u32 = 128;

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
    /// asking. Adds how long the flag was up to `stops`.
    pub(crate) fn stop<R>(
        &self,
        medium: &M,
        limit_ns: u64,
        stops: &mut Stops,
        change: impl FnOnce() -> R,
    ) -> Option<R> {
        let _request = self.requests.lock(medium);
        let begin = medium.now_ns();
        loop {
            let (raised, cpu) = (medium.now_ns(), medium.cpu_ns());
            let patience = PATIENCE_NS.max(raised.saturating_sub(begin) / PATIENCE_SHARE);
            let flag = RaisedFlag::raise(self);
            if self.all_quiet_by(medium, raised + patience) {
                let result = change();
                drop(flag);
                stops.add(
                    medium.now_ns().saturating_sub(raised),
                    medium.cpu_ns().saturating_sub(cpu),
                );
                return Some(result);
            }
            drop(flag);
            let lowered = medium.now_ns();
            stops.add(
                lowered.saturating_sub(raised),
                medium.cpu_ns().saturating_sub(cpu),
            );
            stops.withdrawn += 1;
            if lowered.saturating_sub(begin) >= limit_ns {
                return None;
            }
            let mut attempt = 0;
            while medium.now_ns() < lowered + patience {
                medium.pause(attempt);
                attempt += 1;
            }
        }
    }

    /// Whether no operation was open any more at this time.
    fn all_quiet_by(&self, medium: &M, end: u64) -> bool {
        let mut attempt = 0;
        for lane in 1..=self.lanes {
            while self.words.load(lane * STRIDE) != QUIET {
                if medium.now_ns() > end {
                    return false;
                }
                // Never sleep here: the flag is up and everybody waits. But whom this waits for may
                // need the processor.
                medium.pause(attempt);
                attempt = YIELDING.min(attempt + 1);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use firn_crash::{Crash, CrashOptions, interleavings};
    use firn_units::VirtAddr;

    use super::*;

    /// Preemptions and delayed stores of one execution.
    const BOUND: u32 = 3;

    /// Enters and leaves an operation, in which there are moments.
    fn operate(safepoint: &Safepoint<Crash>, medium: &Crash, is_inside: &AtomicBool) {
        safepoint.enter(medium, 0);
        is_inside.store(true, Relaxed);
        medium.load_u64(VirtAddr(0));
        is_inside.store(false, Relaxed);
        safepoint.leave(0);
    }

    /// T1, on x86-TSO: what matters is that no delayed store hides who is inside.
    #[test]
    fn nobody_is_inside_while_the_world_stands() {
        let found = interleavings(BOUND, 100_000, |schedule| {
            let crash = Crash::new(4096, CrashOptions::default());
            let safepoint = Arc::new(Safepoint::new(&crash, 1));
            let is_inside = Arc::new(AtomicBool::new(false));
            let (mine, medium, inside) = (safepoint.clone(), crash.clone(), is_inside.clone());
            let stopping = crash.clone();
            let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
                Box::new(move || (0..2).for_each(|_| operate(&mine, &medium, &inside))),
                Box::new(move || {
                    let mut stops = Stops::default();
                    let stopped = safepoint.stop(&stopping, u64::MAX, &mut stops, || {
                        assert!(!is_inside.load(Relaxed), "an operation is open");
                        stopping.load_u64(VirtAddr(0));
                        assert!(!is_inside.load(Relaxed), "an operation was entered");
                    });
                    assert!(stopped.is_some());
                }),
            ];
            let outcome = crash.run(jobs, schedule);
            outcome.finished().map(|()| outcome)
        });
        println!("{} executions", found.executions);
        assert_eq!(found.failure, None);
        assert!(found.exhaustive);
    }
}
