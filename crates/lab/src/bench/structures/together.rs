//! Two threads, each on a structure of its own in one pool, against one. To tell what the pool makes them share from
//! what the machine does, also against two in a pool each. The pools' pages are present: threads for which the kernel
//! supplies pages of one file wait for each other in it.

use std::sync::Barrier;

use firn_heap::{Error, Pool, PoolKind};
use firn_mapped::Mapped;
use firn_tools::Progress;
use firn_units::{CHUNK_BYTES, round_up};
use firn_workloads::{Population, Shape, Sizes, shuffled};

use super::super::clock::{Moment, Times};
use super::super::figure::{Figure, Subject};
use super::super::{BenchError, Options, pools};
use super::{MOST_PASSES, SECTION, SYSTEM};

/// Shapes; each thread has one.
const SHAPES: [Shape; 2] = [Shape::Chain, Shape::Avl];
const THREADS: u64 = 2;
/// A thread has one in this many of all entries.
const SHARE: u64 = 4;
/// Bytes of a pool besides its entries.
const LEAST_BYTES: u64 = 64 << 20;
/// Bytes of a pool for each of its entries, more than they take.
const ENTRY_BYTES: u64 = 512;
const HOW: &str = "each thread inserts into a structure of its own and deletes 80 % at random, one a \
                   transaction; wall time of the slower thread; pools whose pages are present";
/// Suffix of the name if each thread has a pool of its own.
const APART: &str = " apart";
/// Threads, and the pools that they share.
const CASES: [(u64, u64); 3] = [(1, 1), (THREADS, 1), (THREADS, THREADS)];

/// The name of a figure.
pub(super) fn name(shape: Shape) -> String {
    format!("together_{}", shape.name())
}

/// The name of the figure of threads in pools of their own.
pub(super) fn apart(shape: Shape) -> String {
    format!("{}{APART}", name(shape))
}

/// Names of all figures.
pub(super) fn names() -> impl Iterator<Item = String> {
    SHAPES.into_iter().map(name)
}

/// The shapes that are measured.
pub(super) fn shapes() -> impl Iterator<Item = Shape> {
    SHAPES.into_iter()
}

/// Measures one thread and two in turns.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wanted: Vec<Shape> = SHAPES
        .into_iter()
        .filter(|shape| options.structures.is_empty() && options.wants(SECTION, &name(*shape)))
        .collect();
    let passes = options.blocks.min(MOST_PASSES);
    let n = (options.entries / SHARE).max(5);
    let dir = &options.memory_dir;
    let bytes = round_up(n * THREADS * ENTRY_BYTES, CHUNK_BYTES) + LEAST_BYTES;
    let mut figures = Vec::new();
    progress.begin("two threads", Some((passes * wanted.len()) as u64));
    for shape in wanted {
        let mut blocks: [Vec<Times>; CASES.len()] = Default::default();
        for _ in 0..passes {
            for ((threads, pools), blocks) in CASES.into_iter().zip(&mut blocks) {
                let pools: Vec<Pool<Mapped>> = (0..pools)
                    .map(|_| pools::mapped(dir, bytes, options.domain, PoolKind::Traced))
                    .collect::<Result<_, _>>()?;
                blocks.push(run(&pools, shape, n, threads)?);
            }
            progress.advance(1);
        }
        for ((threads, pools), blocks) in CASES.into_iter().zip(&blocks) {
            let name = match pools {
                1 => name(shape),
                _ => apart(shape),
            };
            let subject = Subject {
                system: SYSTEM,
                structure: shape.name(),
                operation: &name,
                n,
                threads,
                how: HOW,
            };
            figures.push(Figure::of(subject, blocks));
        }
    }
    progress.end();
    Ok(figures)
}

/// CPU time of all threads and wall time of the slower one, over the operations of one thread: at half the throughput
/// it takes twice as long.
fn run(pools: &[Pool<Mapped>], shape: Shape, n: u64, threads: u64) -> Result<Times, BenchError> {
    let begin = &Barrier::new(threads as usize);
    let results: Vec<Result<Times, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .zip(pools.iter().cycle())
            .map(|(seed, pool)| scope.spawn(move || work(pool, shape, n, seed, begin)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    });
    let mut all = Times::default();
    for one in results {
        let one = one?;
        all.cpu_ns += one.cpu_ns;
        all.wall_ns = all.wall_ns.max(one.wall_ns);
    }
    Ok(all)
}

fn work(
    pool: &Pool<Mapped>,
    shape: Shape,
    n: u64,
    seed: u64,
    begin: &Barrier,
) -> Result<Times, Error> {
    let population = Population::new(pool, shape, Sizes::Fixed, n);
    // A thread that failed still waits at the barrier, or the other would wait for ever.
    begin.wait();
    let mut population = population?;
    population.take_one_a_transaction();
    let all: Vec<u32> = (0..n as u32).collect();
    let deleted = shuffled(n, seed).0;
    let start = Moment::now();
    population.add(&all)?;
    population.remove(&deleted)?;
    Ok(start.elapsed() / (all.len() + deleted.len()) as f64)
}
