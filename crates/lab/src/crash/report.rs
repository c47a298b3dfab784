//! The report of a campaign.

use std::time::Duration;

use firn_crash::Report;
use firn_heap::PoolKind;
use serde::{Deserialize, Serialize};

use super::campaign::{Campaign, Mode};
use super::op::Op;
use super::setting::{Setting, pool_name};

/// The work and findings of a campaign.
#[derive(Clone, Debug, Serialize)]
pub struct CrashReport {
    /// Whether nothing was found.
    pub ok: bool,
    /// Operations of a sequence; none if runs were injected into.
    pub exhaustive: Option<usize>,
    /// Crashes to be injected into the runs of each setting; none if sequences were explored.
    pub injections: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Crashes inside recovery.
    pub depth: u32,
    /// The step that was left out.
    pub plant: Option<&'static str>,
    /// The combinations, in their order.
    pub rows: Vec<Row>,
    /// The findings, at most one per combination.
    pub findings: Vec<Finding>,
    /// Combined hash of all executions, in hexadecimal digits: equal settings and seeds, equal hashes.
    pub hash: String,
    /// Crash states that were checked.
    pub states: u64,
    /// Total time, without the work taken from a log.
    pub seconds: f64,
    /// Whether a time limit left work undone.
    pub cut: bool,
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
    /// The kind of pool.
    pub pool: &'static str,
    /// The program's threads.
    pub threads: usize,
    /// Sequences, or runs.
    pub executions: u64,
    /// Runs with a whole cycle of the collector, and with a page that it released and the program used again.
    pub whole_runs: u64,
    /// Cycles of the collector, from the activation of the plan to the release of the pages.
    pub cycles: u64,
    /// Pages that cycles released and that later held objects of the program again.
    pub reused: u64,
    /// Crashes that were injected.
    pub injections: u64,
    /// Distinct states that they left while objects were on the move.
    pub in_cycles: u64,
    /// Crash states that were checked: one for all images in which the check reads equal values.
    pub states: u64,
    /// Of them, those after a crash inside recovery.
    pub recovery_states: u64,
    /// Legal images covered.
    pub images: u128,
    /// Whether every legal image was covered, up to the sequences and the depth.
    pub exhaustive: bool,
    /// Processor time, added up: other programs on the machine do not lengthen it.
    pub seconds: f64,
    /// Combined hash of its executions.
    pub hash: u64,
    /// The number of findings.
    pub findings: usize,
}

/// A fault, and the means to replay it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The structure.
    pub structure: String,
    /// The scheme.
    pub scheme: String,
    /// The domain.
    pub domain: String,
    /// The kind of pool.
    #[serde(default = "traced")]
    pub pool: String,
    /// The program's threads.
    pub threads: usize,
    /// Crashes inside recovery.
    pub depth: u32,
    /// The step that was left out.
    pub plant: Option<String>,
    /// The program's operations.
    pub program: Program,
    /// The fault.
    pub message: String,
    /// The explorer's line: the execution and the crashes.
    pub replay: String,
}

/// The kind of pool in findings that were written before there was a choice.
fn traced() -> String {
    pool_name(PoolKind::Traced).to_owned()
}

/// The program of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// These operations.
    Sequence(Vec<String>),
    /// This many operations, of all threads, drawn by the replay line's seed.
    Operations(u64),
}

impl Program {
    pub(super) fn of_ops(ops: &[Op]) -> Self {
        Self::Sequence(ops.iter().map(|l| l.name().to_owned()).collect())
    }
}

/// The result of one part of a setting.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) executions: u64,
    pub(super) whole_runs: u64,
    pub(super) cycles: u64,
    pub(super) reused: u64,
    pub(super) injections: u64,
    pub(super) in_cycles: u64,
    pub(super) states: u64,
    pub(super) recovery_states: u64,
    pub(super) images: u128,
    pub(super) exhaustive: bool,
    pub(super) seconds: f64,
    pub(super) hash: u64,
    pub(super) found: Option<Found>,
}

/// The fault found in a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    program: Program,
    message: String,
    replay: String,
}

impl Part {
    /// The result in a report whose first finding is about this program.
    pub(super) fn of(report: Report, program: Program) -> Self {
        Self {
            executions: report.executions,
            whole_runs: 0,
            cycles: 0,
            reused: 0,
            injections: 0,
            in_cycles: 0,
            states: report.states,
            recovery_states: report.recovery_states,
            images: report.images,
            exhaustive: report.exhaustive(),
            seconds: 0.0,
            hash: report.hash,
            found: report.findings.into_iter().next().map(|finding| Found {
                program,
                message: finding.message,
                replay: finding.replay,
            }),
        }
    }
}

impl Row {
    /// The row of a setting of which nothing is explored yet.
    pub(super) fn of(setting: &Setting) -> Self {
        Self {
            structure: setting.structure.name(),
            scheme: setting.scheme.name,
            domain: setting.survival_name(),
            pool: pool_name(setting.pool),
            threads: setting.threads,
            executions: 0,
            whole_runs: 0,
            cycles: 0,
            reused: 0,
            injections: 0,
            in_cycles: 0,
            states: 0,
            recovery_states: 0,
            images: 0,
            exhaustive: true,
            seconds: 0.0,
            hash: 0,
            findings: 0,
        }
    }

    /// Adds the result of a part. The order of parts makes no difference.
    fn add(&mut self, part: &Part) {
        self.executions += part.executions;
        self.whole_runs += part.whole_runs;
        self.cycles += part.cycles;
        self.reused += part.reused;
        self.injections += part.injections;
        self.in_cycles += part.in_cycles;
        self.states += part.states;
        self.recovery_states += part.recovery_states;
        self.images = self.images.saturating_add(part.images);
        self.exhaustive &= part.exhaustive;
        self.seconds += part.seconds;
        self.hash = self.hash.wrapping_add(part.hash);
        self.findings += usize::from(part.found.is_some());
    }

    /// The row's hash, made different from that of other settings with equal executions.
    fn hash_of_setting(&self) -> u64 {
        let names = [self.structure, self.scheme, self.domain, self.pool];
        let bytes = names.iter().flat_map(|name| name.bytes());
        let named = bytes.fold(self.threads as u64, |hash, byte| {
            hash.rotate_left(5) ^ u64::from(byte)
        });
        fastrand::Rng::with_seed(self.hash ^ named.rotate_left(32)).u64(..)
    }

    /// States in a second of one processor.
    pub fn states_per_second(&self) -> f64 {
        per_second(self.states, self.seconds)
    }

    /// Injections in a second of one processor.
    pub fn injections_per_second(&self) -> f64 {
        per_second(self.injections, self.seconds)
    }
}

impl CrashReport {
    /// The report of a campaign of which nothing is explored yet.
    pub(super) fn of(campaign: &Campaign, is_whole: bool) -> Self {
        let (exhaustive, injections) = match campaign.mode {
            Mode::Exhaustive(ops) => (Some(ops), None),
            Mode::Injections { each, .. } => (None, Some(each)),
        };
        let mut report = Self {
            ok: true,
            exhaustive,
            injections,
            seed: campaign.seed,
            depth: campaign.depth,
            plant: campaign.plant.map(|step| step.name),
            rows: campaign.settings.iter().map(Row::of).collect(),
            findings: Vec::new(),
            hash: String::new(),
            states: 0,
            seconds: 0.0,
            cut: !is_whole,
        };
        report.add_up();
        report
    }

    /// Adds a part of the setting at this place. Only the first finding of each setting is reported.
    pub(super) fn add(&mut self, place: usize, setting: &Setting, part: &Part) {
        let row = &mut self.rows[place];
        row.add(part);
        if let Some(found) = part.found.as_ref().filter(|_| row.findings == 1) {
            self.findings.push(Finding {
                structure: setting.structure.name().to_owned(),
                scheme: setting.scheme.name.to_owned(),
                domain: setting.survival_name().to_owned(),
                pool: pool_name(setting.pool).to_owned(),
                threads: setting.threads,
                depth: self.depth,
                plant: self.plant.map(str::to_owned),
                program: found.program.clone(),
                message: found.message.clone(),
                replay: found.replay.clone(),
            });
        }
        self.add_up();
    }

    fn add_up(&mut self) {
        self.ok = self.findings.is_empty();
        self.states = self.rows.iter().map(|row| row.states).sum();
        // A sum, too: logs have settings in another order than the campaign.
        let hash = self.rows.iter().map(Row::hash_of_setting);
        let hash = hash.fold(0, u64::wrapping_add);
        self.hash = format!("{hash:016x}");
    }

    /// Crashes that were injected.
    pub fn injected(&self) -> u64 {
        self.rows.iter().map(|row| row.injections).sum()
    }

    /// A count per second of one processor.
    pub fn per_second(&self, count: u64) -> f64 {
        per_second(count, self.rows.iter().map(|row| row.seconds).sum())
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(Duration::from_nanos(1).as_secs_f64())
}
