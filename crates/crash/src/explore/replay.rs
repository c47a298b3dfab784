//! The crashes that a finding's line names, and the line that names crashes.

use rustc_hash::FxHashMap;

use crate::explore::frame::Frame;
use crate::explore::path::{CrashPoint, Path};
use crate::explore::report::Finding;
use crate::explore::story::{Passed, Told};
use crate::explore::walk::{CheckRun, CrashState, Walker};
use crate::medium::state::Stage;
use crate::memory::cells::Line;
use crate::memory::event::Event;
use crate::memory::image::Image;
use crate::memory::persistence::Persistence;

/// What a check says.
type Verdict = Result<(), String>;

/// One crash, by the versions of its lines or by their contents.
pub(crate) enum Goal<'g> {
    Point(&'g CrashPoint),
    /// Events before it, and what lines hold after it.
    Left(usize, &'g FxHashMap<u64, Line>),
}

impl Walker<'_> {
    /// Lays out the crash that the first goal names after `trace`, checks it, and goes on in its
    /// recovery with the goals that follow. The last check's verdict; what happened goes to `told`.
    ///
    /// Errors: a goal cannot be reached.
    pub(crate) fn replay(
        &mut self,
        trace: &[Event],
        goals: &[Goal<'_>],
        seed: u64,
        told: &mut Told,
    ) -> Result<Verdict, String> {
        let Some((goal, later)) = goals.split_first() else {
            return Ok(Ok(()));
        };
        let depth = self.frames.len() as u32;
        if depth == 0 {
            self.state = CrashState {
                seed,
                ..CrashState::default()
            };
        }
        let (event, kill) = match goal {
            Goal::Point(point) => (point.event, point.kill),
            Goal::Left(event, _) => (*event, self.is_kill()),
        };
        let crashed = trace.get(..event).ok_or("the execution has fewer events")?;
        let start = self.hash;
        let mut persistence = Persistence::hashing(self.domain());
        for event in crashed {
            self.step(event, &mut persistence);
            if depth == 0 {
                self.acknowledge(event);
            }
        }
        let frame = if kill {
            Frame::kill(event)
        } else {
            Frame::new(&persistence, event, None)
        };
        self.frames.push(frame);
        let reached = self.lay(|frame, memory, hash| match goal {
            Goal::Point(point) => frame.go_to(point, memory, hash),
            Goal::Left(_, lines) => frame.go_to_contents(lines, memory, hash),
        });
        let laid = self.frames.last();
        told.points.extend(laid.map(Frame::point));
        if let Some(story) = &mut told.story {
            story.passed.push(Passed {
                events: crashed.to_vec(),
                left: Image::of(&self.crash.shared.memory, 0),
            });
        }
        let result = reached.and_then(|()| {
            self.state.event = self.frames[0].event();
            let CheckRun {
                trace,
                end,
                verdict: result,
                ..
            } = self.run_check(depth, kill, Stage::Whole);
            if later.is_empty() {
                if let Some(story) = &mut told.story {
                    story.check = trace;
                }
                Ok(result)
            } else {
                self.replay(&trace[..end], later, seed, told)
            }
        });
        self.lay(Frame::restore);
        self.frames.pop();
        for event in crashed.iter().rev() {
            event.undo(&self.crash.shared.memory);
        }
        self.hash = start;
        result
    }

    /// Makes a finding of crashes by what they left, of the execution that walks.
    pub(crate) fn find(
        &mut self,
        trace: &[Event],
        message: String,
        crashes: &[(usize, FxHashMap<u64, Line>)],
    ) {
        let goals: Vec<Goal<'_>> = crashes
            .iter()
            .map(|(event, lines)| Goal::Left(*event, lines))
            .collect();
        let (seed, mut told) = (self.state.seed, Told::default());
        let again = self.replay(trace, &goals, seed, &mut told);
        let message = match again.flatten() {
            Err(again) if again == message => message,
            Err(again) => format!("{message}; when tried again: {again}"),
            Ok(()) => format!("{message}; when tried again, it passed"),
        };
        let replay = Path {
            seed,
            schedule: self.schedule.clone(),
            crashes: told.points,
        }
        .to_string();
        self.report.findings.push(Finding { message, replay });
    }
}
