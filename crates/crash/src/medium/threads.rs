//! Simulated threads: starting, switching, waiting, ending.

use std::sync::{Arc, MutexGuard};
use std::thread::panicking;

use firn_fibers::{self as fiber, Fiber, Progress, fleet, panic_message};
use firn_media::Runtime;

use crate::medium::crash::Crash;
use crate::medium::shared::Shared;
use crate::medium::state::{Parked, State, Stuck, ThreadState};
use crate::medium::words::CrashWords;
use crate::schedule::run::ThreadPanic;
use crate::schedule::view::{Action, View};

/// Simulated nanoseconds of a pause.
const PAUSE_NS: u64 = 1_000;
/// Pauses after which a waiter sleeps, if no other thread is left to run.
const AWAKE: u32 = 256;
const SLEEP_NS: u64 = 50_000;
/// Rounds in which all threads find nothing changed before they count as deadlocked. Long enough for waits that give up
/// after some time.
const IDLE_ROUNDS: u32 = 10_000;
/// Scheduling points for which a waiting context outside all threads lends control to one thread.
const LENT_POINTS: u32 = 32;

/// A thread of a [`Crash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashThread(pub(crate) usize);

/// The function that a simulated thread runs.
pub type Job = Box<dyn FnOnce() + Send>;

impl Shared {
    /// A scheduling point: another thread may go first, and stores may leave their buffers.
    #[inline]
    pub(crate) fn point(&self) {
        if self.simulating() {
            self.switch();
        } else if self.is_dead() {
            self.stop_if_dead();
        }
    }

    #[cold]
    fn stop_if_dead(&self) {
        if fiber::inside() && !panicking() {
            fiber::suspend();
        }
    }

    fn switch(&self) {
        if panicking() {
            return;
        }
        let mut state = self.lock();
        state.steps += 1;
        if state.steps > self.options.max_steps {
            state.stuck = Stuck::StepLimit;
            drop(state);
            return fiber::suspend();
        }
        let me = state.current;
        let now_ns = state.clock_ns;
        for thread in &mut state.threads {
            thread.paused = false;
            thread.wake_at(now_ns);
        }
        if let Some(left) = state.slice {
            state.slice = left.checked_sub(1);
            if left == 0 {
                drop(state);
                return fiber::suspend();
            }
        }
        self.switch_from(state, Some(me));
    }

    fn switch_from(&self, mut state: MutexGuard<'_, State>, current: Option<usize>) {
        let me = state.current;
        let next = self.decide(&mut state, current);
        if next != Some(me) || state.dead {
            state.next = next;
            drop(state);
            fiber::suspend();
        }
    }

    /// Chooses the next thread to run, and drains buffers as the scheduler says. `None` if all have ended or none can
    /// continue.
    pub(crate) fn decide(&self, state: &mut State, current: Option<usize>) -> Option<usize> {
        loop {
            if state.dead || state.stuck != Stuck::No {
                return None;
            }
            let alone = |(id, thread): (usize, &ThreadState)| {
                let other = Some(id) != current && !thread.finished && !thread.waits();
                !other && thread.buffer.is_empty()
            };
            if current.is_some() && state.threads.iter().enumerate().skip(1).all(alone) {
                return current;
            }
            let mut offer = core::mem::take(&mut state.offer);
            offer.of(&state.threads);
            let action = if offer.runnable.is_empty() {
                None
            } else {
                Some(state.scheduler.next(&View {
                    point: state.steps,
                    current,
                    runnable: &offer.runnable,
                    buffered: &offer.buffered,
                }))
            };
            state.offer = offer;
            let Some(action) = action else {
                if !self.has_live(state) {
                    return None;
                }
                self.wake_all(state);
                continue;
            };
            match action {
                Action::Run(thread) => return Some(thread),
                Action::Drain(thread) => self.drain_one(state, thread),
                Action::DrainAll(thread) => self.drain(state, thread),
            }
        }
    }

    fn wake_all(&self, state: &mut State) {
        for thread in 1..state.threads.len() {
            self.drain(state, thread);
            state.threads[thread].paused = false;
        }
        let live = state
            .threads
            .iter()
            .skip(1)
            .filter(|thread| !thread.finished);
        let sleeps = live.map(|thread| thread.parked.map(|parked| parked.until_ns));
        // If all sleep, the clock jumps to the earliest wake-up time, if there is one.
        if let Some(least) = sleeps.min_by_key(|until| until.unwrap_or(0)).flatten() {
            match least {
                u64::MAX => state.stuck = Stuck::Deadlock,
                least => state.clock_ns = state.clock_ns.max(least),
            }
        }
        let now_ns = state.clock_ns;
        state
            .threads
            .iter_mut()
            .for_each(|thread| thread.wake_at(now_ns));
    }

    /// Marks the current thread as waiting and counts rounds in which nothing changed.
    fn mark_paused(&self, state: &mut State) {
        let me = state.current;
        self.drain(state, me);
        state.clock_ns += PAUSE_NS;
        state.scheduler.paused(me);
        state.threads[me].paused = true;
        state.threads[me].idle = true;
        let live = |(id, thread): (usize, &ThreadState)| {
            id > 0 && !thread.finished && !thread.idle && thread.parked.is_none()
        };
        if !state.threads.iter().enumerate().any(live) {
            state.idle_rounds += 1;
            for thread in &mut state.threads {
                thread.idle = false;
            }
            if state.idle_rounds > IDLE_ROUNDS {
                state.stuck = Stuck::Deadlock;
            }
        }
    }

    /// Resumes one thread until it suspends itself; marks it if it ended.
    pub(crate) fn resume(&self, thread: usize, panics: &mut Vec<ThreadPanic>) {
        let Some(mut fiber) = fleet::take(self.id, thread) else {
            self.lock().threads[thread].finished = true;
            return;
        };
        self.enter(&mut self.lock(), thread);
        let progress = fiber.resume();
        let mut state = self.lock();
        self.enter(&mut state, 0);
        if let Progress::Suspended = progress {
            drop(state);
            return fleet::put(self.id, thread, fiber);
        }
        self.drain(&mut state, thread);
        state.threads[thread].finished = true;
        state.progress();
        if let Progress::Panicked(panic) = progress {
            state.threads[thread].panicked = true;
            if !fleet::is_end_of_wait(&*panic) {
                panics.push(ThreadPanic {
                    thread,
                    message: panic_message(&*panic),
                });
            }
        }
    }

    /// Whether a thread is left that has not ended.
    pub(crate) fn has_live(&self, state: &State) -> bool {
        state.threads.iter().skip(1).any(|thread| !thread.finished)
    }

    /// Unwinds a waiter on a dead medium.
    fn pause_dead(&self) {
        if fleet::end_wait(self.id) {
            return;
        }
        let mut state = self.lock();
        state.idle_rounds += 1;
        if state.idle_rounds > IDLE_ROUNDS {
            eprintln!("a destructor waits forever on a dead crash medium");
            std::process::abort();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !fiber::inside() {
            fleet::drop_all(self.id);
        }
    }
}

impl Crash {
    pub(crate) fn spawn_thread(&self, job: Job) -> CrashThread {
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let id = state.threads.len();
        assert!(id < usize::from(u16::MAX), "too many simulated threads");
        let dead = state.dead;
        state.threads.push(ThreadState {
            finished: dead,
            panicked: dead,
            ..ThreadState::default()
        });
        state.progress();
        drop(state);
        if !dead {
            let shared = Arc::downgrade(&self.shared);
            let body = move || {
                job();
                // The end of a thread is a point too: its stores may become visible after its last instruction.
                if let Some(shared) = shared.upgrade() {
                    shared.point();
                }
            };
            fleet::put(self.shared.id, id, Fiber::new(body));
        }
        CrashThread(id)
    }

    pub(crate) fn join_thread(&self, thread: &CrashThread) -> bool {
        let mut attempt = 0;
        loop {
            let state = self.shared.lock();
            let joined = &state.threads[thread.0];
            if joined.finished || state.dead {
                return joined.finished && !joined.panicked;
            }
            drop(state);
            self.pause_thread(attempt);
            attempt += 1;
        }
    }

    pub(crate) fn pause_thread(&self, attempt: u32) {
        let shared = &self.shared;
        if shared.is_dead() {
            if fiber::inside() && !panicking() {
                return fiber::suspend();
            }
            return shared.pause_dead();
        }
        if shared.simulating() {
            let mut state = shared.lock();
            shared.mark_paused(&mut state);
            return shared.switch_from(state, None);
        }
        self.lend(attempt);
    }

    /// Checks the word and falls asleep in one step. A change without a wake-up leaves the thread asleep.
    pub(crate) fn wait_thread(&self, words: &CrashWords, index: usize, seen: u64, until_ns: u64) {
        let shared = &self.shared;
        if !shared.simulating() {
            let mut attempt = 0;
            while words.peek(index) == seen && self.now_ns() < until_ns {
                self.pause_thread(attempt);
                attempt += 1;
            }
            return;
        }
        shared.point();
        let mut state = shared.lock();
        shared.drain_current(&mut state);
        if words.peek(index) != seen || state.clock_ns >= until_ns {
            return;
        }
        let me = state.current;
        shared.mark_paused(&mut state);
        state.threads[me].parked = Some(Parked {
            word: words.name(index),
            until_ns,
        });
        shared.switch_from(state, None);
    }

    /// Wakes all threads that sleep on a word.
    pub(crate) fn wake_threads(&self, words: &CrashWords, index: usize) {
        self.shared.point();
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let word = words.name(index);
        for thread in &mut state.threads {
            thread.parked = thread.parked.filter(|parked| parked.word != word);
        }
        state.progress();
    }

    /// A wait outside all simulated threads: lets one of them run for a while.
    fn lend(&self, attempt: u32) {
        let shared = &self.shared;
        let mut state = shared.lock();
        state.clock_ns += PAUSE_NS;
        if attempt == 0 {
            state.idle_rounds = 0;
        }
        state.idle_rounds += 1;
        let stuck = state.idle_rounds > IDLE_ROUNDS * 100 || state.stuck != Stuck::No;
        assert!(!stuck, "deadlock: a wait that no simulated thread ends");
        if !shared.has_live(&state) {
            // Only time can end the wait.
            if attempt >= AWAKE {
                state.clock_ns += SLEEP_NS;
            }
            return;
        }
        state.slice = Some(LENT_POINTS);
        let next = match state.next.take() {
            Some(next) => Some(next),
            None => shared.decide(&mut state, None),
        };
        drop(state);
        if let Some(next) = next {
            shared.resume(next, &mut Vec::new());
        }
        let mut state = shared.lock();
        state.slice = None;
        if state.stuck == Stuck::Deadlock {
            // The threads may be waiting for the context that waits here.
            state.stuck = Stuck::No;
        }
    }
}
