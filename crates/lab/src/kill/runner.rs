//! The parent: starts children, kills them, opens what they left, and compares.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use firn_mapped::MappedError;
use firn_media::Domain;
use firn_tools::{Progress, Store, StoreOptions, ToolError, findings, pages_name};

use fastrand::Rng;

use super::collector::Collecting;
use super::lookout::wait_for_cycle;
use super::record::{RECORD_BYTES, decode};
use super::report::KillReport;
use super::victim::Victim;
use super::{REOPENED, entries};
use crate::power_cut::{Syncs, cut_power};
use crate::writers::{Ledger, Operation, Script, Tide};
use crate::{LabError, Spread};

/// One in this many children is killed at a moment counted from its start, not from its first operation: often in the
/// middle of its opening.
const EARLY_SHARE: u64 = 8;
/// One in this many collecting children is killed at any moment; the others while a cycle is open.
const BLIND_SHARE: u64 = 4;
/// Time given to a child to open a cycle.
const LOOKOUT: Duration = Duration::from_millis(300);
/// One in this many times the parent leaves the pool as a crash would, untraced, and the child traces while it writes.
const ABANDON_SHARE: u64 = 3;
/// The shortest mean life of a child.
const MIN_LIFE: Duration = Duration::from_millis(4);
/// Time given to a child for its first operation.
const START_LIMIT: Duration = Duration::from_secs(60);
const SIGKILL: i32 = 9;

/// What to do.
#[derive(Clone, Debug)]
pub struct KillPlan {
    /// The program that writes when it is called with `demo-writer` and a [`super::WriterPlan`].
    pub program: PathBuf,
    /// The pool: made if it is not there.
    pub pool: PathBuf,
    /// The file of entries for the child.
    pub entries_file: PathBuf,
    /// Kills.
    pub kills: u64,
    /// Approximate duration.
    pub time: Duration,
    /// How the children collect, in turn; empty if they do not.
    pub collecting: Vec<Collecting>,
    /// The domain of a pool that is made.
    pub domain: Domain,
    /// Whether the power fails, too, at some of the kills. The pool is in [`Domain::Logged`] then.
    pub power: Option<Power>,
}

/// The disk of children whose power fails.
#[derive(Clone, Debug)]
pub struct Power {
    /// The file of its journal.
    pub journal: PathBuf,
    /// What its syncs do.
    pub syncs: Syncs,
}

/// A run in progress.
struct Runner<'a> {
    plan: &'a KillPlan,
    ledger: &'a mut Ledger,
    rng: Rng,
    report: KillReport,
    reopenings: Vec<Duration>,
    traces: Vec<Duration>,
    /// Time of a round besides the child's life.
    overhead: Duration,
    /// How long children wrote on the system's disk, and operations that they acknowledged.
    writing: Duration,
    written: u64,
}

/// Starts a child, kills it, opens the pool and compares it with the ledger, as often as the plan says. The ledger's
/// seed decides the moments of the kills, and what the disk has when the power fails.
///
/// Errors: the pool is in use or cannot be read, a child ended by itself. A loss is no error but part of the report, and so
/// is a pool that is refused; it ends the run.
pub fn run(
    plan: &KillPlan,
    ledger: &mut Ledger,
    progress: &mut dyn Progress,
) -> Result<KillReport, LabError> {
    entries::save(&plan.entries_file, ledger.entries())?;
    let mut created = reopened();
    created.new_domain = Some(plan.domain);
    Store::open_or_create(&plan.pool, &created, progress)?.close()?;
    if !plan.collecting.is_empty() && ledger.tide().is_none() {
        ledger.set_tide(Tide::Ebb);
    }
    let mut runner = Runner {
        plan,
        rng: Rng::with_seed(ledger.seed()),
        ledger,
        report: KillReport::default(),
        reopenings: Vec::new(),
        traces: Vec::new(),
        overhead: Duration::ZERO,
        writing: Duration::ZERO,
        written: 0,
    };
    let start = Instant::now();
    progress.begin("killing", Some(plan.kills));
    for kill in 1..=plan.kills {
        let left = plan.time.saturating_sub(start.elapsed());
        let mean = left / (plan.kills - kill + 1) as u32;
        runner.round(kill, mean)?;
        progress.advance(1);
        if !runner.report.is_sound() {
            break;
        }
    }
    progress.end();
    Ok(runner.finish())
}

/// The log beside a pool.
fn log_of(pool: &Path) -> PathBuf {
    pool.with_added_extension("firn-log")
}

fn reopened() -> StoreOptions {
    StoreOptions {
        map: REOPENED.into(),
        ..StoreOptions::default()
    }
}

impl KillPlan {
    /// How the next child to be killed collects.
    fn collecting_at(&self, kill: u64) -> Option<&Collecting> {
        let turn = kill.checked_rem(self.collecting.len() as u64)?;
        self.collecting.get(turn as usize)
    }

    /// The program, with its arguments for one life of the child.
    fn writer(&self, kill: u64, life: u64, ledger: &Ledger, power: Option<&Power>) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("demo-writer");
        command.arg("--pool").arg(&self.pool);
        command.arg("--entries").arg(&self.entries_file);
        command.args(["--life", &life.to_string()]);
        command.args(["--seed", &ledger.seed().to_string()]);
        let payload_bytes = ledger.input().payload_bytes;
        command.args(["--payload-bytes", &payload_bytes.to_string()]);
        for script in ledger.scripts() {
            let writer = script.writer().to_string();
            if script.is_filling() {
                command.args(["--filling", &writer]);
            }
            if script.tide() == Some(Tide::Flood) {
                command.args(["--flood", &writer]);
            }
        }
        if let Some(how) = self.collecting_at(kill) {
            command.args(["--collect", how.scheme.name]);
            command.args(["--collect-pages", pages_name(how.pages)]);
            command.args(["--collect-pause-us", &how.pause.as_micros().to_string()]);
        }
        if let Some(power) = power {
            command.arg("--disk").arg(&power.journal);
            if power.syncs == Syncs::Lie {
                command.arg("--disk-lies");
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

impl Runner<'_> {
    /// One life of the child and the work after it, which together should take `mean`.
    fn round(&mut self, kill: u64, mean: Duration) -> Result<(), LabError> {
        let start = Instant::now();
        let mean_life = mean.saturating_sub(self.overhead).max(MIN_LIFE);
        let time = mean_life.mul_f64(self.rng.f64() * 2.0);
        let written = self.live(kill, time)?;
        if let Err(refused) = self.reopen(kill) {
            self.refused(kill, refused)?;
        }
        self.overhead = start.elapsed().saturating_sub(written);
        Ok(())
    }

    /// Starts the child and kills it when it has written for `time`, or earlier. Returns how long it
    /// wrote.
    fn live(&mut self, kill: u64, time: Duration) -> Result<Duration, LabError> {
        let life = self.ledger.next_life();
        let power = self.plan.power.as_ref().filter(|_| self.rng.bool());
        let child = self.plan.writer(kill, life, self.ledger, power).spawn();
        let child = Victim::new(child.map_err(ToolError::file(&self.plan.program, "starting"))?);
        if kill.is_multiple_of(EARLY_SHARE) {
            thread::sleep(self.overhead.mul_f64(self.rng.f64()));
        } else {
            child.wait_for_first(START_LIMIT);
            thread::sleep(time);
            self.aim(kill);
        }
        let end = child.kill();
        if end.status.signal() != Some(SIGKILL) {
            return Err(LabError::ChildEnded {
                pool: self.plan.pool.clone(),
                status: end.status.to_string(),
            });
        }
        match power {
            Some(power) => self.cut_power(power)?,
            None => {
                self.writing += end.written;
                self.written += (end.acknowledged.len() / RECORD_BYTES) as u64;
            }
        }
        self.report.kills += 1;
        self.report.killed_while_opening += u64::from(end.acknowledged.is_empty());
        self.acknowledge(kill, &end.acknowledged);
        Ok(end.written)
    }

    /// The power fails: of what the dead child wrote, the files hold what the disk has.
    fn cut_power(&mut self, power: &Power) -> Result<(), ToolError> {
        let (journal, pool) = (&power.journal, &self.plan.pool);
        let found = cut_power(journal, pool, &log_of(pool), &mut self.rng);
        let found = found.map_err(ToolError::file(journal, "cutting the power"))?;
        self.report.power = self.report.power.and(found);
        Ok(())
    }

    /// A pool that is refused is lost, and whatever else keeps it from being opened is an error.
    fn refused(&mut self, kill: u64, error: LabError) -> Result<(), LabError> {
        use MappedError::{InUse, Io};
        match error {
            LabError::Tool(ToolError::File { .. })
            | LabError::Tool(ToolError::Mapped(Io { .. } | InUse { .. })) => Err(error),
            LabError::Tool(refused) => {
                let what = format!("after kill {kill}: the pool is refused: {refused}");
                self.report.lost.push(what);
                Ok(())
            }
            other => Err(other),
        }
    }

    /// Waits for a moment within a cycle of the child's collector, if it collects.
    fn aim(&mut self, kill: u64) {
        if let Some(how) = self.plan.collecting_at(kill)
            && !kill.is_multiple_of(BLIND_SHARE)
        {
            wait_for_cycle(&self.plan.pool, LOOKOUT);
            thread::sleep(how.cycle_time().mul_f64(self.rng.f64()));
        }
    }

    /// Tells the scripts which operations were acknowledged.
    fn acknowledge(&mut self, kill: u64, bytes: &[u8]) {
        let scripts = self.ledger.scripts_mut();
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        for record in records {
            let operation = decode(record);
            let expected = |o: &Operation| scripts.get(o.writer).and_then(Script::next);
            match operation {
                Some(operation) if expected(&operation) == Some(operation) => {
                    scripts[operation.writer].done(operation);
                    self.report.acknowledged.count(operation.deed);
                }
                other => {
                    let what =
                        format!("before kill {kill}: an acknowledgement out of turn: {other:?}");
                    self.report.lost.push(what);
                    return;
                }
            }
        }
        if !rest.is_empty() {
            let what = format!("before kill {kill}: a torn acknowledgement");
            self.report.lost.push(what);
        }
    }

    /// Opens the pool, inserts, compares, checks.
    fn reopen(&mut self, kill: u64) -> Result<(), LabError> {
        let start = Instant::now();
        let mut store = Store::open_untraced(&self.plan.pool, &reopened())?;
        self.report.killed_while_collecting += u64::from(store.pool().has_open_cycle());
        store.insert(&kill.to_be_bytes(), b"")?;
        self.reopenings.push(start.elapsed());
        let verified = self.ledger.verify(&mut store)?;
        self.report.compared += verified.entries;
        self.report.in_flight += verified.in_flight;
        let after = |what| format!("after kill {kill}: {what}");
        self.report
            .lost
            .extend(verified.lost.into_iter().map(after));
        self.check(&store, kill)?;
        if kill.is_multiple_of(ABANDON_SHARE) && kill < self.plan.kills {
            store.abandon();
            return Ok(());
        }
        self.end_what_is_open(&store, kill)?;
        self.check(&store, kill)?;
        Ok(store.close()?)
    }

    /// Completes open work: by a trace or, if the children collect, every other time by a collection.
    fn end_what_is_open(&mut self, store: &Store, kill: u64) -> Result<(), ToolError> {
        let pool = store.pool();
        let ended = match self.plan.collecting_at(kill) {
            Some(how) if kill.is_multiple_of(2) => pool.collect(&how.options()).map(|_| ()),
            _ => {
                let start = Instant::now();
                let traced = pool.trace().map(|_| ());
                self.traces.push(start.elapsed());
                traced
            }
        };
        ended.map_err(ToolError::pool(&self.plan.pool))
    }

    fn check(&mut self, store: &Store, kill: u64) -> Result<(), ToolError> {
        let found = findings(store.pool()).map_err(ToolError::pool(&self.plan.pool))?;
        let after = |what| format!("after kill {kill}: {what}");
        self.report.findings.extend(found.into_iter().map(after));
        Ok(())
    }

    fn finish(self) -> KillReport {
        let seconds = self.writing.as_secs_f64();
        KillReport {
            writing_seconds: seconds,
            operations_per_second: self.written as f64 / seconds.max(f64::MIN_POSITIVE),
            reopen_ms: Spread::of_ms(&self.reopenings),
            trace_ms: Spread::of_ms(&self.traces),
            ..self.report
        }
    }
}
