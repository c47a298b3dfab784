//! Everything that all engines need: the scratch memory, the check on it, and the findings.
//!
//! Everything happens in place: events are redone one by one on the scratch memory, an image is laid out by changing
//! the lines that differ, and the check's stores are undone from its trace.

use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_fibers::panic_message;
use firn_media::{Domain, Ticket};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::explore::options::{ExploreOptions, Failure};
use crate::explore::path::{CrashPoint, Path};
use crate::explore::report::{Finding, Report};
use crate::medium::crash::Crash;
use crate::medium::state::{Recovered, Stage};
use crate::memory::event::Event;
use crate::memory::pages::Memory;
use crate::memory::persistence::{Persistence, line_hash};
use crate::schedule::policy::Schedule;

/// What an oracle knows about the moment of a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashState {
    /// The last note of every simulated thread; 0 is the context outside all of them.
    pub notes: Vec<u64>,
    /// Commits up to this ticket were durable.
    pub durable: Ticket,
    /// Number of the event before which the execution crashed.
    pub event: usize,
    /// Crashes inside recovery that followed.
    pub depth: u32,
    /// Whether the process died, so that nothing executed was lost; otherwise the power failed.
    pub kill: bool,
    /// Seed of the execution.
    pub seed: u64,
}

impl CrashState {
    /// The last note of a thread; zero if it made none.
    pub fn note(&self, thread: usize) -> u64 {
        self.notes.get(thread).copied().unwrap_or(0)
    }
}

/// What opens and verifies a crashed medium.
pub(crate) type Check<'a> = dyn Fn(Crash, &CrashState) -> Result<(), String> + 'a;

/// A run of the check, after it was undone.
pub(crate) struct CheckRun {
    pub(crate) trace: Vec<Event>,
    /// Events before the end of recovery.
    pub(crate) end: usize,
    pub(crate) verdict: Result<(), String>,
    pub(crate) recovered: Option<Recovered>,
}

/// An exploration: where it is, and what it found.
pub(crate) struct Walker<'a> {
    pub(crate) crash: &'a Crash,
    check: &'a Check<'a>,
    pub(crate) options: &'a ExploreOptions,
    pub(crate) report: Report,
    pub(crate) random: fastrand::Rng,
    /// How deep each state was explored: crashes left inside its recovery.
    visited: FxHashMap<u128, u8>,
    /// Hash of the scratch memory's content now.
    pub(crate) hash: u128,
    pub(crate) state: CrashState,
    schedule: Schedule,
    /// Spare buffers for traces.
    spare: Vec<Vec<Event>>,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(
        crash: &'a Crash,
        check: &'a Check<'a>,
        options: &'a ExploreOptions,
        hash: u128,
    ) -> Self {
        Self {
            crash,
            check,
            options,
            report: Report::default(),
            random: fastrand::Rng::with_seed(options.medium.seed),
            visited: FxHashMap::default(),
            hash,
            state: CrashState::default(),
            schedule: Schedule::Sequential,
            spare: Vec::new(),
        }
    }

    pub(crate) fn domain(&self) -> Domain {
        self.options.medium.domain
    }

    /// Whether a process dies, and the power stays on.
    pub(crate) fn is_kill(&self) -> bool {
        self.domain() == Domain::Process && self.options.failure == Failure::Kill
    }

    /// The scratch memory, and the hash of its content.
    pub(crate) fn scratch(&mut self) -> (&'a Memory, &mut u128) {
        (&self.crash.shared.memory, &mut self.hash)
    }

    /// Begins to walk an execution.
    pub(crate) fn start(&mut self, seed: u64, schedule: Schedule) {
        self.schedule = schedule;
        self.state = CrashState {
            seed,
            ..CrashState::default()
        };
        self.random = fastrand::Rng::with_seed(seed);
    }

    /// An execution that failed by itself.
    pub(crate) fn failed(&mut self, message: String, seed: u64, schedule: Schedule) {
        let replay = Path {
            seed,
            schedule,
            crashes: Vec::new(),
        }
        .to_string();
        self.report.findings.push(Finding { message, replay });
    }

    /// Makes a finding of crashes in the current execution.
    pub(crate) fn found(&mut self, message: String, crashes: Vec<CrashPoint>) {
        let path = Path {
            seed: self.state.seed,
            schedule: self.schedule.clone(),
            crashes,
        };
        self.report.findings.push(Finding {
            message,
            replay: path.to_string(),
        });
    }

    pub(crate) fn enough(&self) -> bool {
        self.report.findings.len() >= self.options.max_findings
    }

    /// Redoes one event.
    pub(crate) fn step(&mut self, event: &Event, persistence: &mut Persistence) {
        persistence.apply(event, &self.crash.shared.memory);
        self.redo(event);
    }

    /// Identifies memory as it is after `events`: content, length and blocks.
    pub(crate) fn hash_after(&mut self, events: &[Event]) -> u128 {
        let start = self.hash;
        events.iter().for_each(|event| self.redo(event));
        let memory = &self.crash.shared.memory;
        let space = [memory.len().to_le_bytes(), memory.backing().to_le_bytes()];
        let hash = self.hash ^ xxh3_128(space.as_flattened());
        self.go_back(events, start);
        hash
    }

    fn redo(&mut self, event: &Event) {
        let memory = &self.crash.shared.memory;
        match event.changes() {
            Some(line) => {
                self.hash ^= line_hash(line, &memory.line(line));
                event.redo(memory);
                self.hash ^= line_hash(line, &memory.line(line));
            }
            None => event.redo(memory),
        }
    }

    /// Undoes `events`, before which the hash was `start`.
    pub(crate) fn go_back(&mut self, events: &[Event], start: u128) {
        for event in events.iter().rev() {
            event.undo(&self.crash.shared.memory);
        }
        self.hash = start;
    }

    /// Records a declaration of the workload. Returns whether the oracle expects more from now on.
    pub(crate) fn acknowledge(&mut self, event: &Event) -> bool {
        match *event {
            Event::Note { thread, progress } => {
                let thread = usize::from(thread);
                if self.state.notes.len() <= thread {
                    self.state.notes.resize(thread + 1, 0);
                }
                self.state.notes[thread] = progress;
                true
            }
            Event::Commit { ticket, .. } | Event::Durable { ticket, .. } => {
                self.state.durable = Ticket(ticket);
                true
            }
            _ => false,
        }
    }

    /// Whether the state identified by `key` was explored, at any depth.
    pub(crate) fn knows(&self, key: u128) -> bool {
        self.visited.contains_key(&key)
    }

    /// Whether the state identified by `key` was not yet explored with this many crashes left inside its recovery. From
    /// now on it counts as explored.
    pub(crate) fn is_new(&mut self, key: u128, left: u8) -> bool {
        match self.visited.entry(key) {
            Entry::Occupied(mut before) if *before.get() < left => {
                before.insert(left);
                true
            }
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(left);
                true
            }
        }
    }

    /// Runs the check on memory as it is, and undoes its stores.
    pub(crate) fn run_check(&mut self, depth: u32, kill: bool, stage: Stage) -> CheckRun {
        self.state.depth = depth;
        self.state.kill = kill;
        let boots = if kill { 0 } else { u64::from(depth) + 1 };
        let trace = self.spare.pop().unwrap_or_default();
        self.crash.begin(self.options.medium.seed, boots, trace);
        let check = self.check;
        self.crash.shared.lock().stage = stage;
        let (crash, state) = (self.crash.clone(), &self.state);
        let verdict = catch_unwind(AssertUnwindSafe(|| check(crash, state)))
            .unwrap_or_else(|panic| Err(format!("panic: {}", panic_message(&*panic))));
        let recovered = self.crash.shared.lock().recovered.take();
        let (trace, end) = self.crash.end();
        for event in trace.iter().rev() {
            event.undo(&self.crash.shared.memory);
        }
        CheckRun {
            trace,
            end,
            verdict,
            recovered,
        }
    }

    /// Keeps a trace's buffer for later runs.
    pub(crate) fn spare(&mut self, mut trace: Vec<Event>) {
        trace.clear();
        self.spare.push(trace);
    }
}
