//! Replays the crashes that a finding's line names, and makes such lines.

use rustc_hash::FxHashMap;

use crate::explore::frame::Frame;
use crate::explore::path::CrashPoint;
use crate::explore::story::{Passed, Told};
use crate::explore::walker::{CheckRun, CrashState, Walker};
use crate::medium::state::Stage;
use crate::memory::cells::Line;
use crate::memory::event::{Event, NewImages};
use crate::memory::image::Image;
use crate::memory::persistence::Persistence;

/// A check's verdict.
pub(crate) type Verdict = Result<(), String>;

/// One crash, by the versions of its lines or by their contents.
pub(crate) enum Goal<'g> {
    Point(&'g CrashPoint),
    /// Events before it, and what lines hold after it.
    Left(usize, &'g FxHashMap<u64, Line>),
}

/// Lays out named crashes, each in the recovery from the one before.
pub(crate) struct Replay<'w, 'a> {
    walker: &'w mut Walker<'a>,
    told: &'w mut Told,
}

impl<'w, 'a> Replay<'w, 'a> {
    /// Events and crash points are added to `told`.
    pub(crate) fn new(walker: &'w mut Walker<'a>, told: &'w mut Told) -> Self {
        Self { walker, told }
    }

    /// Lays out the crashes that the goals name after the execution `trace`. Returns the last check's verdict.
    ///
    /// Errors: a goal cannot be reached.
    pub(crate) fn run(
        &mut self,
        trace: &[Event],
        goals: &[Goal<'_>],
        seed: u64,
    ) -> Result<Verdict, String> {
        self.walker.state = CrashState {
            seed,
            event: goals.first().map_or(0, |goal| self.moment(goal).0),
            ..CrashState::default()
        };
        self.crash(trace, goals, 0)
    }

    /// Lays out the crash that the first goal names after `trace`, checks it, and continues in its recovery with the
    /// later goals.
    fn crash(
        &mut self,
        trace: &[Event],
        goals: &[Goal<'_>],
        depth: u32,
    ) -> Result<Verdict, String> {
        let Some((goal, later)) = goals.split_first() else {
            return Ok(Ok(()));
        };
        let (event, kill) = self.moment(goal);
        let crashed = trace.get(..event).ok_or("the execution has fewer events")?;
        let start = self.walker.hash;
        let persistence = self.redo(crashed, depth);
        let (memory, hash) = self.walker.scratch();
        let mut frame = match kill {
            true => Frame::kill(event),
            false => Frame::new(&persistence, event, NewImages::All, memory, *hash),
        };
        let reached = match goal {
            Goal::Point(point) => frame.go_to(point, memory, hash),
            Goal::Left(_, lines) => frame.go_to_contents(lines, memory, hash),
        };
        self.tell(&frame, crashed);
        let verdict = reached.and_then(|()| self.check(later, depth, kill));
        let (memory, hash) = self.walker.scratch();
        frame.restore(memory, hash);
        self.walker.go_back(crashed, start);
        verdict
    }

    /// The number of events before a crash, and whether the process dies.
    fn moment(&self, goal: &Goal<'_>) -> (usize, bool) {
        match goal {
            Goal::Point(point) => (point.event, point.kill),
            Goal::Left(event, _) => (*event, self.walker.is_kill()),
        }
    }

    /// Redoes the events before a crash.
    fn redo(&mut self, crashed: &[Event], depth: u32) -> Persistence {
        let mut persistence = Persistence::hashing(self.walker.domain());
        for event in crashed {
            self.walker.step(event, &mut persistence);
            if depth == 0 {
                self.walker.acknowledge(event);
            }
        }
        persistence
    }

    fn tell(&mut self, frame: &Frame, crashed: &[Event]) {
        self.told.points.push(frame.point());
        if let Some(story) = &mut self.told.story {
            story.passed.push(Passed {
                events: crashed.to_vec(),
                left: Image::of(&self.walker.crash.shared.memory, 0),
            });
        }
    }

    /// Checks memory as it is, and crashes the recovery where the later goals say.
    fn check(&mut self, later: &[Goal<'_>], depth: u32, kill: bool) -> Result<Verdict, String> {
        let CheckRun {
            trace,
            end,
            verdict,
            ..
        } = self.walker.run_check(depth, kill, Stage::Whole);
        if !later.is_empty() {
            return self.crash(&trace[..end], later, depth + 1);
        }
        if let Some(story) = &mut self.told.story {
            story.check = trace;
        }
        Ok(verdict)
    }
}

/// Makes a finding of crashes in the execution being explored, given what they left.
pub(crate) fn find(
    walker: &mut Walker<'_>,
    trace: &[Event],
    message: String,
    crashes: &[(usize, FxHashMap<u64, Line>)],
) {
    let goals: Vec<Goal<'_>> = crashes
        .iter()
        .map(|(event, lines)| Goal::Left(*event, lines))
        .collect();
    let (seed, mut told) = (walker.state.seed, Told::default());
    let again = Replay::new(walker, &mut told).run(trace, &goals, seed);
    let message = match again.flatten() {
        Err(again) if again == message => message,
        Err(again) => format!("{message}; when tried again: {again}"),
        Ok(()) => format!("{message}; when tried again, it passed"),
    };
    walker.found(message, told.points);
}
