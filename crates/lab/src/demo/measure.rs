//! The cost of the collector: equal work on two copies of a pool, on one of them with a collector.
//!
//! Each copy is always treated in the same way, so a compacted pool never stands in for one that was not compacted.
//! Blocks of work alternate; a block is one flood and one ebb of the entries, with equal operations on both copies.

use std::path::Path;
use std::time::{Duration, Instant};

use firn_heap::collector::CollectorOptions;
use firn_media::Level;
use firn_tools::map::occupancy;
use firn_tools::{Progress, Standing, Store, StoreOptions, ToolError};
use serde::Serialize;

use super::{LATENESS, unhurried};
use crate::writers::{Bout, Ledger, READS, Tide, Until, work};
use crate::{CollectorWork, LabError, Spread};

/// Pairs of blocks at most.
const MOST_PAIRS: usize = 5;

/// Two threads that read and write, without a collector and with one.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Blocks of work on each copy, alternating.
    pub blocks: usize,
    /// Reads before each transaction.
    pub reads_a_transaction: usize,
    /// When a transaction returns: `group` in memory, and it is durable so much later, or when the pool is closed.
    pub level: String,
    /// Processors of the machine, for all threads.
    pub processors: usize,
    /// Ratio on 2 MiB pages at which the collector begins.
    pub trigger: f64,
    /// Ratio at which it ends.
    pub target: f64,
    /// The copy without a collector.
    pub without: Side,
    /// The copy with one.
    pub with: Side,
    /// The collector's work meanwhile.
    pub collector: CollectorWork,
}

/// Work on one copy.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Transactions of both threads.
    pub transactions: u64,
    /// Transactions in a second, block by block.
    pub per_second: Spread,
    /// The longest time of a transaction and the reads before it.
    pub longest_transaction_ms: f64,
    /// Entries that were compared at the end.
    pub compared: u64,
    /// Entries that are not as they were written.
    pub lost: Vec<String>,
    /// The pool at the end.
    pub standing: Standing,
}

/// A copy of the pool, and its expected content.
struct Lane<'a> {
    path: &'a Path,
    ledger: &'a mut Ledger,
    collector: Option<CollectorOptions>,
    bouts: Vec<Bout>,
    work: CollectorWork,
}

/// Lets the writers of the ledger work on the closed pool in `path` with a collector, and on a copy of it in `twin`
/// without one, for about `time`, at least a block each. The copy stays.
///
/// Errors: the copy cannot be made, a pool cannot be written, a writer reads an entry that was not written.
pub(super) fn compare(
    path: &Path,
    twin: &Path,
    ledger: &mut Ledger,
    time: Duration,
    progress: &mut dyn Progress,
) -> Result<Comparison, LabError> {
    std::fs::copy(path, twin).map_err(ToolError::file(twin, "copying the pool"))?;
    ledger.set_tide(Tide::Flood);
    let options = CollectorOptions::default();
    let mut twins_ledger = ledger.clone();
    let mut lanes = [
        Lane::new(twin, &mut twins_ledger, None),
        Lane::new(path, ledger, Some(options)),
    ];
    progress.begin("measuring", Some(time.as_millis() as u64));
    let worked = alternate(&mut lanes, time, progress);
    progress.end();
    worked?;
    let [without, with] = &mut lanes;
    Ok(Comparison {
        blocks: with.bouts.len(),
        reads_a_transaction: READS,
        level: format!(
            "{} ({} ms)",
            Level::Group(LATENESS).name(),
            LATENESS.as_millis()
        ),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        trigger: options.trigger,
        target: options.collect.target,
        without: without.finish()?,
        with: with.finish()?,
        collector: with.work,
    })
}

/// Works on both in turn; which is first alternates.
fn alternate(
    lanes: &mut [Lane<'_>; 2],
    time: Duration,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let start = Instant::now();
    let mut longest_pair = Duration::ZERO;
    for pair in 0..MOST_PAIRS {
        let begin = Instant::now();
        if pair > 0 && start.elapsed() + longest_pair > time {
            break;
        }
        for turn in 0..lanes.len() {
            let begin = Instant::now();
            lanes[(pair + turn) % 2].work()?;
            progress.advance(begin.elapsed().as_millis() as u64);
        }
        longest_pair = longest_pair.max(begin.elapsed());
    }
    Ok(())
}

impl<'a> Lane<'a> {
    fn new(path: &'a Path, ledger: &'a mut Ledger, collector: Option<CollectorOptions>) -> Self {
        Self {
            path,
            ledger,
            collector,
            bouts: Vec::new(),
            work: CollectorWork::default(),
        }
    }

    /// One block.
    fn work(&mut self) -> Result<(), LabError> {
        let error = ToolError::pool(self.path);
        let store = Store::open_untraced(self.path, &unhurried())?;
        let pool = store.pool();
        let collector = self.collector.as_ref();
        let collector = collector.map(|options| pool.start_collector(options));
        let collector = collector.transpose().map_err(&error)?;
        self.bouts
            .push(work(pool, self.path, self.ledger, Until::LowTide)?);
        if let Some(collector) = collector {
            let did = collector.stop().map_err(&error)?;
            self.work.add(&did, &pool.collector_stops());
        }
        Ok(store.close()?)
    }

    /// Compares the pool with what was written.
    fn finish(&mut self) -> Result<Side, LabError> {
        let mut store = Store::open_untraced(self.path, &StoreOptions::default())?;
        let verified = self.ledger.verify_settled(&mut store)?;
        store.close()?;
        let rate = |bout: &Bout| bout.operations as f64 / bout.time.as_secs_f64();
        let longest = self.bouts.iter().map(|bout| bout.longest).max();
        Ok(Side {
            transactions: self.bouts.iter().map(|bout| bout.operations).sum(),
            per_second: Spread::of(self.bouts.iter().map(rate).collect()),
            longest_transaction_ms: longest.unwrap_or_default().as_secs_f64() * 1e3,
            compared: verified.entries,
            lost: verified.lost,
            standing: Standing::of(&occupancy(self.path)?, self.path)?,
        })
    }
}
