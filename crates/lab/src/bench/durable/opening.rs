//! How long a durable pool takes to open: a closed one, and one whose program was killed with a full log.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use firn_heap::Pool;
use firn_media::Level;
use firn_tools::Progress;
use rustix::fs::{Advice, fadvise};

use super::super::BenchError;
use super::super::reopen::Victim;
use super::inserts::Growing;
use super::pools::{self, Durable, Writer};
use super::report::{FIRN, Key, Rows};
use super::workload::{Value, key, value};
use super::{BATCH, DurableOptions, LOGGED};

/// The part, and the work.
pub(super) const OPEN: &str = "durable_open";
pub(super) const CLOSED: &str = "open, closed before";
pub(super) const RECOVERED: &str = "open, full log, page cache warm";
pub(super) const RECOVERED_COLD: &str = "open, full log, page cache cold";

/// Recoveries of each kind at most: filling a log takes long.
const MOST_RECOVERIES: usize = 3;
/// What the child says when its log is full.
const FULL: &str = "full";
/// How long a child waits to be killed.
const LONGEST_LIFE: Duration = Duration::from_secs(600);
const GIB: f64 = (1u64 << 30) as f64;

/// A pool to be filled until its log is full.
#[derive(Clone, Debug)]
pub struct FillPlan {
    /// Where the pool is made.
    pub pool: PathBuf,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Entries that are changed again and again.
    pub entries: u64,
}

const fn row(what: &'static str, unit: &'static str) -> Key<'static> {
    Key {
        part: OPEN,
        system: FIRN,
        medium: LOGGED,
        level: "sync",
        what,
        unit,
    }
}

/// Measures both.
pub(super) fn measure(
    options: &DurableOptions,
    folder: &Path,
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    let path = folder.join("opened");
    let recoveries = options.rounds.min(MOST_RECOVERIES);
    let steps = options.rounds + 2 * recoveries;
    progress.begin("opening", Some(steps as u64));
    let pool = pools::create(&path, Level::Written, None)?;
    let mut growing = Growing::new(pool);
    growing.insert(options.entries, BATCH, 1)?;
    growing.pool.close()?;
    for _ in 0..options.rounds {
        let start = Instant::now();
        let pool = pools::open(&path, Level::Sync)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        pool.close()?;
        rows.add(row(CLOSED, "ms"), ms, "");
        progress.advance(1);
    }
    for _ in 0..recoveries {
        for (what, is_cold) in [(RECOVERED, false), (RECOVERED_COLD, true)] {
            let path = folder.join("killed");
            let seconds = recovered(options, &path, is_cold)?;
            let per_gib = seconds * GIB / options.log_bytes as f64;
            rows.add(row(what, "s per GiB"), per_gib, "");
            progress.advance(1);
        }
    }
    progress.end();
    Ok(())
}

/// Has a child fill a log, kills it, and opens the pool. Returns the seconds of opening.
fn recovered(options: &DurableOptions, path: &Path, is_cold: bool) -> Result<f64, BenchError> {
    let mut command = Command::new(&options.program);
    command.args(["bench", "--reopen"]).arg(path);
    command.args(["--fill-log", &options.log_bytes.to_string()]);
    command.args(["--fill", &options.entries.to_string()]);
    let (victim, said) = Victim::start(&mut command)?;
    if said.trim_end() != FULL {
        return Err(BenchError::Child { said });
    }
    drop(victim);
    let files = [path.to_path_buf(), pools::log(path)];
    for file in &files {
        settle(file, is_cold)?;
    }
    let start = Instant::now();
    let pool = pools::open(path, Level::Sync)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(pool);
    for file in files.iter().filter(|file| file.exists()) {
        let removed = std::fs::remove_file(file);
        removed.map_err(BenchError::io(format!("removing {}", file.display())))?;
    }
    Ok(seconds)
}

/// Writes a file out, so that writing does not disturb the timing, and lets the page cache forget it.
fn settle(path: &Path, is_cold: bool) -> Result<(), BenchError> {
    let failed = || BenchError::io(format!("writing out {}", path.display()));
    let file = std::fs::File::open(path).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    if is_cold {
        let told = fadvise(&file, 0, None, Advice::DontNeed);
        told.map_err(|e| failed()(e.into()))?;
    }
    Ok(())
}

/// The child: makes the pool, changes it until its log is full, and waits to be killed.
///
/// Errors: the pool cannot be made or written.
pub fn fill(plan: &FillPlan) -> Result<(), BenchError> {
    let pool: Pool<Durable> = pools::create(&plan.pool, Level::Written, Some(plan.log_bytes))?;
    let (mut writer, mut numbers) = (Writer::new(&pool)?, 0..);
    let log = pools::log(&plan.pool);
    let is_full = || std::fs::metadata(&log).is_ok_and(|file| file.len() > plan.log_bytes);
    while !is_full() {
        let some = numbers.by_ref().take(BATCH as usize);
        let entry = |number: u64| {
            let (turn, number) = (number / plan.entries, number % plan.entries);
            (key(number), value(number, turn))
        };
        let some: Vec<(u64, Value)> = some.map(entry).collect();
        writer.commit(&some)?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{FULL}")
        .and_then(|()| out.flush())
        .map_err(BenchError::io("telling the parent"))?;
    std::thread::sleep(LONGEST_LIFE);
    Ok(())
}
