//! What an exploration found.

use core::fmt;
use std::time::Duration;

/// A crash state that the check rejected, or an execution that failed by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What the check said.
    pub message: String,
    /// What replays it: hand it to [`crate::Explorer::replay`].
    pub replay: String,
}

/// What an exploration covered and found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Runs of the check, those after crashes inside recovery included: one for each distinct crash
    /// state, or for each distinct course of the check if the exploration is lazy; of a check in two stages,
    /// of its first one, which is recovery.
    pub states: u64,
    /// Runs of them after a crash inside recovery.
    pub recovery_states: u64,
    /// Runs of the second stage, one for each distinct course of it: see [`crate::Crash::goes_on`].
    pub verifications: u64,
    /// Classes of images that were split as the check looked at them; zero if eager.
    pub classes: u64,
    /// Legal images covered, repetitions included.
    pub images: u128,
    /// Events crashed before, those of recoveries included.
    pub events: u64,
    /// Executions of the workload.
    pub executions: u64,
    /// Events at which images were drawn, because there were too many to try them all.
    pub sampled_events: u64,
    /// Whether a limit ended the exploration before its end.
    pub cut: bool,
    /// Combined hash of the executions.
    pub hash: u64,
    /// Time taken.
    pub elapsed: Duration,
    /// What went wrong.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether every legal state was checked, up to the depth and the schedules asked for.
    pub fn exhaustive(&self) -> bool {
        !self.cut && self.sampled_events == 0
    }

    /// States checked in a second.
    pub fn states_per_second(&self) -> f64 {
        self.states as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Panics with the first finding, if there is one.
    #[track_caller]
    pub fn expect_clean(&self) -> &Self {
        if let Some(finding) = self.findings.first() {
            panic!("{}\nreplay: {}\n{self}", finding.message, finding.replay);
        }
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} states ({} inside recovery, {} verified by themselves) of {} images in {} classes at {} events in {} executions, {} findings, {:.0} states/s",
            if self.exhaustive() {
                "exhaustive"
            } else {
                "sampled"
            },
            self.states,
            self.recovery_states,
            self.verifications,
            self.images,
            self.classes,
            self.events,
            self.executions,
            self.findings.len(),
            self.states_per_second(),
        )
    }
}
