//! The main job: indexes a file tree in a durable pool, fragments the pool, and defragments it while threads work on
//! it. It is killed all the time, the power fails, and it loses nothing.
//!
//! ```text
//! place      where the files go                   measure  what the collector costs
//! page       the page that shows it               report   the report
//! figures    the report as tables
//! ```

mod figures;
mod measure;
mod page;
mod place;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use firn_heap::Occupancy;
use firn_heap::collector::scheme::PIGGYBACK;
use firn_mapped::MappedOptions;
use firn_media::{Domain, Level};
use firn_tools::map::occupancy;
use firn_tools::{
    DefragPlan, DefragReport, Entry, PageSize, Progress, Standing, Store, StoreOptions, ToolError,
    Tree, TreeLimits, check, defrag, stat,
};

use crate::LabError;
use crate::kill::{Collecting, KillPlan, KillReport, Power, run as kill_and_compare};
use crate::power_cut::Syncs;
use crate::writers::{Ledger, Until, Verified, work};

use page::PageFile;

pub use figures::{summary, tables};
pub use measure::{Comparison, Side};
pub use place::Place;
pub use report::DemoReport;

/// Paths that are indexed at most, and time to look for them at most.
const TREE_LIMITS: TreeLimits = TreeLimits {
    paths: 100_000,
    time: Duration::from_secs(4),
};
/// Bytes of values that make a small tree's pool large enough to show something, and the most bytes by which each value
/// is lengthened for it.
const CONTENT_BYTES: usize = 32 << 20;
const MOST_PAYLOAD_BYTES: usize = 4 << 10;
/// Shares of the time after which the tree is indexed, the collector measured, the last child killed.
const INDEXED: f64 = 0.27;
const MEASURED: f64 = 0.66;
const KILLED: f64 = 0.97;
/// One in this many kills comes while the tree is indexed, the others in the middle of compactions.
const INDEXING_SHARE: u64 = 3;
/// Pause of the children's collector between the steps of a cycle.
const PAUSE: Duration = Duration::from_millis(2);
/// How late the work that is not killed is durable.
const LATENESS: Duration = Duration::from_millis(10);
/// Target ratio of the last collection.
const TARGET: f64 = 1.05;

/// Instructions for the demo.
#[derive(Clone, Debug)]
pub struct DemoPlan {
    /// The tree to index.
    pub tree: PathBuf,
    /// The pool's file, kept afterwards; a temporary one if `None`.
    pub pool: Option<PathBuf>,
    /// The page's file, made or replaced.
    pub page: PathBuf,
    /// The program that writes when it is called as the demo's child.
    pub program: PathBuf,
    /// Approximate duration.
    pub time: Duration,
    /// Kills: some while the tree is indexed, most in the middle of compactions.
    pub kills: u64,
    /// Seed of the moments of the kills, and of the writers' operations.
    pub seed: u64,
}

/// Runs the demo. `tell` is called with each step as it begins.
///
/// Errors: the tree cannot be read or is empty, the page cannot be written; see [`crate::kill::run`]. Losses are part
/// of the report.
pub fn run(
    plan: &DemoPlan,
    progress: &mut dyn Progress,
    tell: &mut dyn FnMut(&str),
) -> Result<DemoReport, LabError> {
    let start = Instant::now();
    let page = PageFile::make(&plan.page)?;
    let place = Place::choose(plan.pool.as_deref())?;
    tell(&format!("walking the tree below {}", plan.tree.display()));
    let tree = Tree::walk(&plan.tree, TREE_LIMITS, progress)?;
    let entries = sorted(tree.entries);
    if entries.is_empty() {
        let path = plan.tree.clone();
        return Err(LabError::EmptyTree { path });
    }
    let (paths, payload_bytes) = (entries.len(), payload_bytes(entries.len()));
    let mut demo = Demo {
        plan,
        start,
        place,
        ledger: Ledger::new(entries, payload_bytes, plan.seed),
        progress,
        tell,
    };
    let indexing = demo.index(tree.cut)?;
    let (deleted, before) = demo.fragment()?;
    let fragmented = Standing::of(&before, demo.place.pool())?;
    let comparison = demo.measure()?;
    let compactions = demo.kill_compactions()?;
    let (defrag, verified) = demo.pack()?;
    let pool = demo.place.pool();
    let after = occupancy(pool)?;
    let checked = check(pool, &MappedOptions::default(), demo.progress)?;
    let mut report = DemoReport {
        ok: false,
        tree: plan.tree.display().to_string(),
        pool: plan.pool.as_ref().map(|p| p.display().to_string()),
        page: page.path().display().to_string(),
        medium: demo.place.medium(),
        paths: paths as u64,
        cut: tree.cut,
        payload_bytes,
        seconds: 0.0,
        indexing,
        deleted,
        fragmented,
        comparison,
        compactions,
        defrag,
        packed: Standing::of(&after, pool)?,
        compared: verified.entries,
        lost: verified.lost,
        check: checked,
        stat: stat(pool)?,
    };
    report.ok = report.all_lost().next().is_none() && report.all_findings().next().is_none();
    report.seconds = start.elapsed().as_secs_f64();
    page.write(&report, &before, &after)?;
    Ok(report)
}

/// In the order of the keys, each once.
fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_unstable();
    entries.dedup_by(|a, b| a.key == b.key);
    entries
}

/// Options for work that is durable a little later than it is done, and when the pool is closed: its speed is not the
/// disk's.
fn unhurried() -> StoreOptions {
    let mut options = StoreOptions::default();
    options.mapped.log.level = Level::Group(LATENESS);
    options
}

/// Most bytes by which values are lengthened; half of it on average.
fn payload_bytes(paths: usize) -> usize {
    (2 * CONTENT_BYTES / paths).min(MOST_PAYLOAD_BYTES)
}

/// A demo under way.
struct Demo<'a> {
    plan: &'a DemoPlan,
    start: Instant,
    place: Place,
    ledger: Ledger,
    progress: &'a mut dyn Progress,
    tell: &'a mut dyn FnMut(&str),
}

impl Demo<'_> {
    /// Time left until this share of the total is over.
    fn left(&self, share: f64) -> Duration {
        let until = self.plan.time.mul_f64(share);
        until.saturating_sub(self.start.elapsed())
    }

    fn open(&mut self) -> Result<Store, ToolError> {
        let options = StoreOptions::default();
        Store::open(self.place.pool(), &options, self.progress)
    }

    fn kill(
        &mut self,
        kills: u64,
        until: f64,
        collecting: Vec<Collecting>,
    ) -> Result<KillReport, LabError> {
        let plan = KillPlan {
            program: self.plan.program.clone(),
            pool: self.place.pool().to_path_buf(),
            entries_file: self.place.entries_file().to_path_buf(),
            kills,
            time: self.left(until),
            collecting,
            domain: Domain::Logged,
            power: Some(Power {
                journal: self.place.journal().to_path_buf(),
                syncs: Syncs::Honest,
            }),
        };
        let report = kill_and_compare(&plan, &mut self.ledger, self.progress)?;
        match report.is_sound() {
            true => Ok(report),
            // The rest of the demo would compare with what is not there.
            false => Err(LabError::Lost {
                report: Box::new(report),
            }),
        }
    }

    /// Indexes the tree while the indexing children are killed.
    fn index(&mut self, cut: bool) -> Result<KillReport, LabError> {
        let kills = self.plan.kills / INDEXING_SHARE;
        (self.tell)(&format!(
            "indexing {} paths{} in {}, two threads, {kills} kills, half of them with a power failure",
            self.ledger.entries().len(),
            if cut { " (the first of more)" } else { "" },
            self.place.pool().display(),
        ));
        let killed = self.kill(kills, INDEXED, Vec::new())?;
        // Children that died young may have left work to do. It is durable when the pool is closed, and nobody is told
        // before.
        let store = Store::open(self.place.pool(), &unhurried(), self.progress)?;
        self.progress.begin("indexing the rest", None);
        let pool = self.place.pool();
        let filled = work(store.pool(), pool, &mut self.ledger, Until::Filled);
        self.progress.end();
        filled?;
        store.close()?;
        Ok(killed)
    }

    /// Deletes most entries at random. Returns how many, and what the pages hold then.
    fn fragment(&mut self) -> Result<(u64, Occupancy), LabError> {
        (self.tell)("deleting most of them at random, which leaves holes everywhere");
        let deleted = self.thin()?;
        Ok((deleted, occupancy(self.place.pool())?))
    }

    fn thin(&mut self) -> Result<u64, LabError> {
        let mut store = self.open()?;
        let deleted = self.ledger.thin(&mut store, self.progress)?;
        store.close()?;
        Ok(deleted)
    }

    /// Measures the cost of the collector.
    fn measure(&mut self) -> Result<Comparison, LabError> {
        (self.tell)("two threads read and write, without the collector and with it, in turn");
        let (pool, twin, time) = (self.place.pool(), self.place.twin(), self.left(MEASURED));
        let compared = measure::compare(pool, twin, &mut self.ledger, time, self.progress);
        self.place.remove_twin();
        compared
    }

    /// Kills children in the middle of compactions, with every scheme in turn; the power fails at some of the kills.
    fn kill_compactions(&mut self) -> Result<KillReport, LabError> {
        let kills = self.plan.kills - self.plan.kills / INDEXING_SHARE;
        (self.tell)(&format!(
            "two threads and a collector that compacts all the time, {kills} kills and power failures"
        ));
        self.kill(kills, KILLED, Collecting::every_way(PAUSE))
    }

    /// Deletes most entries once more, collects for the last time, and compares.
    fn pack(&mut self) -> Result<(DefragReport, Verified), LabError> {
        (self.tell)(
            "deleting most again, packing what is left, giving free space back to the disk",
        );
        self.thin()?;
        let plan = DefragPlan {
            pool: self.place.pool().to_path_buf(),
            target: TARGET,
            pages: PageSize::Huge,
            scheme: &PIGGYBACK,
            map: None,
            mapped: MappedOptions::default(),
        };
        let defragmented = defrag(&plan, self.progress)?;
        let mut store = self.open()?;
        let verified = self.ledger.verify_settled(&mut store)?;
        store.close()?;
        Ok((defragmented, verified))
    }
}
