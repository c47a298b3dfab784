//! The results of an exploration.

use core::fmt;
use std::time::Duration;

/// A crash state that the check rejected, or an execution that failed by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check's message.
    pub message: String,
    /// Replays it: pass it to [`crate::Explorer::replay`].
    pub replay: String,
}

/// The coverage and findings of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Runs of the check, including those after crashes inside recovery: one for each distinct crash state, or, if the
    /// exploration is lazy, for each distinct course of the check. Of a check in two stages this counts the first,
    /// which is recovery.
    pub states: u64,
    /// Those of them after a crash inside recovery.
    pub recovery_states: u64,
    /// Runs of the second stage, one for each distinct course: see [`crate::Crash::goes_on`].
    pub verifications: u64,
    /// Classes of images that were split as the check looked at them; zero if eager.
    pub classes: u64,
    /// Legal images covered, repetitions included.
    pub images: u128,
    /// Events before which a crash was tried, including events of recoveries.
    pub events: u64,
    /// Executions of the workload.
    pub executions: u64,
    /// Events with too many images to try all of them; theirs were drawn.
    pub sampled_events: u64,
    /// Whether a limit cut the exploration short.
    pub cut: bool,
    /// Combined hash of the executions.
    pub hash: u64,
    /// Time taken.
    pub elapsed: Duration,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether every legal state was checked, up to the depth and within the schedules asked for.
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
