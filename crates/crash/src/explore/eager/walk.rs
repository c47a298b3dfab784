//! The walk through one recorded execution: at every event the new images, each state once, then the check on each, and
//! its recovery walked likewise.

use core::ops::ControlFlow;

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use crate::explore::eager::plan::Plan;
use crate::explore::engine::Engine;
use crate::explore::frame::Frame;
use crate::explore::walker::{CheckRun, Walker};
use crate::medium::state::Stage;
use crate::memory::event::{Event, NewImages, changes_device};
use crate::memory::pages::Memory;
use crate::memory::persistence::Persistence;
use crate::schedule::policy::Schedule;

/// Tries images one by one.
pub(crate) struct Eager<'w, 'a> {
    walker: &'w mut Walker<'a>,
    /// The moments being walked: of the execution, of the recovery after a crash there, and so on.
    frames: Vec<Frame>,
    /// Memory as recoveries left it, with what the check knew, where the rest of the check has passed. `None` if every
    /// image is checked as a whole.
    verified: Option<FxHashSet<u128>>,
}

/// Breaks when enough findings were made.
type Walk = ControlFlow<()>;

impl<'a> Engine<'a> for Eager<'_, 'a> {
    fn walker(&mut self) -> &mut Walker<'a> {
        self.walker
    }

    fn walk(&mut self, trace: &[Event], seed: u64, schedule: Schedule) {
        let states = self.walker.options.max_states;
        let plan = Plan::within(self.walker, trace, states);
        self.walk_as_planned(trace, seed, schedule, &plan);
    }
}

impl<'w, 'a> Eager<'w, 'a> {
    pub(crate) fn new(walker: &'w mut Walker<'a>) -> Self {
        Self {
            walker,
            frames: Vec::new(),
            verified: None,
        }
    }

    /// An engine that verifies what recoveries leave once ([`crate::Crash::goes_on`]).
    pub(crate) fn in_two_stages(walker: &'w mut Walker<'a>) -> Self {
        Self {
            verified: Some(FxHashSet::default()),
            ..Self::new(walker)
        }
    }

    /// Tries what the plan names of an execution that started on memory as it is now.
    pub(crate) fn walk_as_planned(
        &mut self,
        trace: &[Event],
        seed: u64,
        schedule: Schedule,
        plan: &Plan,
    ) {
        self.walker.start(seed, schedule);
        let mut result = Walk::Continue(());
        if let Plan::All { .. } = plan {
            let before = Persistence::hashing(self.walker.domain());
            result = self.moment(&before, 0, NewImages::All, plan);
        }
        if result.is_continue() {
            let _ = self.pass(trace, 0, plan);
        }
    }

    /// Tries the moments of an execution, or of a recovery.
    fn pass(&mut self, trace: &[Event], depth: u32, plan: &Plan) -> Walk {
        let start = self.walker.hash;
        let mut persistence = Persistence::hashing(self.walker.domain());
        let mut result = Walk::Continue(());
        let mut done = 0;
        for (index, event) in trace.iter().enumerate() {
            self.walker.step(event, &mut persistence);
            done = index + 1;
            if depth == 0 {
                self.walker.acknowledge(event);
            }
            let new = match NewImages::of(trace, index, self.walker.domain()) {
                // In a recovery nothing more is expected of it.
                NewImages::All if depth > 0 && !changes_device(trace, index) => NewImages::No,
                new => new,
            };
            let wanted = match plan {
                Plan::All { .. } => new != NewImages::No,
                Plan::At { events, .. } => events.binary_search(&done).is_ok(),
            };
            if wanted {
                self.walker.report.events += 1;
                result = self.moment(&persistence, done, new, plan);
            }
            if result.is_break()
                || matches!(plan, Plan::At { events, .. } if events.last() <= Some(&done))
            {
                break;
            }
        }
        self.walker.go_back(&trace[..done], start);
        result
    }

    fn moment(
        &mut self,
        persistence: &Persistence,
        event: usize,
        new: NewImages,
        plan: &Plan,
    ) -> Walk {
        let new = match plan {
            Plan::All { .. } => new,
            Plan::At { .. } => NewImages::All,
        };
        let is_kill = self.walker.is_kill();
        let (memory, hash) = self.walker.scratch();
        let frame = match is_kill {
            true => Frame::kill(event),
            false => Frame::new(persistence, event, new, memory, *hash),
        };
        self.frames.push(frame);
        let result = match plan {
            Plan::All { images_per_event } => self.all_images(*images_per_event),
            Plan::At { events, images } => {
                let here = events.iter().filter(|&&at| at == event).count() as u32;
                self.drawn_images(here * images)
            }
        };
        self.lay(Frame::restore);
        self.frames.pop();
        result
    }

    /// Lays out an image with the frame on top.
    fn lay<R>(&mut self, how: impl FnOnce(&mut Frame, &Memory, &mut u128) -> R) -> R {
        let frame = self.frames.last_mut().expect("a moment has a frame");
        let (memory, hash) = self.walker.scratch();
        how(frame, memory, hash)
    }

    fn all_images(&mut self, limit: u128) -> Walk {
        let frame = self.frames.last().expect("a moment has a frame");
        let (total, width) = (frame.total(), frame.width());
        if total > limit {
            self.walker.report.sampled_events += 1;
            for index in 0..width {
                for oldest in [true, false] {
                    self.lay(|frame, memory, hash| frame.single(index, oldest, memory, hash));
                    self.visit()?;
                }
            }
            self.lay(Frame::newest);
            self.visit()?;
            return self.drawn_images(limit as u32);
        }
        self.lay(Frame::begin);
        loop {
            self.visit()?;
            if !self.lay(Frame::advance) {
                return Walk::Continue(());
            }
        }
    }

    fn drawn_images(&mut self, count: u32) -> Walk {
        for _ in 0..count {
            let mut random = self.walker.random.clone();
            self.lay(|frame, memory, hash| frame.draw(&mut random, memory, hash));
            self.walker.random = random;
            self.visit()?;
        }
        Walk::Continue(())
    }

    /// Checks the state that memory holds, unless it was checked before.
    fn visit(&mut self) -> Walk {
        self.walker.report.images += 1;
        let depth = self.frames.len() as u32 - 1;
        let left = self.walker.options.recovery_depth.saturating_sub(depth) as u8;
        let key = self.key();
        let first = !self.walker.knows(key);
        if !self.walker.is_new(key, left) {
            return Walk::Continue(());
        }
        self.walker.report.states += u64::from(first);
        self.walker.report.recovery_states += u64::from(first && depth > 0);
        if let Err(message) = self.check_here(depth) {
            let crashes = self.frames.iter().map(Frame::point).collect();
            self.walker.found(message, crashes);
        }
        match self.walker.enough() {
            true => Walk::Break(()),
            false => Walk::Continue(()),
        }
    }

    /// Identifies the state: content, length, blocks, and the oracle's knowledge.
    fn key(&self) -> u128 {
        let (memory, state) = (&self.walker.crash.shared.memory, &self.walker.state);
        let known = [state.durable.0, memory.len(), memory.backing()]
            .into_iter()
            .chain(state.notes.iter().copied());
        let mut key = self.walker.hash;
        for (position, word) in known.enumerate().filter(|(_, word)| *word != 0) {
            key ^= xxh3_128_with_seed(&word.to_le_bytes(), !(position as u64));
        }
        key
    }

    /// Runs the check on memory's content and, if it passes, crashes its recovery. Leaves memory as it was.
    fn check_here(&mut self, depth: u32) -> Result<(), String> {
        self.walker.state.event = self.frames.first().map_or(0, Frame::event);
        let kill = self.frames.last().is_some_and(Frame::is_kill);
        let CheckRun {
            trace,
            end,
            verdict,
            ..
        } = self.run_check(depth, kill);
        if verdict.is_ok() && depth < self.walker.options.recovery_depth {
            let plan = Plan::of_recovery(self.walker, &trace[..end]);
            let _ = self.pass(&trace[..end], depth + 1, &plan);
        }
        self.walker.spare(trace);
        verdict
    }

    /// Runs the check on memory as it is, or as much of it as is not known to pass.
    fn run_check(&mut self, depth: u32, kill: bool) -> CheckRun {
        let Some(verified) = &mut self.verified else {
            return self.walker.run_check(depth, kill, Stage::Whole);
        };
        let first = self.walker.run_check(depth, kill, Stage::Recovery);
        let Some(there) = first.recovered else {
            return first;
        };
        let left = self.walker.hash_after(&first.trace[..there.events]);
        let key = left ^ xxh3_128(&there.knows.to_le_bytes());
        if verified.contains(&key) {
            return first;
        }
        self.walker.spare(first.trace);
        self.walker.report.verifications += 1;
        let whole = self.walker.run_check(depth, kill, Stage::Whole);
        if whole.verdict.is_ok() {
            verified.insert(key);
        }
        whole
    }
}
