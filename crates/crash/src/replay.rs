//! The one crash that a finding's line names.

use crate::frame::Frame;
use crate::path::CrashPoint;
use crate::persistence::Persistence;
use crate::trace::Event;
use crate::walk::{CrashState, Walker};

impl Walker<'_> {
    /// Lays out the crash that `point` names after `trace`, checks it, and goes on in its recovery
    /// with the points that follow. The last check's verdict.
    pub(crate) fn replay(
        &mut self,
        trace: &[Event],
        points: &[CrashPoint],
        seed: u64,
    ) -> Result<(), String> {
        let Some((point, later)) = points.split_first() else {
            return Ok(());
        };
        let depth = self.frames.len() as u32;
        if depth == 0 {
            self.state = CrashState {
                seed,
                ..CrashState::default()
            };
        }
        let crashed = trace
            .get(..point.event)
            .ok_or("the execution has fewer events")?;
        let start = self.hash;
        let mut persistence = Persistence::hashing(self.domain());
        for event in crashed {
            self.step(event, &mut persistence);
            if depth == 0 {
                self.acknowledge(event);
            }
        }
        let frame = if point.kill {
            Frame::kill(point.event)
        } else {
            Frame::new(&persistence, point.event, None)
        };
        self.frames.push(frame);
        let result = self
            .lay(|frame, memory, hash| frame.go_to(point, memory, hash))
            .and_then(|()| {
                let (trace, end, result) = self.run_check(depth);
                if later.is_empty() {
                    result
                } else {
                    self.replay(&trace[..end], later, seed)
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
}
