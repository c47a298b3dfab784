//! The parent: starts children, kills them, opens what they left, and compares.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::collector::Collecting;
use super::record::{RECORD_BYTES, decode};
use super::report::{KillReport, Spread};
use super::script::{Operation, Script, Tide};
use super::verify::verify;
use super::victim::Victim;
use super::{REOPENED, WRITERS, entries};
use crate::check::findings;
use crate::defrag::pages_name;
use crate::{Entry, LabError, Progress, Store, StoreOptions};

/// One of so many children is killed at a moment counted from its start, not from its first
/// operation: in the middle of its opening, often.
const EARLY_SHARE: u64 = 8;
/// One of so many times the parent leaves the pool as a crash would, untraced, and the child traces
/// while it writes.
const ABANDON_SHARE: u64 = 3;
/// The shortest mean life of a child.
const MIN_LIFE: Duration = Duration::from_millis(4);
/// How long a child may take to its first operation.
const START_LIMIT: Duration = Duration::from_secs(60);
const SIGKILL: i32 = 9;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct KillPlan {
    /// The program that writes when it is called with `demo-writer` and a [`super::WriterPlan`].
    pub program: PathBuf,
    /// The pool: made if it is not there, its maps empty or left by an earlier life.
    pub pool: PathBuf,
    /// Where the entries are put for the child.
    pub entries_file: PathBuf,
    /// Keys, and what their values begin with; sorted by key, each once.
    pub entries: Vec<Entry>,
    /// Kills.
    pub kills: u64,
    /// Time that all of it takes, about.
    pub time: Duration,
    /// Decides what the writers do, and when they are killed.
    pub seed: u64,
    /// Bytes that values are longer by, at most.
    pub payload_bytes: usize,
    /// How the children collect, one after the other in turn; none if they do not.
    pub collecting: Vec<Collecting>,
}

/// A run in progress.
struct Runner<'a> {
    plan: &'a KillPlan,
    scripts: Vec<Script>,
    rng: Rng,
    report: KillReport,
    reopenings: Vec<Duration>,
    traces: Vec<Duration>,
    /// What a round takes besides the child's life.
    overhead: Duration,
    writing: Duration,
}

/// Starts a child, kills it, opens the pool and compares, as often as the plan says.
///
/// Errors: the pool is in use or cannot be opened, a child ended by itself. What is lost is no error
/// but part of the report; the run ends with it.
pub fn run(plan: &KillPlan, progress: &mut dyn Progress) -> Result<KillReport, LabError> {
    entries::save(&plan.entries_file, &plan.entries)?;
    Store::open_or_create(&plan.pool, &reopened(), progress)?.close()?;
    let script = |writer| {
        let mut script = Script::new(writer, plan.seed, plan.entries.len());
        if !plan.collecting.is_empty() {
            script.set_tide(Tide::Ebb);
        }
        script
    };
    let mut runner = Runner {
        plan,
        scripts: (0..WRITERS).map(script).collect(),
        rng: Rng::with_seed(plan.seed),
        report: KillReport::default(),
        reopenings: Vec::new(),
        traces: Vec::new(),
        overhead: Duration::ZERO,
        writing: Duration::ZERO,
    };
    let start = Instant::now();
    progress.begin("killing", Some(plan.kills));
    for life in 1..=plan.kills {
        let left = plan.time.saturating_sub(start.elapsed());
        let mean = left / (plan.kills - life + 1) as u32;
        runner.round(life, mean)?;
        progress.advance(1);
        if !runner.report.is_sound() {
            break;
        }
    }
    progress.end();
    Ok(runner.finish())
}

fn reopened() -> StoreOptions {
    StoreOptions {
        map: REOPENED.into(),
        ..StoreOptions::default()
    }
}

impl KillPlan {
    /// How the child collects in a life.
    fn collecting_in(&self, life: u64) -> Option<&Collecting> {
        let turn = life.checked_rem(self.collecting.len() as u64)?;
        self.collecting.get(turn as usize)
    }

    /// The program with its arguments for one life of the child.
    fn writer(&self, life: u64, scripts: &[Script]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("demo-writer");
        command.arg("--pool").arg(&self.pool);
        command.arg("--entries").arg(&self.entries_file);
        command.args(["--life", &life.to_string()]);
        command.args(["--seed", &self.seed.to_string()]);
        command.args(["--payload-bytes", &self.payload_bytes.to_string()]);
        for (writer, script) in scripts.iter().enumerate() {
            if script.is_filling() {
                command.args(["--filling", &writer.to_string()]);
            }
            if script.tide() == Some(Tide::Flood) {
                command.args(["--flood", &writer.to_string()]);
            }
        }
        if let Some(how) = self.collecting_in(life) {
            command.args(["--collect", how.scheme.name]);
            command.args(["--collect-pages", pages_name(how.pages)]);
            command.args(["--collect-pause-us", &how.pause.as_micros().to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

impl Runner<'_> {
    /// One life of the child and what comes after it, which together should take `mean`.
    fn round(&mut self, life: u64, mean: Duration) -> Result<(), LabError> {
        let start = Instant::now();
        let mean_life = mean.saturating_sub(self.overhead).max(MIN_LIFE);
        let time = mean_life.mul_f64(self.rng.f64() * 2.0);
        let written = self.live(life, time)?;
        self.reopen(life)?;
        self.writing += written;
        self.overhead = start.elapsed().saturating_sub(written);
        Ok(())
    }

    /// Starts the child and kills it when it has written for `time`, or earlier. Returns how long it
    /// wrote.
    fn live(&mut self, life: u64, time: Duration) -> Result<Duration, LabError> {
        let child = self.plan.writer(life, &self.scripts).spawn();
        let child = Victim::new(child.map_err(LabError::file(&self.plan.program, "starting"))?);
        if life.is_multiple_of(EARLY_SHARE) {
            thread::sleep(self.overhead.mul_f64(self.rng.f64()));
        } else {
            child.wait_for_first(START_LIMIT);
            thread::sleep(time);
        }
        let end = child.kill();
        if end.status.signal() != Some(SIGKILL) {
            return Err(LabError::ChildEnded {
                pool: self.plan.pool.clone(),
                status: end.status.to_string(),
            });
        }
        self.report.kills += 1;
        self.report.killed_while_opening += u64::from(end.acknowledged.is_empty());
        self.acknowledge(life, &end.acknowledged);
        Ok(end.written)
    }

    /// Lets the scripts know what was acknowledged.
    fn acknowledge(&mut self, life: u64, bytes: &[u8]) {
        for script in &mut self.scripts {
            script.begin(life);
        }
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        for record in records {
            let operation = decode(record);
            let expected = |o: &Operation| self.scripts.get(o.writer).and_then(Script::next);
            match operation {
                Some(operation) if expected(&operation) == Some(operation) => {
                    self.scripts[operation.writer].done(operation);
                    self.report.acknowledged.count(operation.deed);
                }
                other => {
                    let what = format!("life {life}: an acknowledgement out of turn: {other:?}");
                    self.report.lost.push(what);
                    return;
                }
            }
        }
        if !rest.is_empty() {
            let what = format!("life {life}: a torn acknowledgement");
            self.report.lost.push(what);
        }
    }

    /// Opens the pool, inserts, compares, checks.
    fn reopen(&mut self, life: u64) -> Result<(), LabError> {
        let start = Instant::now();
        let mut store = Store::open_untraced(&self.plan.pool, &reopened())?;
        self.report.killed_while_collecting += u64::from(store.pool().has_open_cycle());
        store.insert(&life.to_be_bytes(), b"")?;
        self.reopenings.push(start.elapsed());
        let (entries, payload) = (&self.plan.entries, self.plan.payload_bytes);
        let verified = verify(&mut store, &mut self.scripts, entries, payload)?;
        self.report.compared += verified.entries;
        self.report.in_flight += verified.in_flight;
        let after = |what| format!("after kill {life}: {what}");
        self.report
            .lost
            .extend(verified.lost.into_iter().map(after));
        self.check(&store, life)?;
        if life.is_multiple_of(ABANDON_SHARE) && life < self.plan.kills {
            store.abandon();
            return Ok(());
        }
        self.end_what_is_open(&store, life)?;
        self.check(&store, life)?;
        store.close()
    }

    /// Tells what lives: by a trace, or every other time by a collection, if the children collect.
    fn end_what_is_open(&mut self, store: &Store, life: u64) -> Result<(), LabError> {
        let pool = store.pool();
        let ended = match self.plan.collecting_in(life) {
            Some(how) if life.is_multiple_of(2) => pool.collect(&how.options()).map(|_| ()),
            _ => {
                let start = Instant::now();
                let traced = pool.trace().map(|_| ());
                self.traces.push(start.elapsed());
                traced
            }
        };
        ended.map_err(LabError::pool(&self.plan.pool))
    }

    fn check(&mut self, store: &Store, life: u64) -> Result<(), LabError> {
        let found = findings(store.pool()).map_err(LabError::pool(&self.plan.pool))?;
        let after = |what| format!("after kill {life}: {what}");
        self.report.findings.extend(found.into_iter().map(after));
        Ok(())
    }

    fn finish(self) -> KillReport {
        let seconds = self.writing.as_secs_f64();
        let total = self.report.acknowledged.total() as f64;
        KillReport {
            writing_seconds: seconds,
            operations_per_second: total / seconds.max(f64::MIN_POSITIVE),
            reopen_ms: Spread::of_ms(&self.reopenings),
            trace_ms: Spread::of_ms(&self.traces),
            ..self.report
        }
    }
}
