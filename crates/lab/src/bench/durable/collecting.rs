//! What a collection costs a pool with a log: bytes of the log, stops, and a program beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use firn_format::statistics::LogFigure;
use firn_heap::Pool;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_media::{Level, Memory};
use firn_tools::Progress;

use super::super::BenchError;
use super::inserts::Growing;
use super::pools::{self, Durable, Writer};
use super::report::{FIRN, Key, Rows};
use super::workload::{key, value};
use super::{BATCH, DurableOptions, LOGGED};

/// The part.
pub(super) const COLLECT: &str = "durable_collect";

/// The work.
pub(super) const LOG_BYTES: &str = "log bytes of a collection, over bytes moved";
pub(super) const STOP: &str = "longest stop of a collection, CPU time";
pub(super) const ALONE: &str = "update, slowest of a hundred, no collector";
pub(super) const BESIDE: &str = "update, slowest of a hundred, beside a collection";

/// One in this many entries stays.
const STAYS: u64 = 5;
/// Updates that are timed before the collection, and during it at least.
const UPDATES: u64 = 5_000;
const MS: f64 = 1e6;

fn row(what: &'static str, unit: &'static str) -> Key<'static> {
    Key {
        part: COLLECT,
        system: FIRN,
        medium: LOGGED,
        level: Level::Written.name(),
        what,
        unit,
    }
}

/// Measures collections of pools in which most entries were deleted.
pub(super) fn measure(
    options: &DurableOptions,
    folder: &Path,
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    progress.begin("collections", Some(options.rounds as u64));
    for round in 0..options.rounds as u64 {
        let path = folder.join(format!("collect-{round}"));
        let pool = sparse(&path, options.entries)?;
        let before = log_bytes(&pool)?;
        let collected = pool.collect(&everything())?;
        let log = log_bytes(&pool)? - before;
        rows.add(
            row(LOG_BYTES, "x"),
            log as f64 / collected.planned_bytes as f64,
            "",
        );
        pool.close()?;
        remove(&path)?;
        let pool = sparse(&path, options.entries)?;
        let alone = updates(&pool, options.entries, round, |done| done < UPDATES)?;
        rows.add(row(ALONE, "us"), slowest_of_a_hundred(alone), "");
        let beside = beside(&pool, options.entries, round)?;
        rows.add(row(BESIDE, "us"), slowest_of_a_hundred(beside), "");
        let stop = pool.collector_stops().longest_cpu_ns;
        rows.add(row(STOP, "ms"), stop as f64 / MS, "");
        pool.close()?;
        remove(&path)?;
        progress.advance(1);
    }
    progress.end();
    Ok(())
}

fn everything() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

fn remove(path: &Path) -> Result<(), BenchError> {
    std::fs::remove_file(path).map_err(BenchError::io(format!("removing {}", path.display())))
}

/// A pool in which most entries were deleted, in no order.
fn sparse(path: &Path, entries: u64) -> Result<Pool<Durable>, BenchError> {
    let mut growing = Growing::new(pools::create(path, Level::Written, None)?);
    growing.insert(entries, BATCH, 1)?;
    let pool = growing.pool;
    let mut writer = Writer::new(&pool)?;
    let gone: Vec<u64> = (0..entries).filter(|number| number % STAYS != 0).collect();
    for numbers in gone.chunks(BATCH as usize) {
        let keys: Vec<u64> = numbers.iter().map(|&number| key(number)).collect();
        writer.remove(&keys)?;
    }
    drop(writer);
    pool.sync()?;
    Ok(pool)
}

/// Bytes that were written to the log so far.
fn log_bytes(pool: &Pool<Durable>) -> Result<u64, BenchError> {
    pool.sync()?;
    // A transaction shows the figures.
    Writer::new(pool)?.commit(&[(key(0), value(0, 1))])?;
    Ok(pool.medium().load_u64(LogFigure::WrittenBytes.at()))
}

/// Updates entries that are there, one a transaction, as long as `goes_on` says. Returns the times.
fn updates(
    pool: &Pool<Durable>,
    entries: u64,
    seed: u64,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<Vec<Duration>, BenchError> {
    let (mut writer, mut rng) = (Writer::new(pool)?, fastrand::Rng::with_seed(seed));
    let mut times = Vec::new();
    while goes_on(times.len() as u64) {
        let number = rng.u64(..entries / STAYS) * STAYS;
        let entry = [(key(number), value(number, times.len() as u64))];
        let begin = Instant::now();
        writer.commit(&entry)?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

/// The times of updates while another thread collects.
fn beside(pool: &Pool<Durable>, entries: u64, seed: u64) -> Result<Vec<Duration>, BenchError> {
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| pool.collect(&everything()));
        let goes_on = |_| !collecting.is_finished();
        let times = updates(pool, entries, !seed, goes_on);
        let collected = collecting.join().expect("a collection does not panic")?;
        assert!(collected.moved > 0, "objects move meanwhile");
        times
    })
}

/// In microseconds: all but one in a hundred are faster.
fn slowest_of_a_hundred(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let at = (times.len() * 99 / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}
