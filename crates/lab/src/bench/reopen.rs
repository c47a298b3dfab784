//! Reopening after kill -9, to the first committed insert.
//!
//! A child fills a map in a pool file and continues with transactions until it is killed in the middle of them. Then
//! one child after the other reopens the pool, reports how long that took, and is killed the same way. Pools of
//! different sizes are reopened in turns. The page cache is warm.
//!
//! In the other [`Kind`] the first child also opens a cycle of the collector and moves half of its objects, and every
//! reopening is of a copy of the pool it left: recovery has all of its work to do.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use firn_heap::collector::CollectOptions;
use firn_heap::{Error, Pool, PoolOptions, Session};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::Map;
use firn_tools::Progress;
use serde::{Deserialize, Serialize};

use super::clock::{Moment, Times};
use super::figure::{Compaction, Figure, Subject};
use super::pools::LAYOUT;
use super::{BenchError, Options};

/// The name of this part of the bench, and of the subject of its figures.
pub(super) const SECTION: &str = "reopen";
const MAP: &str = "map";
const VALUE: [u8; 64] = [7; 64];
/// Entries inserted by one transaction while the map is filled.
const BATCH: u64 = 100;
/// Least number of reopenings of a pool, however few blocks were asked for.
const FEWEST: usize = 5;
/// How long a child goes on before it is killed.
const LIFE: Duration = Duration::from_millis(60);
/// How long a child goes on if it is not killed.
const LONGEST_LIFE: Duration = Duration::from_secs(60);
/// One in this many entries is deleted before a cycle is opened. Of such sparse pages every second one can be freed, so
/// the plan has its maximum size, whatever the pool's size.
const DELETED_OF: u64 = 2;

/// The work in the middle of which a pool is killed.
pub(super) struct Kind {
    /// The subject of its figures, and the part of the bench that they belong to.
    pub(super) structure: &'static str,
    section: &'static str,
    /// The name of its figures, followed by the number of objects.
    pub(super) operation: &'static str,
    how: &'static str,
    compacting: bool,
}

/// In the middle of transactions.
pub(super) const PLAIN: Kind = Kind {
    structure: SECTION,
    section: SECTION,
    operation: SECTION,
    how: "opening the file, recovery, a session, the first insert committed; by a new process, after \
          the last was killed in the middle of transactions; page cache warm",
    compacting: false,
};
/// In the middle of a compaction, too.
pub(super) const COMPACTING: Kind = Kind {
    structure: "reopen_compacting",
    section: super::collector::SECTION,
    operation: "reopen_compacting",
    how: "as for reopen, with a cycle of the collector open, half of whose objects (`moved`) were \
          moved; every second entry had been deleted before; each time of a copy of the pool as the kill left it",
    compacting: true,
};

/// Instructions for a child.
#[derive(Clone, Debug)]
pub struct ReopenPlan {
    /// The pool's file.
    pub pool: PathBuf,
    /// Makes the pool with this many entries, instead of reopening it.
    pub fill: Option<u64>,
    /// A cycle of the collector is opened after the pool was filled, and must be open when it is reopened.
    pub compacting: bool,
}

/// A child's report when it has begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Said {
    /// The time of its beginning.
    cpu_ns: f64,
    wall_ns: f64,
    /// Objects of the cycle that it has opened.
    planned: Option<u64>,
}

impl Said {
    fn times(self) -> Times {
        Times {
            cpu_ns: self.cpu_ns,
            wall_ns: self.wall_ns,
        }
    }
}

/// A folder that is removed with its content.
pub(super) struct Folder(pub(super) PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // If it cannot be removed now, the user has to remove it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that does not outlive this value.
pub(super) struct Victim(Child);

impl Victim {
    /// Starts a child, and waits for the first line that it prints.
    ///
    /// Errors: it cannot be started, or its output cannot be read.
    pub(super) fn start(command: &mut Command) -> Result<(Self, String), BenchError> {
        let starting = format!("starting {}", Path::new(command.get_program()).display());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut victim = Self(child.map_err(BenchError::io(starting))?);
        let mut said = String::new();
        if let Some(pipe) = victim.0.stdout.take() {
            let read = BufReader::new(pipe).read_line(&mut said);
            read.map_err(BenchError::io("reading what the child says"))?;
        }
        Ok((victim, said))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Fails only for a child that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures reopening of this kind, if it was selected.
pub(super) fn measure(
    options: &Options,
    kind: &Kind,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    if !options.wants(kind.section, kind.operation) {
        return Ok(Vec::new());
    }
    let name = format!("firn-bench-reopen-{}", std::process::id());
    let folder = Folder(options.disk_dir.join(name));
    let made = std::fs::create_dir_all(&folder.0);
    made.map_err(BenchError::io(format!("making {}", folder.0.display())))?;
    let pool = |objects: &u64| folder.0.join(format!("{objects}.pool"));
    let sizes = &options.objects;
    progress.begin("filling pools", Some(sizes.len() as u64));
    let mut planned = Vec::new();
    for objects in sizes {
        planned.push(live_and_die(options, kind, &pool(objects), Some(*objects))?.planned);
        write_out(&pool(objects))?;
        progress.advance(1);
    }
    progress.end();
    let times = options.blocks.max(FEWEST);
    let mut blocks: Vec<Vec<Times>> = vec![Vec::new(); sizes.len()];
    progress.begin("reopening", Some((times * sizes.len()) as u64));
    for _ in 0..times {
        for (objects, blocks) in sizes.iter().zip(&mut blocks) {
            let mut reopened = pool(objects);
            if kind.compacting {
                let left = reopened;
                reopened = folder.0.join("reopened.pool");
                let copied = std::fs::copy(&left, &reopened);
                copied.map_err(BenchError::io("copying a pool"))?;
                write_out(&reopened)?;
            }
            blocks.push(live_and_die(options, kind, &reopened, None)?.times());
            progress.advance(1);
        }
    }
    progress.end();
    let measured = sizes.iter().zip(&blocks).zip(&planned);
    let figures = measured.map(|((&n, blocks), &planned)| figure(kind, n, blocks, planned));
    Ok(figures.collect())
}

/// How long pools of `n` objects took to reopen, with `planned` objects planned to move.
fn figure(kind: &Kind, n: u64, blocks: &[Times], planned: Option<u64>) -> Figure {
    let subject = Subject {
        system: "firn",
        structure: kind.structure,
        operation: &format!("{} {n}", kind.operation),
        n,
        threads: 1,
        how: kind.how,
    };
    Figure {
        compaction: Compaction {
            moved: planned,
            ..Compaction::default()
        },
        ..Figure::of(subject, blocks)
    }
}

/// Writes the pool out, so that writing does not disturb the timing.
fn write_out(pool: &Path) -> Result<(), BenchError> {
    std::fs::File::open(pool)
        .and_then(|file| file.sync_all())
        .map_err(BenchError::io("writing out a pool"))
}

/// Starts a child, waits for its report, and kills it a little later.
fn live_and_die(
    options: &Options,
    kind: &Kind,
    pool: &Path,
    fill: Option<u64>,
) -> Result<Said, BenchError> {
    let mut command = Command::new(&options.program);
    command.args(["bench", "--reopen"]).arg(pool);
    if let Some(fill) = fill {
        command.args(["--fill", &fill.to_string()]);
    }
    if kind.compacting {
        command.arg("--compacting");
    }
    let (mut victim, said) = Victim::start(&mut command)?;
    let beginning: Said = serde_json::from_str(&said).map_err(|_| BenchError::Child {
        said: said.trim_end().to_owned(),
    })?;
    std::thread::sleep(LIFE);
    // The child must be killed; it must not have ended by itself.
    match victim.0.try_wait() {
        Ok(None) => Ok(beginning),
        _ => Err(BenchError::Child { said }),
    }
}

/// The child: fills or reopens the pool, prints the time, and writes until it is killed.
///
/// Errors: the pool cannot be made, opened or written.
pub fn reopen(plan: &ReopenPlan) -> Result<(), BenchError> {
    let start = Moment::now();
    let mut planned = None;
    let (pool, mut session) = match plan.fill {
        Some(objects) if plan.compacting => compacting(&plan.pool, objects, &mut planned)?,
        Some(objects) => filled(&plan.pool, objects)?,
        None => reopened(&plan.pool)?,
    };
    let Times { cpu_ns, wall_ns } = start.elapsed();
    if pool.has_open_cycle() != plan.compacting {
        return Err(BenchError::Cycle {
            open: pool.has_open_cycle(),
        });
    }
    let said = Said {
        cpu_ns,
        wall_ns,
        planned,
    };
    let said = serde_json::to_string(&said).map_err(io::Error::from);
    let mut out = io::stdout().lock();
    said.and_then(|said| writeln!(out, "{said}"))
        .and_then(|()| out.flush())
        .map_err(BenchError::io("telling the parent"))?;
    let begin = Instant::now();
    while begin.elapsed() < LONGEST_LIFE {
        insert(&mut session, fastrand::u64(..))?;
    }
    Ok(())
}

fn filled(path: &Path, objects: u64) -> Result<(Pool<Mapped>, Session<Mapped>), BenchError> {
    let options = MappedOptions::default().domain(Domain::Process);
    let medium = Mapped::create(path, 0, &options)?;
    let pool = Pool::create(medium, &PoolOptions::new(LAYOUT))?;
    let mut session = pool.session()?;
    session.transaction(|tx| Map::create(tx, MAP).map(|_| ()))?;
    for from in (0..objects).step_by(BATCH as usize) {
        session.transaction(|tx| {
            let mut map = Map::open(tx, MAP)?;
            (from..objects.min(from + BATCH))
                .try_for_each(|number| map.insert(&number.to_be_bytes(), &VALUE).map(|_| ()))
        })?;
    }
    Ok((pool, session))
}

/// A pool of about this many entries with an open cycle, half of whose objects were moved.
fn compacting(
    path: &Path,
    objects: u64,
    planned: &mut Option<u64>,
) -> Result<(Pool<Mapped>, Session<Mapped>), BenchError> {
    let all = objects / (DELETED_OF - 1) * DELETED_OF;
    let (pool, mut session) = filled(path, all)?;
    for from in (0..all).step_by((BATCH * DELETED_OF) as usize) {
        session.transaction(|tx| {
            let mut map = Map::open(tx, MAP)?;
            (from..all.min(from + BATCH * DELETED_OF))
                .step_by(DELETED_OF as usize)
                .try_for_each(|number| map.remove(&number.to_be_bytes()).map(|_| ()))
        })?;
    }
    let mut collection = pool.collection(&CollectOptions {
        target: 1.0,
        ..CollectOptions::default()
    })?;
    collection.begin()?;
    *planned = Some(collection.collected().planned);
    collection.compact(collection.collected().planned / 2)?;
    drop(collection);
    Ok((pool, session))
}

fn reopened(path: &Path) -> Result<(Pool<Mapped>, Session<Mapped>), BenchError> {
    let medium = Mapped::open(path, &MappedOptions::default())?;
    let pool = Pool::open(medium, &PoolOptions::new(LAYOUT))?;
    let mut session = pool.session()?;
    insert(&mut session, fastrand::u64(..))?;
    Ok((pool, session))
}

fn insert(session: &mut Session<Mapped>, number: u64) -> Result<(), Error> {
    let key = number.to_be_bytes();
    session.transaction(|tx| Map::open(tx, MAP)?.insert(&key, &VALUE).map(|_| ()))
}
