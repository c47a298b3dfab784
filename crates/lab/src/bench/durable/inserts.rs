//! Durable insertions: one at a time beside a bare write, in batches, and by several threads.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use firn_heap::Pool;
use firn_media::{Level, Medium};
use firn_tools::Progress;
use rustix::fs::OFlags;

use super::super::BenchError;
use super::super::clock::{Moment, Times};
use super::super::figure::middle;
use super::super::rival::Rival;
use super::pools::{self, Durable, Writer};
use super::report::{DISK, FIRN, Key, Rows};
use super::workload::{Value, key, value};
use super::{BATCH, DATABASE, DurableOptions, LOGGED, THREADS};

/// The parts.
pub(super) const INSERT: &str = "durable_insert";
pub(super) const SHARED: &str = "durable_threads";

/// The work.
pub(super) const WRITE: &str = "write of 4 KiB";
pub(super) const COMMIT: &str = "insert, median of the block";
pub(super) const ONE: &str = "insert, mean of the block";
pub(super) const BATCHED: &str = "insert, 100 a transaction";
pub(super) const ALONE: &str = "insert, one thread";
pub(super) const TOGETHER: &str = "insert, 8 threads";

/// Blocks of the file that is written directly.
const BLOCKS: u64 = 1024;
const BLOCK_BYTES: usize = 4096;
/// Batches of a block, for each insertion of a block of single ones.
const SINGLES_PER_BATCH: u64 = 4;
const US: f64 = 1e3;

#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// A file whose blocks were all written once, so that a write of one changes no metadata.
struct Bare {
    file: File,
    next: u64,
}

impl Bare {
    fn make(path: &Path) -> Result<Self, BenchError> {
        let flags = (OFlags::DIRECT | OFlags::DSYNC).bits();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(flags.cast_signed())
            .open(path)
            .map_err(BenchError::io(format!("making {}", path.display())))?;
        let mut bare = Self { file, next: 0 };
        bare.writes(BLOCKS)?;
        Ok(bare)
    }

    /// The time of each of `count` writes.
    fn writes(&mut self, count: u64) -> Result<Vec<Duration>, BenchError> {
        let block = Block([3; BLOCK_BYTES]);
        let write = |_| {
            let at = self.next % BLOCKS * BLOCK_BYTES as u64;
            self.next += 1;
            let start = Instant::now();
            let written = self.file.write_all_at(&block.0, at);
            written.map_err(BenchError::io("writing past the page cache"))?;
            Ok(start.elapsed())
        };
        (0..count).map(write).collect()
    }
}

/// A pool that grows by entries whose numbers go up.
pub(super) struct Growing<M: Medium> {
    pub(super) pool: Pool<M>,
    next: u64,
}

impl<M: Medium> Growing<M> {
    pub(super) fn new(pool: Pool<M>) -> Self {
        Self { pool, next: 0 }
    }

    /// Inserts `count` entries with `threads` threads. Returns the time until the last thread is done, and the time of each
    /// commit.
    pub(super) fn insert(
        &mut self,
        count: u64,
        batch: u64,
        threads: u64,
    ) -> Result<(Duration, Vec<Duration>), BenchError> {
        let (first, pool, start) = (self.next, &self.pool, &Barrier::new(threads as usize));
        self.next += count;
        std::thread::scope(|scope| {
            let share = |thread| first + count * thread / threads;
            let threads: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        let writer = Writer::new(pool);
                        start.wait();
                        let (begin, numbers) = (Instant::now(), share(thread)..share(thread + 1));
                        let commits = inserted(writer?, numbers, batch)?;
                        Ok((begin..Instant::now(), commits))
                    })
                })
                .collect();
            let (mut times, mut all) = (Vec::new(), Vec::new());
            for thread in threads {
                let done: Result<_, BenchError> = thread.join().expect("a writer does not panic");
                let (time, commits) = done?;
                times.push(time);
                all.extend(commits);
            }
            Ok((from_first_to_last(&times), all))
        })
    }
}

impl<M: Medium> Growing<M> {
    /// The mean time of `count` insertions by this thread, one a transaction.
    pub(super) fn timed(&mut self, count: u64) -> Result<Times, BenchError> {
        let mut writer = Writer::new(&self.pool)?;
        let numbers = self.next..self.next + count;
        self.next = numbers.end;
        let start = Moment::now();
        for number in numbers {
            writer.commit(&[(key(number), value(number, 0))])?;
        }
        Ok(start.elapsed() / count as f64)
    }
}

fn inserted<M: Medium>(
    mut writer: Writer<M>,
    numbers: core::ops::Range<u64>,
    batch: u64,
) -> Result<Vec<Duration>, BenchError> {
    let mut commits = Vec::new();
    for first in numbers.clone().step_by(batch as usize) {
        let some = first..numbers.end.min(first + batch);
        let some: Vec<(u64, Value)> = some.map(|n| (key(n), value(n, 0))).collect();
        let start = Instant::now();
        writer.commit(&some)?;
        commits.push(start.elapsed());
    }
    Ok(commits)
}

fn median_us(times: &[Duration]) -> f64 {
    middle(times.iter().map(|time| time.as_nanos() as f64 / US))
}

fn each_us(time: Duration, count: u64) -> f64 {
    time.as_nanos() as f64 / US / count as f64
}

const fn row(part: &'static str, what: &'static str) -> Key<'static> {
    Key {
        part,
        system: FIRN,
        medium: LOGGED,
        level: "sync",
        what,
        unit: "us",
    }
}

/// Measures insertions of one thread, singly and in batches.
pub(super) fn singly(
    options: &DurableOptions,
    folder: &Path,
    rivals: &mut [Rival],
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    let mut bare = Bare::make(&folder.join("bare"))?;
    let pool = pools::create(&folder.join("singly"), Level::Sync, None)?;
    let mut firn = Growing::new(pool);
    let (n, batched) = (options.n, options.n / SINGLES_PER_BATCH * BATCH);
    progress.begin("durable inserts", Some(options.rounds as u64));
    for _ in 0..options.rounds {
        let write = Key {
            system: DISK,
            medium: "written file, O_DIRECT|O_DSYNC",
            ..row(INSERT, WRITE)
        };
        rows.add(write, median_us(&bare.writes(n)?), "");
        let (wall, commits) = firn.insert(n, 1, 1)?;
        rows.add(row(INSERT, COMMIT), median_us(&commits), "");
        rows.add(row(INSERT, ONE), each_us(wall, n), "");
        for rival in &mut *rivals {
            let times = rival.insert(n, 1, 1)?;
            let of = |what| database(rival, row(INSERT, what));
            let median = times.ns_median_per_commit / US;
            rows.add(of(COMMIT), median, &times.how);
            rows.add(of(ONE), times.ns_wall_per_op / US, &times.how);
        }
        let (wall, _) = firn.insert(batched, BATCH, 1)?;
        rows.add(row(INSERT, BATCHED), each_us(wall, batched), "");
        for rival in &mut *rivals {
            let times = rival.insert(batched, BATCH, 1)?;
            let of = database(rival, row(INSERT, BATCHED));
            rows.add(of, times.ns_wall_per_op / US, &times.how);
        }
        progress.advance(1);
    }
    progress.end();
    Ok(())
}

/// Measures insertions of several threads into one map, in turns with those of one.
pub(super) fn shared(
    options: &DurableOptions,
    folder: &Path,
    rivals: &mut [Rival],
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    let pool: Pool<Durable> = pools::create(&folder.join("shared"), Level::Sync, None)?;
    let mut firn = Growing::new(pool);
    progress.begin("durable inserts of threads", Some(options.rounds as u64));
    for _ in 0..options.rounds {
        for (what, threads) in [(ALONE, 1), (TOGETHER, THREADS)] {
            let count = options.n * threads;
            let (wall, _) = firn.insert(count, 1, threads)?;
            rows.add(row(SHARED, what), each_us(wall, count), "");
        }
        for rival in &mut *rivals {
            for (what, threads) in [(ALONE, 1), (TOGETHER, THREADS)] {
                // As many in all: some take no advantage of several threads.
                let times = rival.insert(options.n, 1, threads)?;
                let of = database(rival, row(SHARED, what));
                rows.add(of, times.ns_wall_per_op / US, &times.how);
            }
        }
        progress.advance(1);
    }
    progress.end();
    Ok(())
}

/// A rival's row.
pub(super) fn database<'a>(rival: &'a Rival, key: Key<'_>) -> Key<'a> {
    Key {
        system: &rival.name,
        medium: DATABASE,
        part: key.part,
        level: key.level,
        what: key.what,
        unit: key.unit,
    }
}

/// The time from the first thread's start to the last thread's end, as the threads measured it. The thread that waits for
/// them may be scheduled late.
fn from_first_to_last(times: &[Range<Instant>]) -> Duration {
    let begin = times.iter().map(|time| time.start).min();
    let end = times.iter().map(|time| time.end).max();
    begin
        .zip(end)
        .map_or(Duration::ZERO, |(begin, end)| end - begin)
}
