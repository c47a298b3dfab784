//! What a campaign tells.

use std::time::Duration;

use firn_crash::Report;
use serde::{Deserialize, Serialize};

use super::letter::Letter;

/// What a campaign did and found.
#[derive(Clone, Debug, Serialize)]
pub struct CrashReport {
    /// Whether nothing was found.
    pub ok: bool,
    /// Letters of a sequence; none if runs were injected into.
    pub exhaustive: Option<usize>,
    /// Crashes injected into the runs of each combination; none if sequences were explored.
    pub injections: Option<u64>,
    /// What everything random follows from.
    pub seed: u64,
    /// Crashes inside recovery.
    pub depth: u32,
    /// The step that was left out.
    pub plant: Option<&'static str>,
    /// The combinations, in their order.
    pub rows: Vec<Row>,
    /// What went wrong, at most one of a combination.
    pub findings: Vec<Finding>,
    /// Combined hash of all executions, in hexadecimal digits: equal settings and seeds, equal hashes.
    pub hash: String,
    /// Crash states that were checked.
    pub states: u64,
    /// Time that all of it took.
    pub seconds: f64,
}

/// One combination of structure, scheme and domain.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The structure.
    pub structure: &'static str,
    /// The scheme.
    pub scheme: &'static str,
    /// The domain.
    pub domain: &'static str,
    /// The program's threads.
    pub threads: usize,
    /// Sequences, or runs.
    pub executions: u64,
    /// Crashes that were injected.
    pub injections: u64,
    /// Crash states that were checked: one for all images in which the check reads the same.
    pub states: u64,
    /// Of them, those after a crash inside recovery.
    pub recovery_states: u64,
    /// Legal images covered.
    pub images: u128,
    /// Whether every legal image was covered, up to the sequences and the depth.
    pub exhaustive: bool,
    /// Time that it took, the time of several processors added up.
    pub seconds: f64,
    /// Combined hash of its executions.
    pub hash: u64,
    /// What went wrong.
    pub findings: usize,
}

/// Something that went wrong, and what replays it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The structure.
    pub structure: String,
    /// The scheme.
    pub scheme: String,
    /// The domain.
    pub domain: String,
    /// The program's threads.
    pub threads: usize,
    /// Crashes inside recovery.
    pub depth: u32,
    /// The step that was left out.
    pub plant: Option<String>,
    /// What the program did.
    pub program: Program,
    /// What was wrong.
    pub message: String,
    /// The explorer's line: the execution and the crashes.
    pub replay: String,
}

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// These letters.
    Sequence(Vec<String>),
    /// So many operations, of all threads, as the replay line's seed draws them.
    Operations(u64),
}

impl Program {
    pub(super) fn of_letters(letters: &[Letter]) -> Self {
        Self::Sequence(letters.iter().map(|l| l.name().to_owned()).collect())
    }
}

/// What one part of a combination came to.
pub(super) struct Part {
    pub(super) report: Report,
    /// What the last execution was, which a finding is about.
    pub(super) program: Program,
    pub(super) injections: u64,
}

impl Row {
    /// Takes in what a part came to.
    pub(super) fn add(&mut self, part: &Part) {
        let report = &part.report;
        self.executions += report.executions;
        self.injections += part.injections;
        self.states += report.states;
        self.recovery_states += report.recovery_states;
        self.images = self.images.saturating_add(report.images);
        self.exhaustive &= report.exhaustive();
        self.seconds += report.elapsed.as_secs_f64();
        self.hash = join(self.hash, report.hash);
    }

    /// States in a second of one processor.
    pub fn states_per_second(&self) -> f64 {
        per_second(self.states, self.seconds)
    }
}

impl CrashReport {
    /// Crashes that were injected.
    pub fn injected(&self) -> u64 {
        self.rows.iter().map(|row| row.injections).sum()
    }

    /// So many of something in each second of it.
    pub fn per_second(&self, count: u64) -> f64 {
        per_second(count, self.seconds)
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(Duration::from_nanos(1).as_secs_f64())
}

/// The hash of two things in this order.
pub(super) fn join(first: u64, second: u64) -> u64 {
    first.rotate_left(5) ^ second
}
