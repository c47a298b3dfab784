//! The walk through one recorded execution: at every event the images that are new, each state
//! once, the check on it, and the same again inside its recovery.
//!
//! Everything happens in place: events are redone one by one on the scratch memory, an image is
//! laid out by changing the lines that differ, and what the check stores is undone from its trace.

use core::ops::ControlFlow;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_media::{Domain, Ticket};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::explore::explorer::{ExploreOptions, Failure};
use crate::explore::frame::Frame;
use crate::explore::lazy::walk::Lazy;
use crate::explore::path::Path;
use crate::explore::plan::Plan;
use crate::explore::report::{Finding, Report};
use crate::medium::crash::Crash;
use crate::medium::state::{Recovered, Stage};
use crate::memory::event::{Event, changes_device};
use crate::memory::persistence::{Persistence, line_hash};
use crate::schedule::policy::Schedule;
use crate::schedule::run::panic_message;

/// What an oracle knows about the moment of a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashState {
    /// The last note of every simulated thread; 0 is the context outside all.
    pub notes: Vec<u64>,
    /// Commits up to this ticket were durable.
    pub durable: Ticket,
    /// Number of the event before which the execution crashed.
    pub event: usize,
    /// Crashes inside recovery that came after.
    pub depth: u32,
    /// Whether the process died, so that nothing executed was lost; else the power failed.
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

/// A run of the check, undone.
pub(crate) struct CheckRun {
    pub(crate) trace: Vec<Event>,
    /// Events before the end of recovery.
    pub(crate) end: usize,
    pub(crate) verdict: Result<(), String>,
    pub(crate) recovered: Option<Recovered>,
}

pub(crate) struct Walker<'a> {
    pub(crate) crash: &'a Crash,
    pub(crate) check: &'a Check<'a>,
    pub(crate) options: &'a ExploreOptions,
    pub(crate) report: Report,
    pub(crate) random: fastrand::Rng,
    /// How deep each state was explored: crashes left inside its recovery.
    visited: FxHashMap<u128, u8>,
    /// Hash of the scratch memory's content now.
    pub(crate) hash: u128,
    pub(crate) state: CrashState,
    pub(crate) frames: Vec<Frame>,
    pub(crate) schedule: Schedule,
    pub(crate) spare: Vec<Vec<Event>>,
    pub(crate) lazy: Lazy,
}

/// Breaks when enough was found.
type Walk = ControlFlow<()>;

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
            frames: Vec::new(),
            schedule: Schedule::Sequential,
            spare: Vec::new(),
            lazy: Lazy::default(),
        }
    }

    pub(crate) fn domain(&self) -> Domain {
        self.options.medium.domain
    }

    /// Walks an execution that started on the memory as it is now.
    pub(crate) fn execution(
        &mut self,
        trace: &[Event],
        seed: u64,
        schedule: Schedule,
        plan: &Plan,
    ) -> Walk {
        self.start(seed, schedule);
        if let Plan::All { .. } = plan {
            self.moment(&Persistence::hashing(self.domain()), 0, None, plan)?;
        }
        self.walk(trace, 0, plan)
    }

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

    pub(crate) fn enough(&self) -> bool {
        self.report.findings.len() >= self.options.max_findings
    }

    fn walk(&mut self, trace: &[Event], depth: u32, plan: &Plan) -> Walk {
        let start = self.hash;
        let mut persistence = Persistence::hashing(self.domain());
        let mut result = Walk::Continue(());
        let mut done = 0;
        for (index, event) in trace.iter().enumerate() {
            self.step(event, &mut persistence);
            done = index + 1;
            let mut all_new = changes_device(trace, index);
            if depth == 0 {
                all_new |= self.acknowledge(event);
            }
            let fixed = event.changes();
            let wanted = match plan {
                Plan::All { .. } => all_new || fixed.is_some(),
                Plan::At { events, .. } => events.binary_search(&done).is_ok(),
            };
            if wanted {
                self.report.events += 1;
                result = self.moment(&persistence, done, fixed.filter(|_| !all_new), plan);
            }
            if result.is_break()
                || matches!(plan, Plan::At { events, .. } if events.last() <= Some(&done))
            {
                break;
            }
        }
        for event in trace[..done].iter().rev() {
            event.undo(&self.crash.shared.memory);
        }
        self.hash = start;
        result
    }

    /// Does one event again.
    pub(crate) fn step(&mut self, event: &Event, persistence: &mut Persistence) {
        let memory = &self.crash.shared.memory;
        persistence.apply(event, memory);
        match event.changes() {
            Some(line) => {
                self.hash ^= line_hash(line, &memory.line(line));
                event.redo(memory);
                self.hash ^= line_hash(line, &memory.line(line));
            }
            None => event.redo(memory),
        }
    }

    /// Takes in what the workload declared. Returns whether the oracle expects more from now on.
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
            Event::Commit { ticket, .. } => {
                self.state.durable = Ticket(ticket);
                true
            }
            _ => false,
        }
    }

    fn moment(
        &mut self,
        persistence: &Persistence,
        event: usize,
        fixed: Option<u64>,
        plan: &Plan,
    ) -> Walk {
        let frame = match self.domain() {
            Domain::Process if self.options.failure == Failure::Kill => Frame::kill(event),
            _ => Frame::new(
                persistence,
                event,
                fixed.filter(|_| matches!(plan, Plan::All { .. })),
            ),
        };
        self.frames.push(frame);
        let result = match plan {
            Plan::All { images_per_event } => self.all_images(*images_per_event),
            Plan::At { events, images } => {
                let here = events.iter().filter(|&&at| at == event).count() as u32;
                self.drawn_images(here * images)
            }
        };
        let mut frame = self.frames.pop().expect("pushed above");
        frame.restore(&self.crash.shared.memory, &mut self.hash);
        result
    }

    /// Lays out an image with the frame on top.
    pub(crate) fn lay<R>(
        &mut self,
        how: impl FnOnce(&mut Frame, &crate::memory::pages::Memory, &mut u128) -> R,
    ) -> R {
        let frame = self.frames.last_mut().expect("a moment has a frame");
        how(frame, &self.crash.shared.memory, &mut self.hash)
    }

    fn all_images(&mut self, limit: u128) -> Walk {
        let frame = self.frames.last().expect("a moment has a frame");
        let (total, width) = (frame.total(), frame.width());
        if total > limit {
            self.report.sampled_events += 1;
            for index in 0..width {
                for oldest in [true, false] {
                    self.lay(|frame, memory, hash| frame.single(index, oldest, memory, hash));
                    self.visit()?;
                }
            }
            self.lay(Frame::restore);
            self.visit()?;
            return self.drawn_images(limit as u32);
        }
        loop {
            self.visit()?;
            if !self.lay(Frame::advance) {
                return Walk::Continue(());
            }
        }
    }

    fn drawn_images(&mut self, count: u32) -> Walk {
        for _ in 0..count {
            let mut random = self.random.clone();
            self.lay(|frame, memory, hash| frame.draw(&mut random, memory, hash));
            self.random = random;
            self.visit()?;
        }
        Walk::Continue(())
    }

    /// Checks the state that memory holds, unless it was checked before.
    fn visit(&mut self) -> Walk {
        self.report.images += 1;
        let depth = self.frames.len() as u32 - 1;
        let left = self.options.recovery_depth.saturating_sub(depth) as u8;
        let key = self.key();
        let first = !self.visited.contains_key(&key);
        if !self.is_new(key, left) {
            return Walk::Continue(());
        }
        self.report.states += u64::from(first);
        self.report.recovery_states += u64::from(first && depth > 0);
        if let Err(message) = self.check_here(depth) {
            let crashes = self.frames.iter().map(Frame::point).collect();
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
        if self.enough() {
            Walk::Break(())
        } else {
            Walk::Continue(())
        }
    }

    /// Whether what `key` identifies was not explored with as many crashes left inside its
    /// recovery; from now on it counts as explored.
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

    /// Identifies the state: content, length and blocks, and what the oracle knows.
    fn key(&self) -> u128 {
        let memory = &self.crash.shared.memory;
        let known = [self.state.durable.0, memory.len(), memory.backing()]
            .into_iter()
            .chain(self.state.notes.iter().copied());
        let mut key = self.hash;
        for (position, word) in known.enumerate().filter(|(_, word)| *word != 0) {
            key ^= xxh3_128_with_seed(&word.to_le_bytes(), !(position as u64));
        }
        key
    }

    /// Runs the check on what memory holds and, if it passes, crashes its recovery. Memory is as
    /// before afterwards.
    pub(crate) fn check_here(&mut self, depth: u32) -> Result<(), String> {
        self.state.event = self.frames.first().map_or(0, Frame::event);
        let kill = self.frames.last().is_some_and(Frame::is_kill);
        let CheckRun {
            mut trace,
            end,
            verdict,
            ..
        } = self.run_check(depth, kill, Stage::Whole);
        if verdict.is_ok() && depth < self.options.recovery_depth {
            let plan = self.recovery_plan(&trace[..end]);
            let _ = self.walk(&trace[..end], depth + 1, &plan);
        }
        trace.clear();
        self.spare.push(trace);
        verdict
    }

    /// Runs the check and undoes what it stored.
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
}
