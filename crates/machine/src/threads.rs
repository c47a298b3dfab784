//! Simulated threads: each has a core, and the thread whose core's clock is furthest behind runs next.
//!
//! A thread runs until its clock is a quantum ahead of the next one's. The code outside all simulated threads has the
//! first core, and lets the others run up to its own time.

use std::thread::panicking;

use firn_fibers::{Fiber, Progress, fleet, inside, panic_message, suspend};

use crate::machine::{Machine, Shared};
use crate::state::{State, Thread};
use crate::statistics::NO_SCOPE;
use crate::time::{Ticks, cycles};

/// The body of a simulated thread.
pub type Job = Box<dyn FnOnce() + Send>;

/// A thread of a [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineThread(usize);

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// All its threads have ended.
    Finished,
    /// The power failed.
    PowerFailed,
    /// Threads panicked with these messages.
    Panicked(Vec<String>),
}

/// Cycles that a thread may be ahead of the others.
const QUANTUM: Ticks = cycles(1_000);
/// Durations of a wait: a spin, then sleeps.
const SPIN: Ticks = cycles(100);
const SPINS: u32 = 64;
const SLEEP: Ticks = cycles(5_000);
/// Pauses of all threads, without a store between them, that count as a deadlock.
const MOST_IDLE_PAUSES: u64 = 20_000_000;

impl Thread {
    pub(crate) fn outside() -> Self {
        Self::on(0)
    }

    fn on(core: usize) -> Self {
        Self {
            core,
            scopes: vec![NO_SCOPE],
            ..Self::default()
        }
    }
}

impl State {
    /// The thread that is furthest behind, and the clock up to which it may run. Its limit comes from the other
    /// simulated threads, and from the code outside if that waits for its turn.
    fn next(&self, outside_runs: bool) -> Option<(usize, Ticks)> {
        let clock = |id: usize| self.computer.now(self.threads[id].core);
        let live = |&id: &usize| !self.threads[id].finished;
        let next = (1..self.threads.len())
            .filter(live)
            .min_by_key(|&id| (clock(id), self.threads[id].turn))?;
        let others = (usize::from(!outside_runs)..self.threads.len())
            .filter(live)
            .filter(|&id| id != next);
        let end = others.map(clock).min();
        Some((next, end.map_or(Ticks::MAX, |clock| clock + QUANTUM)))
    }

    /// Runs this thread from now on, until `slice_end`.
    fn enter(&mut self, thread: usize, slice_end: Ticks) {
        for id in [self.current, thread] {
            let core = self.threads[id].core;
            let processor = self.computer.processor(core);
            processor
                .scopes
                .exchange(&mut self.threads[id].scopes, processor.now);
        }
        self.switch(thread, slice_end);
    }
}

impl Shared {
    /// The current thread's time is up.
    #[cold]
    pub(crate) fn pass(&self) {
        if panicking() {
            return;
        }
        if !self.state.with(State::wake) {
            return;
        }
        if inside() {
            return suspend();
        }
        loop {
            let next = self.state.with(|state| {
                let next = state.next(true);
                let now = state.now();
                let behind =
                    next.filter(|&(id, _)| state.computer.now(state.threads[id].core) < now);
                if behind.is_none() {
                    let of = |(id, _): (usize, Ticks)| state.computer.now(state.threads[id].core);
                    state.set_slice_end(next.map_or(Ticks::MAX, |next| of(next) + QUANTUM));
                }
                behind.filter(|_| !state.dead)
            });
            match next {
                Some((thread, end)) => self.resume(thread, end, &mut Vec::new()),
                None => return,
            }
        }
    }

    /// Resumes one thread until it suspends itself, and marks it if it ended.
    fn resume(&self, thread: usize, end: Ticks, panics: &mut Vec<String>) {
        let Some(mut fiber) = fleet::take(self.id, thread) else {
            return self
                .state
                .with(|state| state.threads[thread].finished = true);
        };
        let before = self.state.with(|state| {
            let before = state.slice_end;
            state.enter(thread, end);
            before
        });
        let progress = fiber.resume();
        self.state.with(|state| {
            state.enter(0, before);
            match progress {
                Progress::Suspended => fleet::put(self.id, thread, fiber),
                Progress::Ended => state.threads[thread].finished = true,
                Progress::Panicked(payload) => {
                    state.threads[thread].finished = true;
                    state.threads[thread].panicked = true;
                    if !fleet::is_end_of_wait(&*payload) {
                        panics.push(panic_message(&*payload));
                    }
                }
            }
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !inside() {
            fleet::drop_all(self.id);
        }
    }
}

impl Machine {
    /// Runs `jobs` as simulated threads until all of them have ended.
    pub fn run(&self, jobs: Vec<Job>) -> RunEnd {
        self.run_until(jobs, u64::MAX)
    }

    /// Runs `jobs` until the power fails, before memory operation number `event` of the machine's life. Threads are
    /// unwound; [`Machine::restart`] starts it again with what persistent memory holds.
    pub fn run_until(&self, jobs: Vec<Job>, event: u64) -> RunEnd {
        assert!(
            !inside(),
            "a simulated thread cannot run others, it spawns them"
        );
        let shared = &self.shared;
        let ids: Vec<usize> = jobs
            .into_iter()
            .map(|job| self.spawn_thread(job).0)
            .collect();
        shared.state.with(|state| state.set_failure(event));
        let mut panics = Vec::new();
        loop {
            let next = shared.state.with(|state| {
                let done = ids.iter().all(|&id| state.threads[id].finished);
                state.next(false).filter(|_| !done && !state.dead)
            });
            match next {
                Some((thread, end)) => shared.resume(thread, end, &mut panics),
                None => break,
            }
        }
        let dead = shared.state.with(|state| {
            state.set_failure(u64::MAX);
            let ended = ids
                .iter()
                .map(|&id| state.computer.now(state.threads[id].core))
                .max();
            state.computer.idle(0, ended.unwrap_or(0));
            state.dead
        });
        if dead {
            fleet::drop_all(shared.id);
            return RunEnd::PowerFailed;
        }
        match panics.is_empty() {
            true => RunEnd::Finished,
            false => RunEnd::Panicked(panics),
        }
    }

    pub(crate) fn spawn_thread(&self, job: Job) -> MachineThread {
        let (id, dead) = self.shared.state.with(|state| {
            let (id, cores) = (state.threads.len(), state.computer.cores());
            // The first core belongs to the code outside as long as there is another.
            let core = match cores {
                1 => 0,
                _ => 1 + (id - 1) % (cores - 1),
            };
            let now = state.now();
            state.computer.idle(core, now);
            state.threads.push(Thread {
                finished: state.dead,
                panicked: state.dead,
                ..Thread::on(core)
            });
            state.set_slice_end(state.slice_end.min(now + QUANTUM));
            (id, state.dead)
        });
        if !dead {
            fleet::put(self.shared.id, id, Fiber::new(job));
        }
        MachineThread(id)
    }

    pub(crate) fn join_thread(&self, thread: MachineThread) -> bool {
        let mut attempt = 0;
        loop {
            let ended = self.shared.state.with(|state| {
                let joined = &state.threads[thread.0];
                let ended =
                    (joined.finished || state.dead).then_some(joined.finished && !joined.panicked);
                if ended.is_some() {
                    let (core, then) = (
                        state.core(),
                        state.computer.now(state.threads[thread.0].core),
                    );
                    state.computer.idle(core, then);
                }
                ended
            });
            match ended {
                Some(ended) => return ended,
                None => self.pause_thread(attempt),
            }
            attempt += 1;
        }
    }

    pub(crate) fn pause_thread(&self, attempt: u32) {
        let dead = self.shared.state.with(|state| {
            let wait = if attempt < SPINS { SPIN } else { SLEEP };
            let (core, then) = (state.core(), state.now() + wait);
            state.computer.idle(core, then);
            state.idle_pauses += 1;
            assert!(
                state.idle_pauses < MOST_IDLE_PAUSES,
                "deadlock: all threads wait"
            );
            state.dead
        });
        if dead && !inside() {
            fleet::end_wait(self.shared.id);
        }
        self.shared.pass();
    }

    /// Unwinds every simulated thread where it is, without touching memory.
    pub(crate) fn kill_threads(&self) {
        assert!(!inside(), "a simulated thread cannot end the others");
        self.shared.state.with(State::die);
        fleet::drop_all(self.shared.id);
    }
}
