//! What a log costs beside a pool in the domain `process`: insertions at `Level::Written`, gets and scans.

use std::path::Path;

use firn_media::{Level, Medium};
use firn_tools::Progress;

use super::super::BenchError;
use super::super::clock::{Moment, Times};
use super::inserts::Growing;
use super::pools::{self, Writer};
use super::report::{FIRN, Key, Rows};
use super::workload::{VALUE_BYTES, key};
use super::{BATCH, DurableOptions, LOGGED, MAPPED};

/// The parts.
pub(super) const LEVELS: &str = "durable_levels";
pub(super) const READS: &str = "durable_reads";

/// The work.
pub(super) const INSERT: &str = "insert, CPU time";
pub(super) const INSERT_WALL: &str = "insert, wall time";
pub(super) const GET: &str = "get, CPU time";
pub(super) const SCAN: &str = "scan, CPU time an entry";

/// Insertions in memory of a block, for each durable one.
const WRITTEN_PER_SYNC: u64 = 10;
/// Gets of a block.
const GETS: u64 = 100_000;
const US: f64 = 1e3;

/// The key of a row of one of the two media.
fn row(
    part: &'static str,
    is_logged: bool,
    what: &'static str,
    unit: &'static str,
) -> Key<'static> {
    let level = match (is_logged, part) {
        (false, _) => "process",
        (true, _) => Level::Written.name(),
    };
    Key {
        part,
        system: FIRN,
        medium: if is_logged { LOGGED } else { MAPPED },
        level,
        what,
        unit,
    }
}

/// Measures insertions one at a time.
pub(super) fn levels(
    options: &DurableOptions,
    folder: &Path,
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    let mut process = Growing::new(pools::mapped(&folder.join("process"))?);
    let written = pools::create(&folder.join("written"), Level::Written, None)?;
    let mut written = Growing::new(written);
    progress.begin("levels", Some(options.rounds as u64));
    for _ in 0..options.rounds {
        let n = options.n * WRITTEN_PER_SYNC;
        for (is_logged, times) in [(false, process.timed(n)?), (true, written.timed(n)?)] {
            let of = |what| row(LEVELS, is_logged, what, "us");
            rows.add(of(INSERT), times.cpu_ns / US, "");
            rows.add(of(INSERT_WALL), times.wall_ns / US, "");
        }
        progress.advance(1);
    }
    progress.end();
    Ok(())
}

/// Measures gets in random order and scans of equal maps.
pub(super) fn reads(
    options: &DurableOptions,
    folder: &Path,
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    let mut process = Growing::new(pools::mapped(&folder.join("read"))?);
    let logged = pools::create(&folder.join("read-logged"), Level::Written, None)?;
    let mut logged = Growing::new(logged);
    let entries = options.entries;
    progress.begin("reads", Some(options.rounds as u64 + 1));
    process.insert(entries, BATCH, 1)?;
    logged.insert(entries, BATCH, 1)?;
    // Whatever is still on its way to the disk would run beside the reads.
    process.pool.sync()?;
    logged.pool.sync()?;
    progress.advance(1);
    let (mut process, mut logged) = (Writer::new(&process.pool)?, Writer::new(&logged.pool)?);
    for round in 0..options.rounds as u64 {
        // The one that is second finds warmer caches: they take turns.
        let logged_first = round % 2 == 1;
        for is_logged in [logged_first, !logged_first] {
            let (get, scan) = match is_logged {
                true => read(&mut logged, entries, round)?,
                false => read(&mut process, entries, round)?,
            };
            rows.add(row(READS, is_logged, GET, "ns"), get.cpu_ns, "");
            rows.add(row(READS, is_logged, SCAN, "ns"), scan.cpu_ns, "");
        }
        progress.advance(1);
    }
    progress.end();
    Ok(())
}

/// The times of a get and of a scan's step.
fn read<M: Medium>(
    writer: &mut Writer<M>,
    entries: u64,
    seed: u64,
) -> Result<(Times, Times), BenchError> {
    let (mut rng, mut copy) = (fastrand::Rng::with_seed(seed), Vec::new());
    let keys: Vec<u64> = (0..GETS).map(|_| key(rng.u64(..entries))).collect();
    let start = Moment::now();
    for key in keys {
        let found = writer.get(key, &mut copy)?;
        assert!(found && copy.len() == VALUE_BYTES, "every key was inserted");
    }
    let get = start.elapsed() / GETS as f64;
    let start = Moment::now();
    let found = writer.scan(&mut copy)?;
    let scan = start.elapsed() / entries as f64;
    assert_eq!(found, entries, "every entry is found");
    Ok((get, scan))
}
