//! Runs: several simulated threads under a schedule, to their end or to a crash.

use std::sync::PoisonError;

use firn_fibers::{self as fiber, fleet};

use crate::medium::crash::Crash;
use crate::medium::state::Stuck;
use crate::medium::threads::Job;
use crate::schedule::policy::{Schedule, Scheduler};
use crate::schedule::run::{RunEnd, RunOutcome, ThreadPanic};

impl Crash {
    /// Runs `threads` as simulated threads until all of them have ended.
    ///
    /// Threads that these spawn run with them. Those that have not ended by then stay suspended; a later run, or a wait
    /// outside all threads, resumes them. After a deadlock or a step limit the medium is dead.
    pub fn run(&self, threads: Vec<Job>, schedule: Schedule) -> RunOutcome {
        self.run_until(threads, schedule, u64::MAX)
    }

    /// Like [`Crash::run`], but the medium dies before event number `event` of its life. Threads are unwound; the
    /// images of that moment can be examined.
    pub fn run_until(&self, threads: Vec<Job>, schedule: Schedule, event: u64) -> RunOutcome {
        assert!(
            !fiber::inside(),
            "a simulated thread cannot run others, it spawns them"
        );
        let shared = &self.shared;
        let inherited = schedule == Schedule::Inherited;
        let schedule = match schedule {
            Schedule::Inherited => self.inherited_schedule(),
            chosen => chosen,
        };
        {
            let mut state = shared.lock();
            state.scheduler = Scheduler::new(&schedule);
            state.crash_at = event;
            state.steps = 0;
            state.stuck = Stuck::No;
            state.idle_rounds = 0;
        }
        let ids: Vec<usize> = threads
            .into_iter()
            .map(|job| self.spawn_thread(job).0)
            .collect();
        let mut panics = Vec::new();
        loop {
            let mut state = shared.lock();
            let done = ids.iter().all(|&id| state.threads[id].finished);
            if state.dead || state.stuck != Stuck::No || done {
                break;
            }
            let next = match state.next.take() {
                Some(next) => Some(next),
                None => shared.decide(&mut state, None),
            };
            drop(state);
            if let Some(next) = next {
                shared.resume(next, &mut panics);
            }
        }
        let outcome = self.outcome(panics);
        if inherited {
            let last = &mut *shared
                .last_run
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *last = Some(outcome.clone());
        }
        outcome
    }

    fn outcome(&self, panics: Vec<ThreadPanic>) -> RunOutcome {
        let shared = &self.shared;
        let mut state = shared.lock();
        let end = match (state.stuck, state.dead) {
            (Stuck::Deadlock, _) => RunEnd::Deadlock,
            (Stuck::StepLimit, _) => RunEnd::StepLimit,
            (Stuck::No, true) => RunEnd::Crashed,
            (Stuck::No, false) => RunEnd::Finished,
        };
        state.next = None;
        state.crash_at = u64::MAX;
        let choices = state.scheduler.take_choices();
        state.scheduler = Scheduler::sequential();
        let outcome = RunOutcome {
            end,
            panics,
            hash: state.hash,
            events: state.events,
            steps: state.steps,
            choices: choices
                .as_ref()
                .map(|choices| choices.picked())
                .unwrap_or_default(),
            following: choices.and_then(|choices| choices.following()),
        };
        if end != RunEnd::Finished {
            shared.die(&mut state);
            drop(state);
            fleet::drop_all(shared.id);
        }
        outcome
    }

    /// Stops every simulated thread of this medium where it is and unwinds it. Memory does not change.
    pub fn kill_threads(&self) {
        let mut state = self.shared.lock();
        if !self.shared.has_live(&state) {
            return;
        }
        let was_dead = state.dead;
        self.shared.die(&mut state);
        drop(state);
        fleet::drop_all(self.shared.id);
        let mut state = self.shared.lock();
        for thread in state.threads.iter_mut().skip(1) {
            thread.finished = true;
        }
        state.dead = was_dead;
        state.appending = None;
        self.shared.enter(&mut state, 0);
    }
}
