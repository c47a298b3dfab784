//! What fits into a full pool after half of it was freed and it was collected: objects of another length, over those
//! that a fresh pool of the freed size holds.

use firn_heap::collector::{CollectOptions, Collected};
use firn_heap::{Bytes, Error, Pool, PoolKind, Refs, View};
use firn_mapped::Mapped;
use firn_tools::Progress;
use firn_workloads::{SEED, shuffled};

use super::super::clock::{Moment, Times};
use super::super::figure::{Compaction, Figure, Subject};
use super::super::{BenchError, Options, pools, reclaim};
use super::{MOST_PASSES, SYSTEM};

/// Size limit of a pool, and the part of it that is not for objects: the pool's own chunks, and the reserve.
const BYTES: u64 = 128 << 20;
const OWN_BYTES: u64 = 16 << 20;
/// Objects that one table names. The table is below 1 MiB, so it moves.
const IN_TABLE: usize = 1 << 13;
/// Bytes that an object's place in its table takes.
const PLACE_BYTES: u64 = 8;
const HOW: &str = "a pool of 128 MiB filled to the limit, half of its objects freed at random, collected with the \
                   stock options; then objects of another length until it is full. An operation is an object moved";

/// Bytes of the objects that fill the pool, and of those that follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) kind: PoolKind,
    pub(super) bytes: usize,
    pub(super) other_bytes: usize,
}

impl Case {
    /// The name of its figure.
    pub(super) fn name(&self) -> String {
        let kind = match self.kind {
            PoolKind::Traced => "traced",
            PoolKind::Explicit => "explicit",
        };
        format!("full_{kind}_{}_to_{}", self.bytes, self.other_bytes)
    }
}

/// Every case.
pub(super) fn cases() -> impl Iterator<Item = Case> {
    let lengths = [
        (100, 400),
        (1000, 3100),
        (4000, 12_100),
        (40_000, 262_000),
        (200_000, 40_000),
    ];
    let kinds = [PoolKind::Traced, PoolKind::Explicit].into_iter();
    kinds.flat_map(move |kind| {
        lengths.into_iter().map(move |(bytes, other_bytes)| Case {
            kind,
            bytes,
            other_bytes,
        })
    })
}

/// Measures the selected cases.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wanted = |case: &Case| options.wants(super::SECTION, &case.name());
    let cases: Vec<Case> = cases().filter(wanted).collect();
    let passes = options.blocks.min(MOST_PASSES);
    progress.begin("filling pools", Some((passes * cases.len()) as u64));
    let mut figures = Vec::new();
    for case in &cases {
        let mut taken = Vec::new();
        for _ in 0..passes {
            taken.push(pass(options, case)?);
            progress.advance(1);
        }
        figures.push(figure(case, &taken));
    }
    progress.end();
    Ok(figures)
}

fn table(number: usize) -> String {
    format!("table {number}")
}

fn pool(options: &Options, case: &Case) -> Result<Pool<Mapped>, BenchError> {
    pools::limited(&options.memory_dir, options.domain, case.kind, BYTES)
}

/// Makes objects from number `first` on until there is no more room. Returns how many.
fn fill(pool: &Pool<Mapped>, first: usize, bytes: usize) -> Result<usize, Error> {
    let mut session = pool.session()?;
    let value = vec![1; bytes];
    for index in first.. {
        let (name, place) = (table(index / IN_TABLE), index % IN_TABLE);
        let made = session.transaction(|tx| {
            if place == 0 || index == first && tx.find_root::<Refs<Bytes>>(&name)?.is_none() {
                tx.set_root(&name, tx.alloc_refs::<Bytes>(IN_TABLE)?)?;
            }
            let new = tx.alloc_bytes(&value)?;
            tx.root::<Refs<Bytes>>(&name)?.set(place, Some(new))
        });
        match made {
            Ok(()) => {}
            Err(Error::PoolFull { .. }) => return Ok(index - first),
            Err(error) => return Err(error),
        }
    }
    unreachable!("a pool with a limit is full some time")
}

fn free(pool: &Pool<Mapped>, index: usize) -> Result<(), Error> {
    let mut session = pool.session()?;
    session.transaction(|tx| {
        let table = tx.root::<Refs<Bytes>>(&table(index / IN_TABLE))?;
        let old = table.get(index % IN_TABLE);
        table.set(index % IN_TABLE, None)?;
        match old {
            Some(old) => reclaim::free(tx, old),
            None => Ok(()),
        }
    })
}

fn pass(options: &Options, case: &Case) -> Result<(Times, Compaction), BenchError> {
    let others = fill(&pool(options, case)?, 0, case.other_bytes)?;
    let pool = pool(options, case)?;
    let made = fill(&pool, 0, case.bytes)?;
    let freed = shuffled(made as u64, SEED).0;
    let freed = &freed[..made / 2];
    freed
        .iter()
        .try_for_each(|&index| free(&pool, index as usize))?;
    let start = Moment::now();
    let collecting = CollectOptions::default();
    let collected: Collected = pool.collect(&collecting)?;
    let moved = collected.planned.max(1) as f64;
    let times = start.elapsed() / moved;
    let compaction = Compaction::of(&pool, collecting.scheme, &collected)?;
    let again = fill(&pool, made, case.other_bytes)?;
    // The freed objects keep their places in the tables.
    let places = (freed.len() as u64 * PLACE_BYTES) as f64 / (BYTES - OWN_BYTES) as f64;
    let share = freed.len() as f64 / made as f64 - places;
    let compaction = Compaction {
        room: Some(again as f64 / (others as f64 * share)),
        ns_cpu_per_moved: Some(times.cpu_ns),
        ..compaction
    };
    Ok((times, compaction))
}

fn figure(case: &Case, passes: &[(Times, Compaction)]) -> Figure {
    let subject = Subject {
        system: SYSTEM,
        structure: "refs",
        operation: &case.name(),
        n: BYTES / case.bytes as u64,
        threads: 1,
        how: HOW,
    };
    let times: Vec<Times> = passes.iter().map(|(times, _)| *times).collect();
    Figure {
        compaction: Compaction::median(passes.iter().map(|(_, compaction)| compaction)),
        ..Figure::of(subject, &times)
    }
}
