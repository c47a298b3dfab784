//! Safepoints: operations, and stopping them all for a change of phase.
//!
//! Entering an operation is a store, a barrier and a look at the stop word (rule T1): without a barrier both sides
//! could miss each other under TSO. The thread that stops the world issues the barrier for all threads, if the medium
//! can do so, because stopping is rare and entering is frequent.
//!
//! A request keeps all sessions from beginning an operation for no longer than short ones take. For a longer operation
//! the request waits separately: the stop word names its lane, whose next operation waits, while all others go on. Once
//! that operation has ended, all sessions are asked again.
//!
//! No thread polls for long: a thread that is kept out sleeps until the stop word changes, and each change is
//! announced. Leaving an operation is a plain store without an announcement, so a request polls for it, less often the
//! longer it has waited. But a lane that is kept out has left, and announces that.

use firn_media::{Lock, Medium, MediumExt, Step, Words};

use crate::stops::Stops;

/// Words from one lane's flag to the next: a cache line.
const STRIDE: usize = 8;
const QUIET: u64 = 0;
const INSIDE: u64 = 1;
/// Values of the stop word: no lane is kept out; all lanes are. [`name_of`] gives the value that keeps out one lane.
const NOBODY: u64 = 0;
const EVERYBODY: u64 = u64::MAX;
/// How long a request at first keeps everyone out before it withdraws, in nanoseconds. The program then runs for as
/// long before the next request.
const PATIENCE_NS: u64 = 50_000;
/// A request that has waited for long keeps everyone out for this share of its waiting time, so that long operations
/// that follow each other on several threads do not starve it.
const PATIENCE_SHARE: u64 = 64;
/// How long a request waits for a single operation without sleeping, in nanoseconds.
const AWAKE_NS: u64 = 1_000_000;
/// The time between two looks at an operation: this share of the time waited so far, and at most this many nanoseconds.
const LOOK_SHARE: u64 = 16;
const LOOK_NS: u64 = 20_000_000;
/// The number of pauses in a wait after which a medium yields, but does not sleep yet.
const YIELDING: u32 = 128;

/// A step that tests leave out: changes of the stop word are announced.
static STOP_WORD_ANNOUNCED: Step = Step {
    name: "stop-word-announced",
    rule: "T1",
    what: "who is kept out is told that the stop word has changed",
};

fn flag_at(lane: usize) -> usize {
    (lane + 1) * STRIDE
}

fn name_of(lane: usize) -> u64 {
    lane as u64 + 1
}

/// Which lanes are inside an operation, and whether a thread wants the world to stop.
pub(crate) struct Safepoint<M: Medium> {
    /// Word 0: the stop word. From word [`STRIDE`]: one flag per lane.
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
        self.words.store_light(flag_at(lane), INSIDE);
        self.words.load(0) != NOBODY && self.enter_later(medium, lane)
    }

    /// Enters when the stop word, which is set, lets the lane in.
    #[cold]
    fn enter_later(&self, medium: &M, lane: usize) -> bool {
        let mut attempt = 0;
        // In a forked child there is no thread that would let it in.
        while self.kept_out_by(lane).is_some() && medium.is_ours() {
            self.leave(lane);
            // A request may be waiting for this lane alone.
            medium.wake(&self.words, flag_at(lane));
            while let Some(word) = self.kept_out_by(lane) {
                match attempt {
                    ..YIELDING => medium.pause(attempt),
                    _ => medium.wait_while(&self.words, 0, word, u64::MAX),
                }
                attempt = YIELDING.min(attempt + 1);
            }
            self.words.store_light(flag_at(lane), INSIDE);
        }
        attempt > 0
    }

    /// The stop word, if it keeps this lane out.
    fn kept_out_by(&self, lane: usize) -> Option<u64> {
        let word = self.words.load(0);
        (word == EVERYBODY || word == name_of(lane)).then_some(word)
    }

    /// Leaves the operation.
    #[inline]
    pub(crate) fn leave(&self, lane: usize) {
        self.words.store(flag_at(lane), QUIET);
    }

    fn is_inside(&self, lane: usize) -> bool {
        self.words.load(flag_at(lane)) != QUIET
    }

    /// Runs `change` while no operation is open anywhere. Gives up after trying for `limit_ns` nanoseconds. Adds the
    /// time during which operations were kept from beginning to `stops`.
    pub(crate) fn stop<R>(
        &self,
        medium: &M,
        limit_ns: u64,
        stops: &mut Stops,
        change: impl FnOnce() -> R,
    ) -> Option<R> {
        let _request = self.requests.lock(medium);
        let begin = Instant::now(medium);
        let end_ns = begin.ns.saturating_add(limit_ns);
        let word = StopWord {
            safepoint: self,
            medium,
        };
        let mut standing = begin;
        loop {
            let asked_ns = standing.ns.saturating_sub(begin.ns);
            let patience_ns = PATIENCE_NS.max(asked_ns / PATIENCE_SHARE);
            word.keep_out(EVERYBODY);
            let Some(lane) = self.inside_at(medium, medium.now_ns().saturating_add(patience_ns))
            else {
                let result = change();
                word.let_in();
                standing.add_to(stops, medium);
                return Some(result);
            };
            word.let_in();
            standing.add_to(stops, medium);
            stops.withdrawn += 1;
            let_run(medium, patience_ns);
            word.keep_out(name_of(lane));
            standing = self.outlast(medium, lane, end_ns)?;
        }
    }

    /// Waits until no operation is open, at most until `end_ns`; then returns a lane that is still inside.
    fn inside_at(&self, medium: &M, end_ns: u64) -> Option<usize> {
        let mut attempt = 0;
        for lane in 0..self.lanes {
            while self.is_inside(lane) {
                if medium.now_ns() > end_ns {
                    return Some(lane);
                }
                // Never sleep here, because all sessions wait. But the lane that this waits for may need the processor.
                medium.pause(attempt);
                attempt = YIELDING.min(attempt + 1);
            }
        }
        None
    }

    /// Waits until a lane's operation has ended, at most until `end_ns`; its next operation is kept out. Returns when
    /// the lane was last seen inside: it may be waiting since then.
    fn outlast(&self, medium: &M, lane: usize, end_ns: u64) -> Option<Instant> {
        let begin = Instant::now(medium);
        let mut seen = begin;
        let mut attempt = 0;
        loop {
            let now = Instant::now(medium);
            if now.ns >= end_ns {
                return None;
            }
            if !self.is_inside(lane) {
                return Some(seen);
            }
            seen = now;
            // Sleeping is only for operations so long that it does not matter.
            let waited_ns = now.ns.saturating_sub(begin.ns);
            if waited_ns < AWAKE_NS {
                medium.pause(attempt);
                attempt = YIELDING.min(attempt + 1);
                continue;
            }
            let look_ns = now.ns + LOOK_NS.min(waited_ns / LOOK_SHARE);
            medium.wait_while(&self.words, flag_at(lane), INSIDE, look_ns.min(end_ns));
        }
    }
}

/// Lets the program run for `ns` nanoseconds.
fn let_run<M: Medium>(medium: &M, ns: u64) {
    let until = medium.now_ns().saturating_add(ns);
    let mut attempt = 0;
    while medium.now_ns() < until {
        medium.pause(attempt);
        attempt += 1;
    }
}

/// A moment, and the thread's computing time until then.
#[derive(Clone, Copy)]
struct Instant {
    ns: u64,
    cpu_ns: u64,
}

impl Instant {
    fn now<M: Medium>(medium: &M) -> Self {
        Self {
            ns: medium.now_ns(),
            cpu_ns: medium.cpu_ns(),
        }
    }

    /// Adds a stop from this moment to now.
    fn add_to<M: Medium>(self, stops: &mut Stops, medium: &M) {
        let now = Self::now(medium);
        stops.add(
            now.ns.saturating_sub(self.ns),
            now.cpu_ns.saturating_sub(self.cpu_ns),
        );
    }
}

/// The stop word, held by a request. After its drop no lane is kept out, even if the change, or waiting for it, panics.
struct StopWord<'a, M: Medium> {
    safepoint: &'a Safepoint<M>,
    medium: &'a M,
}

impl<M: Medium> StopWord<'_, M> {
    /// A barrier follows, so that a look at the lanes' flags comes after it.
    fn keep_out(&self, whom: u64) {
        self.safepoint.words.store_heavy(0, whom);
    }

    fn let_in(&self) {
        self.safepoint.words.store(0, NOBODY);
        if self.medium.keeps(&STOP_WORD_ANNOUNCED) {
            self.medium.wake(&self.safepoint.words, 0);
        }
    }
}

impl<M: Medium> Drop for StopWord<'_, M> {
    fn drop(&mut self) {
        self.let_in();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use firn_crash::{Crash, CrashOptions, Schedule, interleavings};
    use firn_mapped::{Mapped, MappedOptions};
    use firn_units::VirtAddr;

    use firn_media::{Memory, Runtime};

    use super::*;

    /// The most preemptions and delayed stores of one execution.
    const BOUND: u32 = 3;

    /// Enters and leaves an operation that takes some steps.
    fn operate(safepoint: &Safepoint<Crash>, medium: &Crash, is_inside: &AtomicBool) {
        safepoint.enter(medium, 0);
        is_inside.store(true, Relaxed);
        medium.load_u64(VirtAddr(0));
        is_inside.store(false, Relaxed);
        safepoint.leave(0);
    }

    /// T1, on x86-TSO: no delayed store may hide that a lane is inside.
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

    /// No lane is inside with threads of the system either, where the stopping thread issues the barrier.
    #[test]
    fn nobody_is_inside_while_the_world_stands_on_threads_of_the_systems() {
        let medium = Mapped::anonymous(1 << 20, &MappedOptions::default()).unwrap();
        let safepoint = Safepoint::new(&medium, 2);
        let is_inside = [const { AtomicBool::new(false) }; 2];
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (lane, is_inside) in is_inside.iter().enumerate() {
                let (safepoint, medium, ended) = (&safepoint, &medium, &ended);
                scope.spawn(move || {
                    while !ended.load(Relaxed) {
                        safepoint.enter(medium, lane);
                        is_inside.store(true, Relaxed);
                        is_inside.store(false, Relaxed);
                        safepoint.leave(lane);
                    }
                });
            }
            let mut stops = Stops::default();
            for _ in 0..3000 {
                let stopped = safepoint.stop(&medium, u64::MAX, &mut stops, || {
                    is_inside.iter().all(|inside| !inside.load(Relaxed))
                });
                if stopped != Some(true) {
                    ended.store(true, Relaxed);
                }
                assert_eq!(stopped, Some(true), "an operation is open");
            }
            ended.store(true, Relaxed);
        });
    }

    /// A lane that is kept out for long sleeps, and is woken when it may enter. Without the announcement it sleeps
    /// forever.
    #[test]
    fn who_is_kept_out_is_told_when_the_world_goes_on() {
        let ends = |leave_out, seed| {
            let options = CrashOptions {
                leave_out,
                ..CrashOptions::default()
            };
            let crash = Crash::new(4096, options);
            let safepoint = Arc::new(Safepoint::new(&crash, 1));
            let stands = Arc::new(AtomicBool::new(false));
            let (mine, medium, begun) = (safepoint.clone(), crash.clone(), stands.clone());
            let enter = move || {
                while !begun.load(Relaxed) {
                    medium.pause(0);
                }
                assert!(mine.enter(&medium, 0), "it did not wait");
                mine.leave(0);
            };
            let medium = crash.clone();
            let stop = move || {
                let mut stops = Stops::default();
                let stopped = safepoint.stop(&medium, u64::MAX, &mut stops, || {
                    stands.store(true, Relaxed);
                    (0..4 * YIELDING).for_each(|_| medium.pause(0));
                });
                assert!(stopped.is_some());
            };
            let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![Box::new(enter), Box::new(stop)];
            crash.run(jobs, Schedule::Random { seed }).finished()
        };
        for seed in 0..20 {
            assert_eq!(ends(None, seed), Ok(()), "seed {seed}");
            let missed = ends(Some(&STOP_WORD_ANNOUNCED), seed);
            assert!(missed.is_err(), "seed {seed}");
        }
    }

    /// A request waits for a long operation alone, and its thread's next operation waits, unless the stop comes and
    /// goes before it begins.
    #[test]
    fn short_operations_go_on_while_a_long_one_is_waited_for() {
        const SHORT: u64 = 500;
        let waited = Arc::new(AtomicU64::new(0));
        for seed in 0..20 {
            let crash = Crash::new(4096, CrashOptions::default());
            let safepoint = Arc::new(Safepoint::new(&crash, 2));
            let went_on = Arc::new(AtomicU64::new(0));
            let begun = Arc::new(AtomicBool::new(false));
            let stopped = Arc::new(AtomicBool::new(false));
            let (on, medium, count) = (safepoint.clone(), crash.clone(), went_on.clone());
            let (is_inside, next) = (begun.clone(), waited.clone());
            let long = move || {
                on.enter(&medium, 0);
                is_inside.store(true, Relaxed);
                while count.load(Relaxed) < SHORT {
                    medium.pause(0);
                }
                on.leave(0);
                next.fetch_add(on.enter(&medium, 0).into(), Relaxed);
                on.leave(0);
            };
            let (on, medium, count, done) =
                (safepoint.clone(), crash.clone(), went_on, stopped.clone());
            let short = move || {
                while !done.load(Relaxed) {
                    on.enter(&medium, 1);
                    medium.load_u64(VirtAddr(0));
                    if on.words.load(0) == name_of(0) {
                        count.fetch_add(1, Relaxed);
                    }
                    on.leave(1);
                }
            };
            let medium = crash.clone();
            let stop = move || {
                while !begun.load(Relaxed) {
                    medium.pause(0);
                }
                let mut stops = Stops::default();
                let granted = safepoint.stop(&medium, u64::MAX, &mut stops, || {
                    stopped.store(true, Relaxed);
                });
                assert!(granted.is_some() && stops.withdrawn > 0);
            };
            let jobs: Vec<Box<dyn FnOnce() + Send>> =
                vec![Box::new(long), Box::new(short), Box::new(stop)];
            let outcome = crash.run(jobs, Schedule::Random { seed });
            assert_eq!(outcome.finished(), Ok(()), "seed {seed}");
        }
        assert!(waited.load(Relaxed) > 10, "{waited:?} of 20 waited");
    }
}
