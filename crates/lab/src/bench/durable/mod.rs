//! The bench of durable pools, in turns with databases that are as durable, on a disk.
//!
//! ```text
//! pools      what makes a pool durable, and the map in it      workload   the entries
//! inserts    one at a time, in batches, by several threads
//! levels     what a log costs beside a pool without one       volume     bytes that the device writes
//! collecting  what a collection costs
//! opening    a closed pool, and one with a full log            place      file systems, and a device to count at
//! report, bars, page    rows, whether they are good enough, and tables of them
//! ```

mod bars;
mod collecting;
mod inserts;
mod levels;
mod opening;
mod page;
mod place;
mod pools;
mod report;
mod volume;
mod workload;

use std::path::PathBuf;

use firn_tools::Progress;

use super::BenchError;
use super::reopen::Folder;
use super::rival::{Rival, RivalSource};

pub use opening::{FillPlan, fill};
pub use page::{BAR_COLUMNS, ROW_COLUMNS, bar_cells, row_cells, write};
pub use report::{DurableBar, Report, Row};

/// The name that stands for all parts.
pub const SECTION: &str = "durable";
/// The parts.
pub const PARTS: [&str; 7] = [
    inserts::INSERT,
    inserts::SHARED,
    levels::LEVELS,
    levels::READS,
    collecting::COLLECT,
    volume::VOLUME,
    opening::OPEN,
];

/// What systems keep their data in.
const LOGGED: &str = "pool, domain logged";
const MAPPED: &str = "pool, domain process";
const DATABASE: &str = "database";

/// Insertions of a batch.
const BATCH: u64 = 100;
/// Threads that share a map.
const THREADS: u64 = 8;

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct DurableOptions {
    /// Rivals to measure.
    pub rivals: Vec<RivalSource>,
    /// Names of parts; everything if it contains [`SECTION`].
    pub only: Vec<String>,
    /// Rounds; their median counts.
    pub rounds: usize,
    /// Durable insertions of a block.
    pub n: u64,
    /// Entries of the maps that are read, opened, and counted.
    pub entries: u64,
    /// Bytes of the log that is left to be recovered.
    pub log_bytes: u64,
    /// The folder on the disk to be measured.
    pub dir: PathBuf,
    /// The program that runs a [`FillPlan`] when it is called with `bench --reopen`.
    pub program: PathBuf,
}

impl DurableOptions {
    fn wants(&self, part: &str) -> bool {
        self.only.iter().any(|only| only == SECTION || only == part)
    }
}

/// Whether a name is this bench's.
pub fn knows(name: &str) -> bool {
    name == SECTION || PARTS.contains(&name)
}

/// Measures what was selected.
///
/// Errors: a pool or a database failed, a rival is not installed, a selected name is unknown; bytes were to be counted and
/// cannot be.
pub fn run(options: &DurableOptions, progress: &mut dyn Progress) -> Result<Report, BenchError> {
    if let Some(name) = options.only.iter().find(|name| !knows(name)) {
        return Err(BenchError::Unknown {
            name: name.clone(),
            known: format!("{SECTION}, {}", PARTS.join(", ")),
        });
    }
    let name = format!("firn-bench-durable-{}", std::process::id());
    let folder = Folder(options.dir.join(name));
    let made = std::fs::create_dir_all(&folder.0);
    made.map_err(BenchError::io(format!("making {}", folder.0.display())))?;
    let folder = folder.0.as_path();
    // Rather at the beginning than after everything else was measured.
    if options.wants(volume::VOLUME) {
        volume::probe(options, folder)?;
    }
    let kind = super::media::file_system(folder);
    let mut rows = report::Rows::on(kind);
    if options.wants(inserts::INSERT) {
        let rivals = &mut started(options, folder)?;
        inserts::singly(options, folder, rivals, (&mut rows, progress))?;
    }
    if options.wants(inserts::SHARED) {
        let rivals = &mut started(options, folder)?;
        inserts::shared(options, folder, rivals, (&mut rows, progress))?;
    }
    if options.wants(levels::LEVELS) {
        levels::levels(options, folder, (&mut rows, progress))?;
    }
    if options.wants(levels::READS) {
        levels::reads(options, folder, (&mut rows, progress))?;
    }
    if options.wants(collecting::COLLECT) {
        collecting::measure(options, folder, (&mut rows, progress))?;
    }
    if options.wants(opening::OPEN) {
        opening::measure(options, folder, (&mut rows, progress))?;
    }
    if options.wants(volume::VOLUME) {
        rows = rows.moved_to("ext4 on a loop device");
        volume::measure(options, folder, (&mut rows, progress))?;
    }
    let bars = bars::bars(&rows.all);
    Ok(Report {
        rows: rows.all,
        bars,
    })
}

fn started(options: &DurableOptions, folder: &std::path::Path) -> Result<Vec<Rival>, BenchError> {
    let start = |source| Rival::start(source, folder);
    options.rivals.iter().map(start).collect()
}
