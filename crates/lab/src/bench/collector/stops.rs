//! How long the program is stopped: a collection beside a thread that scans the whole map over and over, and one with
//! long transactions.

use std::sync::atomic::{AtomicBool, Ordering};

use firn_heap::collector::CollectOptions;
use firn_heap::{Error, Handle, Pool, Stored, View};
use firn_mapped::{HugePages, Mapped};
use firn_structures::map::Scan;
use firn_tools::Progress;
use firn_workloads::{MAP, Population, SEED, Shape, Sizes, shuffled};

use super::super::clock::Times;
use super::super::figure::{Compaction, Figure, Subject};
use super::super::{BenchError, Options, pools};
use super::density::TARGET;
use super::{MOST_PASSES, SYSTEM, beside};

/// The name of its figure.
pub(super) const NAME: &str = "stops";
/// Words that one transaction changes.
const STORES: usize = 10_000;
const HOW: &str = "target 1.05 after four of five objects were deleted; beside a thread that scans \
                   the map and one with transactions of 10000 stores; an operation is a stop, \
                   from the request on, withdrawn ones included, the longest of each collection";

/// Words that are changed together.
#[derive(Stored)]
#[repr(C)]
struct Words {
    words: [u64; STORES],
}

/// Measures stops, if they were selected.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Option<Figure>, BenchError> {
    if !options.wants(super::SECTION, NAME) {
        return Ok(None);
    }
    let passes = options.blocks.min(MOST_PASSES);
    let (mut times, mut compactions) = (Vec::new(), Vec::new());
    progress.begin("stops of the collector", Some(passes as u64));
    for _ in 0..passes {
        let compaction = pass(options)?;
        times.push(Times {
            cpu_ns: compaction.longest_stop_cpu_ns.unwrap_or(f64::NAN),
            wall_ns: compaction.longest_stop_ns.unwrap_or(f64::NAN),
        });
        compactions.push(compaction);
        progress.advance(1);
    }
    progress.end();
    let subject = Subject {
        system: SYSTEM,
        structure: Shape::Map.name(),
        operation: NAME,
        n: options.entries,
        threads: 3,
        how: HOW,
    };
    Ok(Some(Figure {
        compaction: Compaction::median(compactions.iter()),
        ..Figure::of(subject, &times)
    }))
}

fn pass(options: &Options) -> Result<Compaction, BenchError> {
    let pool = pools::growing(&options.memory_dir, options.domain, HugePages::Ask)?;
    let n = options.entries;
    let mut population = Population::filled(&pool, Shape::Map, Sizes::Fixed, n)?;
    population.remove(&shuffled(n, SEED).0)?;
    let words = population.session().transaction(|tx| {
        let words = [0; STORES];
        tx.alloc(Words { words }).map(|words| pool.handle(words))
    })?;
    let how = CollectOptions {
        target: TARGET,
        ..CollectOptions::default()
    };
    let scan = |stop: &AtomicBool| scan_until(&pool, stop);
    let store = |stop: &AtomicBool| store_until(&pool, &words, stop);
    let collected = beside([&scan, &store], || pool.collect(&how))?;
    Ok(Compaction::of(&pool, how.scheme, &collected)?)
}

fn scan_until(pool: &Pool<Mapped>, stop: &AtomicBool) -> Result<(), Error> {
    let mut session = pool.session()?;
    while !stop.load(Ordering::Relaxed) {
        let mut scan = Scan::of_root(MAP);
        while !stop.load(Ordering::Relaxed) && scan.next(&mut session)?.is_some() {}
    }
    Ok(())
}

fn store_until(
    pool: &Pool<Mapped>,
    words: &Handle<Words, Mapped>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut session = pool.session()?;
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        session.transaction(|tx| {
            let words = tx.deref(words).ok_or(Error::NotAllocated { at: 0 })?;
            (0..STORES).for_each(|i| words.store(Words::WORDS.at(i), turn));
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}
