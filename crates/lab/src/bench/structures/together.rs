//! Two threads, each on a structure of its own in one pool, against one.

use std::sync::Barrier;

use firn_heap::{Error, Pool};
use firn_mapped::Mapped;

use super::super::clock::{Moment, Times};
use super::super::figure::{Figure, Subject};
use super::super::population::{Population, Shape, Sizes, shuffled};
use super::super::{BenchError, Options, pools};
use super::{MOST_PASSES, SECTION, SYSTEM};
use crate::Progress;

/// Shapes of which each thread has one.
const SHAPES: [Shape; 2] = [Shape::Chain, Shape::Avl];
const THREADS: u64 = 2;
/// Of all entries, how many a thread has.
const SHARE: u64 = 4;
const HOW: &str = "each thread inserts into a structure of its own and deletes 80 % at random, one a \
                   transaction, in one pool; wall time of the slower thread";

/// The name of a figure.
pub(super) fn name(shape: Shape) -> String {
    format!("together_{}", shape.name())
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
    let mut figures = Vec::new();
    progress.begin("two threads", Some((passes * wanted.len()) as u64));
    for shape in wanted {
        let mut blocks: [Vec<Times>; THREADS as usize] = Default::default();
        for _ in 0..passes {
            for (threads, blocks) in (1..).zip(&mut blocks) {
                let pool = pools::growing(&options.memory_dir, options.domain)?;
                blocks.push(run(&pool, shape, n, threads)?);
            }
            progress.advance(1);
        }
        for (threads, blocks) in (1..).zip(&blocks) {
            let name = name(shape);
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

/// CPU time of all threads and wall time of the slower one, over the operations of one thread: half the
/// throughput takes twice as long.
fn run(pool: &Pool<Mapped>, shape: Shape, n: u64, threads: u64) -> Result<Times, BenchError> {
    let begin = &Barrier::new(threads as usize);
    let results: Vec<Result<Times, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || work(pool, shape, n, seed, begin)))
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
    // A thread that failed still comes to the barrier, or the other would wait for ever.
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
