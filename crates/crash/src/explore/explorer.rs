//! The explorer: crash a workload wherever it can crash, and see whether it recovers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use firn_fibers::panic_message;
use firn_media::Domain;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::Xxh3;

use crate::explore::eager::walk::Eager;
use crate::explore::engine::Engine;
use crate::explore::lazy::walk::Lazy;
use crate::explore::options::{Exploration, ExploreOptions};
use crate::explore::path::Path;
use crate::explore::replay::{Goal, Replay};
use crate::explore::report::Report;
use crate::explore::story::{Story, Told};
use crate::explore::walker::{Check, CrashState, Walker};
use crate::medium::crash::Crash;
use crate::medium::options::CrashOptions;
use crate::memory::event::Event;
use crate::memory::image::Image;
use crate::schedule::policy::Schedule;
use crate::schedule::run::RunOutcome;

/// A workload recorded once.
pub(crate) struct Execution {
    pub(crate) trace: Vec<Event>,
    pub(crate) hash: u64,
    pub(crate) run: Option<RunOutcome>,
    pub(crate) failure: Option<String>,
}

/// Explores the crashes of a workload that starts from a prepared medium.
pub struct Explorer<'a> {
    pub(crate) options: ExploreOptions,
    pub(crate) scratch: Crash,
    pub(crate) base_hash: u128,
    workload: Box<dyn Fn(&Crash) + 'a>,
    check: Box<Check<'a>>,
}

impl<'a> Explorer<'a> {
    /// Prepares `len` bytes with `setup` and explores from there.
    ///
    /// The workload may write a log that `check` reads, for facts that a note cannot carry (the operations that the
    /// notes count, say). It must clear that log when it begins, because a swarm runs it again. While the workload is
    /// recorded, [`Crash::images`] knows the present content only.
    ///
    /// `setup` must end quiescent: everything it stored counts as durable. `workload` runs from that state, once for
    /// each execution; it may call [`Crash::run`] once with [`Schedule::Inherited`]. `check` opens the crashed medium,
    /// recovers and verifies; a panic counts as a rejection.
    pub fn new(
        options: ExploreOptions,
        len: u64,
        setup: impl FnOnce(&Crash),
        workload: impl Fn(&Crash) + 'a,
        check: impl Fn(Crash, &CrashState) -> Result<(), String> + 'a,
    ) -> Self {
        let whole = CrashOptions {
            leave_out: None,
            ..options.medium.clone()
        };
        let crash = Crash::new(len, whole);
        setup(&crash);
        crash.kill_threads();
        let base = crash.cache_image();
        drop(crash);
        Self::from_image(options, &base, workload, check)
    }

    /// Explores from an image, which counts as durable.
    pub fn from_image(
        options: ExploreOptions,
        base: &Image,
        workload: impl Fn(&Crash) + 'a,
        check: impl Fn(Crash, &CrashState) -> Result<(), String> + 'a,
    ) -> Self {
        let scratch = Crash::from_image(base, options.medium.clone());
        let base_hash = base.hash();
        Self {
            options,
            scratch,
            base_hash,
            workload: Box::new(workload),
            check: Box::new(check),
        }
    }

    /// Crashes one execution everywhere.
    pub fn explore(&self) -> Report {
        let (seed, schedule) = (self.options.medium.seed, self.options.schedule.clone());
        self.explored(|engine| _ = self.walk(engine, seed, &schedule))
    }

    /// Crashes everywhere in every execution that the scheduler can make of the workload's threads
    /// with at most `bound` preemptions, delayed stores and partial drains; `u32::MAX` for all.
    /// States that executions share are checked once.
    pub fn explore_interleavings(&self, bound: u32, max_executions: u64) -> Report {
        self.explored(|engine| {
            let mut prefix = Some(Vec::new());
            while let Some(choices) = prefix {
                if engine.walker().report.executions >= max_executions {
                    engine.walker().report.cut = true;
                    break;
                }
                let schedule = Schedule::Chosen { choices, bound };
                let run = self.walk(engine, self.options.medium.seed, &schedule);
                if engine.walker().enough() {
                    engine.walker().report.cut = true;
                    break;
                }
                prefix = run.and_then(|run| run.following);
            }
        })
    }

    /// Crashes everywhere in each execution that `next` asks for, until it asks for none. `next` is told how the
    /// execution before went. States that executions share are checked once, and so are executions with equal events:
    /// the check learns of an execution by its notes.
    pub fn explore_each(
        &self,
        mut next: impl FnMut(Option<&RunOutcome>) -> Option<Schedule>,
    ) -> Report {
        self.explored(|engine| {
            let mut walked = FxHashSet::default();
            let mut last = None;
            while let Some(schedule) = next(last.as_ref()) {
                let is_new = |trace: &[Event]| walked.insert(hash_of(trace));
                last = self.walk_if(engine, self.options.medium.seed, &schedule, is_new);
                if engine.walker().enough() {
                    engine.walker().report.cut = true;
                    break;
                }
            }
        })
    }

    /// Runs what a finding's line says. `Err` with the check's message now, `Ok` if the check passes.
    pub fn replay(&self, line: &str) -> Result<(), String> {
        self.judge(line).flatten()
    }

    /// Runs what a finding's line says, and returns the check's verdict now.
    ///
    /// Errors: the line does not parse, or names no crash of this execution.
    pub fn judge(&self, line: &str) -> Result<Result<(), String>, String> {
        self.retell(line, &mut Told::default())
    }

    /// Runs what a finding's line says, and tells how the rejected state comes to be.
    ///
    /// Errors: the line does not parse, or names a crash that does not happen.
    pub fn story(&self, line: &str) -> Result<Story, String> {
        let mut told = Told {
            story: Some(Story::default()),
            ..Told::default()
        };
        let verdict = self.retell(line, &mut told)?;
        match told.story {
            Some(story) if !story.passed.is_empty() => Ok(story),
            _ => Err(verdict.err().unwrap_or_else(|| "nothing crashes".into())),
        }
    }

    fn retell(&self, line: &str, told: &mut Told) -> Result<Result<(), String>, String> {
        let path: Path = line.parse()?;
        let execution = self.record(path.seed, &path.schedule);
        if let Some(failure) = execution.failure {
            return Ok(Err(failure));
        }
        let goals: Vec<Goal<'_>> = path.crashes.iter().map(Goal::Point).collect();
        let mut walker = self.walker(&self.options);
        Replay::new(&mut walker, told).run(&execution.trace, &goals, path.seed)
    }

    pub(crate) fn walker<'w>(&'w self, options: &'w ExploreOptions) -> Walker<'w> {
        Walker::new(&self.scratch, &*self.check, options, self.base_hash)
    }

    /// The engine that the options select.
    fn engine<'w, 'x>(&self, walker: &'w mut Walker<'x>) -> Box<dyn Engine<'x> + 'w> {
        let is_eager = self.options.exploration == Exploration::Eager;
        match is_eager || self.options.drawn_in_recovery.is_some() {
            true => Box::new(Eager::new(walker)),
            // A log leaves one image more than it has records that may be lost: classes would save nothing.
            false if self.options.medium.domain == Domain::Logged => {
                Box::new(Eager::in_two_stages(walker))
            }
            false => Box::new(Lazy::new(walker)),
        }
    }

    /// Runs `explore` with an engine and returns its report.
    fn explored<'w>(&'w self, explore: impl FnOnce(&mut dyn Engine<'w>)) -> Report {
        let started = Instant::now();
        let mut walker = self.walker(&self.options);
        explore(&mut *self.engine(&mut walker));
        finish(walker, started)
    }

    /// Records and walks one execution. Returns how its run went, if it made one.
    fn walk(
        &self,
        engine: &mut dyn Engine<'_>,
        seed: u64,
        schedule: &Schedule,
    ) -> Option<RunOutcome> {
        self.walk_if(engine, seed, schedule, |_| true)
    }

    /// Runs an execution, and walks it if its events are `wanted`.
    fn walk_if(
        &self,
        engine: &mut dyn Engine<'_>,
        seed: u64,
        schedule: &Schedule,
        wanted: impl FnOnce(&[Event]) -> bool,
    ) -> Option<RunOutcome> {
        let execution = self.record(seed, schedule);
        let chosen = chosen(schedule, execution.run.as_ref());
        let walker = engine.walker();
        walker.report.executions += 1;
        walker.report.hash = walker.report.hash.rotate_left(7) ^ execution.hash;
        if let Some(message) = execution.failure {
            walker.failed(message, seed, chosen);
        } else if wanted(&execution.trace) {
            engine.walk(&execution.trace, seed, chosen);
        }
        execution.run
    }

    /// Runs the workload once, then restores memory.
    pub(crate) fn record(&self, seed: u64, schedule: &Schedule) -> Execution {
        let crash = &self.scratch;
        crash.begin(seed, 0, Vec::new());
        crash.set_schedule(schedule.clone());
        crash.shared.forget_run();
        let result = catch_unwind(AssertUnwindSafe(|| (self.workload)(crash)));
        let hash = crash.execution_hash();
        let run = crash.shared.forget_run();
        let (trace, _) = crash.end();
        for event in trace.iter().rev() {
            event.undo(&crash.shared.memory);
        }
        let panicked = result
            .err()
            .map(|panic| format!("the workload panicked: {}", panic_message(&*panic)));
        let failure = match &run {
            Some(run) => run.finished().err().or(panicked),
            None => panicked,
        };
        Execution {
            trace,
            hash,
            run,
            failure,
        }
    }
}

/// The schedule with the choices that were made, for a replay.
fn chosen(schedule: &Schedule, run: Option<&RunOutcome>) -> Schedule {
    match (schedule, run) {
        (Schedule::Chosen { bound, .. }, Some(run)) => Schedule::Chosen {
            choices: run.choices.clone(),
            bound: *bound,
        },
        _ => schedule.clone(),
    }
}

/// Identifies an execution by its events.
fn hash_of(trace: &[Event]) -> u128 {
    let mut hash = Xxh3::new();
    for word in trace.iter().flat_map(Event::digest) {
        hash.update(&word.to_le_bytes());
    }
    hash.digest128()
}

pub(crate) fn finish(walker: Walker<'_>, started: Instant) -> Report {
    let mut report = walker.report;
    report.cut |= !report.findings.is_empty();
    report.elapsed = started.elapsed();
    report
}
