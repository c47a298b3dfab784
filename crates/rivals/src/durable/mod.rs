//! Databases whose commits are on the disk when they return: insertions, the bytes that they write, reopening.
//!
//! Each is configured for full durability as its own documentation says; the source stands beside the setting. Files
//! keep their names, because reopening is measured, too. The directory is removed when the rival ends; a rival that is
//! killed leaves it.

mod fjall;
mod lmdb;
mod locked;
mod redb;
mod sqlite;
mod sqlite_library;
mod workload;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

pub use self::fjall::Fjall;
pub use self::lmdb::DurableLmdb;
pub use self::redb::DurableRedb;
pub use self::sqlite::Sqlite;

use self::workload::{Digest, Value, Zipf, key, value};
use crate::arguments::RivalName;
use crate::failure::Failure;
use crate::protocol::{Inserted, Insertions, Reopened, Volume};

/// What the requests of this module are called.
pub const OPERATIONS: [&str; 3] = ["durable_insert", "durable_reopen", "durable_volume"];

/// Bytes that a database may come to have, where one has to be told.
const MOST_BYTES: usize = 16 << 30;

/// An entry to insert, or to replace.
pub type Entry = (u64, Value);

/// A database.
pub trait Store: Sized + Sync {
    /// Its name.
    const RIVAL: RivalName;
    /// How it is durable.
    const HOW: &'static str;
    /// One thread's access.
    type Writer: Writer;

    /// Its version.
    ///
    /// Errors: its library is not installed.
    fn version() -> Result<String, Failure>;

    /// Opens the database in `dir`, or makes it.
    fn open(dir: &Path) -> Result<Self, Failure>;

    /// Access for a thread.
    fn writer(&self) -> Result<Self::Writer, Failure>;

    /// Brings everything to where it stays, as the documentation says.
    fn settle(&self) -> Result<(), Failure>;
}

/// One thread's access to a database.
pub trait Writer: Send {
    /// Inserts or replaces entries in one commit, which is on the disk on return.
    fn commit(&mut self, entries: &[Entry]) -> Result<(), Failure>;

    /// Copies a value. Returns whether it is there.
    fn get(&mut self, key: u64, into: &mut Value) -> Result<bool, Failure>;
}

/// The database of a process, which exists from its first request on.
pub struct Durably<S> {
    dir: PathBuf,
    store: Option<S>,
    /// Entries, whose numbers begin at zero.
    entries: u64,
}

impl<S: Store> Durably<S> {
    /// Puts its files below `dir`.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.join(format!(
                "firn-rivals-{}-durable-{}",
                S::RIVAL.name(),
                std::process::id()
            )),
            store: None,
            entries: 0,
        }
    }

    fn opened(&mut self) -> Result<&S, Failure> {
        if self.store.is_none() {
            self.store = Some(opened(&self.dir)?);
        }
        Ok(self.store.as_ref().expect("it was just opened"))
    }

    /// Inserts entries that are not there.
    pub fn insert(&mut self, insertions: Insertions) -> Result<Inserted, Failure> {
        let Insertions {
            count,
            batch,
            threads,
        } = insertions;
        let first = self.entries;
        // Whatever becomes of them, their numbers are used.
        self.entries += count;
        let mut writers = Vec::new();
        let store = self.opened()?;
        for _ in 0..threads {
            writers.push(store.writer()?);
        }
        let (wall, mut commits) = at_once(writers, |thread| {
            let share = |thread| first + count * thread / threads;
            (share(thread)..share(thread + 1), batch)
        })?;
        commits.sort_unstable();
        Ok(Inserted {
            op: "durable_insert",
            count,
            batch,
            threads,
            ns_wall_per_op: wall.as_nanos() as f64 / count as f64,
            ns_median_per_commit: commits[commits.len() / 2].as_nanos() as f64,
            how: S::HOW,
        })
    }

    /// Closes the database, opens it again, and reads every entry.
    pub fn reopen(&mut self) -> Result<Reopened, Failure> {
        drop(self.store.take());
        let start = Instant::now();
        let entries = self.entries;
        let mut writer = self.opened()?.writer()?;
        let mut copy = [0; workload::VALUE_BYTES];
        let found = writer.get(key(0), &mut copy)?;
        let ns_wall = start.elapsed().as_nanos() as f64;
        if entries > 0 && !found {
            return Err(wrong("the first entry is gone".into()));
        }
        for number in 0..entries {
            let found = writer.get(key(number), &mut copy)?;
            if !found || copy != value(number, 0) {
                return Err(wrong(format!("entry {number} is gone, or another one")));
            }
        }
        Ok(Reopened {
            op: "durable_reopen",
            entries,
            ns_wall,
            how: S::HOW,
        })
    }

    /// Inserts `n` entries into a database of its own, makes as many skewed updates, and brings everything home. The
    /// database is closed afterwards, and its files stay: whoever counts what the device writes counts them once.
    pub fn volume(&self, n: u64, batch: u64, seed: u64) -> Result<Volume, Failure> {
        let dir = self.dir.with_extension("volume");
        let store: S = opened(&dir)?;
        let mut writer = store.writer()?;
        let mut digest = Digest::default();
        let mut put = |numbers: &mut dyn Iterator<Item = (u64, u64)>| -> Result<(), Failure> {
            loop {
                let some = numbers.take(batch as usize);
                let some: Vec<Entry> = some
                    .map(|(n, updates)| (key(n), value(n, updates)))
                    .collect();
                if some.is_empty() {
                    return Ok(());
                }
                some.iter().for_each(|(key, value)| digest.add(*key, value));
                writer.commit(&some)?;
            }
        };
        let start = Instant::now();
        put(&mut (0..n).map(|number| (number, 0)))?;
        let mut zipf = Zipf::new(n, seed);
        put(&mut (1..=n).map(|update| (zipf.next(), update)))?;
        let ns_wall = start.elapsed().as_nanos() as f64;
        drop(writer);
        store.settle()?;
        Ok(Volume {
            op: "durable_volume",
            n,
            batch,
            digest: digest.0,
            ns_wall_per_op: ns_wall / (2 * n) as f64,
            how: S::HOW,
        })
    }
}

impl<S> Drop for Durably<S> {
    fn drop(&mut self) {
        drop(self.store.take());
        for dir in [&self.dir, &self.dir.with_extension("volume")] {
            // Neither needs to exist, and there is nobody left to tell.
            let _ = fs::remove_dir_all(dir);
        }
    }
}

fn opened<S: Store>(dir: &Path) -> Result<S, Failure> {
    fs::create_dir_all(dir).map_err(|source| Failure::Io {
        doing: "making the database's directory",
        source,
    })?;
    S::open(dir)
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

/// Each writer inserts its numbers in a thread of its own. Returns the time until the last is done, and that of each
/// commit.
fn at_once<W: Writer>(
    writers: Vec<W>,
    share: impl Fn(u64) -> (Range<u64>, u64),
) -> Result<(Duration, Vec<Duration>), Failure> {
    let start = Barrier::new(writers.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(writers)
            .map(|(thread, writer)| {
                let ((numbers, batch), start) = (share(thread), &start);
                scope.spawn(move || {
                    start.wait();
                    let begin = Instant::now();
                    let commits = inserted(writer, numbers, batch);
                    (begin..Instant::now(), commits)
                })
            })
            .collect();
        let (mut times, mut all) = (Vec::new(), Vec::new());
        for thread in threads {
            let (time, commits): (Range<Instant>, _) =
                thread.join().expect("a writer does not panic");
            times.push(time);
            all.extend(commits?);
        }
        Ok((from_first_to_last(&times), all))
    })
}

fn inserted<W: Writer>(
    mut writer: W,
    numbers: Range<u64>,
    batch: u64,
) -> Result<Vec<Duration>, Failure> {
    let mut commits = Vec::new();
    for first in numbers.clone().step_by(batch as usize) {
        let some = first..numbers.end.min(first + batch);
        let some: Vec<Entry> = some.map(|number| (key(number), value(number, 0))).collect();
        let start = Instant::now();
        writer.commit(&some)?;
        commits.push(start.elapsed());
    }
    Ok(commits)
}

fn wrong(said: String) -> Failure {
    Failure::Wrong {
        structure: "the reopened database",
        said,
    }
}
