//! Entries come and go beside a collector: the phases of FFCCD's evaluation (its section 6) on the user's own pool.
//!
//! ```text
//! entries    which entries are in, their keys and values, in an order that a seed decides
//! mine       the map, and the check that it holds no other entries
//! report     the report
//! ```
//! A round inserts all entries, deletes four of five at random, inserts them again, and deletes four of five. Each
//! operation is a transaction, all of one thread; the collector has a thread of its own.

mod entries;
mod mine;
mod report;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use firn_heap::Pool;
use firn_heap::collector::{BackgroundCollector, CollectOptions, CollectorOptions, PageSize};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Memory};
use firn_tools::{Entry, Progress, Standing, Store, ToolError};

use crate::bench::{Moment, Times};
use crate::{CollectorWork, LabError};

use entries::Entries;

pub use entries::{MOST_VALUE_BYTES, Step};
pub use report::{ChurnReport, CollectorSetting, Phase};

/// Least number of entries: of fewer, four of five are not a whole number.
pub const LEAST_ENTRIES: u64 = 5;
/// Entries that are prepared at a time, outside the measurement.
const BATCH_ENTRIES: usize = 256;

/// Collections after which a ratio above the trigger is accepted: the first may have been under way.
const TRIES: u64 = 2;
/// Time after which it is accepted, however few collections there were.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to do.
#[derive(Clone, Debug)]
pub struct ChurnPlan {
    /// The pool's file, made if it is not there.
    pub pool: PathBuf,
    /// How its file is mapped.
    pub mapped: MappedOptions,
    /// The domain of a pool that is made.
    pub new_domain: Option<Domain>,
    /// The root that names the map.
    pub map: String,
    /// Entries; [`LEAST_ENTRIES`] at least.
    pub entries: u64,
    /// Bytes of each value, [`MOST_VALUE_BYTES`] at most.
    pub value_bytes: usize,
    /// Seed of every order.
    pub seed: u64,
    /// Rounds of the phases.
    pub rounds: u64,
    /// The collector that works meanwhile.
    pub collector: Option<CollectorSetting>,
    /// Whether the entries that are left at the end stay.
    pub keep: bool,
}

/// Carries out the plan. Other content of the pool is left alone, whatever the pool belongs to.
///
/// Errors: a plan that makes no sense; the pool is in use, damaged, full; the root is no map, or a map that holds other
/// entries, and then nothing was changed. After a later error the entries are removed as far as possible. Crash: at any
/// moment; the next run removes what is left of the entries.
pub fn churn(plan: &ChurnPlan, progress: &mut dyn Progress) -> Result<ChurnReport, LabError> {
    let start = Instant::now();
    refuse_nonsense(plan)?;
    let mut store = mine::open(plan, progress)?;
    let churned = on(&mut store, plan, progress);
    let cleaned = match plan.keep {
        true => Ok(0),
        false => mine::clear(&mut store, progress),
    };
    let closed = store.close();
    let mut report = churned?;
    report.cleaned = cleaned?;
    closed?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

fn refuse_nonsense(plan: &ChurnPlan) -> Result<(), LabError> {
    let out_of_range =
        |what, range, found: String| LabError::Tool(ToolError::Range { what, range, found });
    if plan.entries < LEAST_ENTRIES || plan.entries > u64::from(u32::MAX) {
        let found = plan.entries.to_string();
        return Err(out_of_range(
            "the number of entries",
            "5 to 2^32 - 1",
            found,
        ));
    }
    if plan.value_bytes > MOST_VALUE_BYTES {
        let found = plan.value_bytes.to_string();
        return Err(out_of_range("the bytes of a value", "at most 2^30", found));
    }
    match plan.collector {
        Some(CollectorSetting { target, .. }) if !(target >= 1.0 && target.is_finite()) => Err(
            out_of_range("the target ratio", "1 or more", target.to_string()),
        ),
        Some(CollectorSetting {
            trigger, target, ..
        }) if !(trigger > target && trigger.is_finite()) => {
            let found = trigger.to_string();
            Err(out_of_range("the trigger ratio", "above the target", found))
        }
        _ => Ok(()),
    }
}

impl CollectorSetting {
    fn options(&self) -> CollectorOptions {
        CollectorOptions {
            trigger: self.trigger,
            collect: CollectOptions {
                target: self.target,
                scheme: self.scheme,
                ..CollectOptions::default()
            },
            ..CollectorOptions::default()
        }
    }
}

fn on(
    store: &mut Store,
    plan: &ChurnPlan,
    progress: &mut dyn Progress,
) -> Result<ChurnReport, LabError> {
    let path = &plan.pool;
    let error = ToolError::pool(path);
    let pool = store.pool().clone();
    let options = plan.collector.as_ref().map(CollectorSetting::options);
    let collector = options.as_ref().map(|how| pool.start_collector(how));
    let collector = collector.transpose().map_err(&error)?;
    let phases = all_phases(store, plan, progress);
    progress.begin("waiting for the collector", None);
    if let (Some(collector), Some(options), Ok(_)) = (&collector, &options, &phases) {
        settle(&pool, collector, options, &Standing::now(&pool, path)?);
    }
    let done = collector.map(BackgroundCollector::stop).transpose();
    progress.end();
    let (phases, done) = (phases?, done.map_err(&error)?);
    let work = done.map(|done| {
        let mut work = CollectorWork::default();
        work.add(&done, &pool.collector_stops());
        work
    });
    Ok(ChurnReport {
        pool: path.display().to_string(),
        domain: store.pool().medium().domain().name(),
        map: plan.map.clone(),
        entries: plan.entries,
        value_bytes: plan.value_bytes,
        seed: plan.seed,
        rounds: plan.rounds,
        setting: plan.collector,
        phases,
        collector: work,
        end: Standing::now(&pool, path)?,
        kept: plan.keep,
        cleaned: 0,
        seconds: 0.0,
    })
}

/// Waits until the collector has responded to the last phase: the ratio is not above the trigger, or the collector has
/// tried since. It ignores a small pool.
fn settle(
    pool: &Pool<Mapped>,
    collector: &BackgroundCollector<Mapped>,
    options: &CollectorOptions,
    now: &Standing,
) {
    if now.footprint_2m_bytes < options.least_bytes {
        return;
    }
    let start = Instant::now();
    let collections = collector.progress().collections;
    let is_due = || {
        pool.ratio(PageSize::Huge) > options.trigger
            && collector.progress().collections < collections + TRIES
    };
    while is_due() && start.elapsed() < PATIENCE {
        thread::sleep(options.interval);
    }
}

fn all_phases(
    store: &mut Store,
    plan: &ChurnPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<Phase>, LabError> {
    let mut entries = Entries::new(plan.entries as u32, plan.value_bytes, plan.seed);
    let mut phases = Vec::new();
    for round in 1..=plan.rounds {
        for step in Step::ROUND {
            let numbers = entries.draw(step);
            progress.begin(step.name(), Some(numbers.len() as u64));
            let times = change(store, &plan.pool, step, &numbers, &mut entries, progress);
            progress.end();
            let times = times?;
            let operations = numbers.len() as u64;
            entries.settle(step, numbers);
            phases.push(Phase {
                round,
                phase: step.name(),
                operations,
                cpu_ns_an_operation: times.cpu_ns / operations.max(1) as f64,
                per_second: operations as f64 / (times.wall_ns / 1e9).max(f64::MIN_POSITIVE),
                standing: Standing::now(store.pool(), &plan.pool)?,
            });
        }
    }
    Ok(phases)
}

/// Inserts or deletes these entries, each in a transaction. Preparing them is not timed.
fn change(
    store: &mut Store,
    path: &Path,
    step: Step,
    numbers: &[u32],
    entries: &mut Entries,
    progress: &mut dyn Progress,
) -> Result<Times, LabError> {
    let mut times = Times::default();
    let mut batch = vec![Entry::default(); BATCH_ENTRIES];
    for numbers in numbers.chunks(BATCH_ENTRIES) {
        let batch = &mut batch[..numbers.len()];
        for (entry, &number) in batch.iter_mut().zip(numbers) {
            entries.write(number, step, entry);
        }
        let start = Moment::now();
        for entry in batch.iter() {
            let as_left = match step.inserts() {
                true => !store.insert(&entry.key, &entry.value)?,
                false => store.remove(&entry.key)?,
            };
            if !as_left {
                return Err(LabError::NotAsLeft {
                    path: path.to_path_buf(),
                    key: String::from_utf8_lossy(&entry.key).into_owned(),
                });
            }
        }
        times += start.elapsed();
        progress.advance(numbers.len() as u64);
    }
    Ok(times)
}
