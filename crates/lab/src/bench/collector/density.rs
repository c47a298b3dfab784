//! How dense a pool becomes: four of five objects are deleted at random, then one collection packs the rest, with no
//! other thread at work, and the free space goes back to the device.

use firn_heap::Occupancy;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_mapped::HugePages;
use firn_media::Space;
use firn_tools::{Progress, pages_name};
use firn_workloads::{Population, SEED, Shape, Sizes, shuffled};

use super::super::clock::{Moment, Times};
use super::super::figure::{Compaction, Figure, Subject};
use super::super::{BenchError, Options, pools};
use super::{MOST_PASSES, SYSTEM};

/// Target ratio.
pub(super) const TARGET: f64 = 1.05;
const HOW: &str = "four of five objects deleted at random, then collected with target 1.05 while \
                   nobody is at work; an operation is an object moved, marking and all else included";

/// A pool to pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) shape: Shape,
    pub(super) sizes: Sizes,
    pub(super) pages: PageSize,
}

/// The result of a pass.
struct Pass {
    times: Times,
    compaction: Compaction,
}

impl Case {
    /// The name of its figure.
    pub(super) fn name(&self) -> String {
        let (shape, sizes) = (self.shape.name(), self.sizes.name());
        format!("collect_{shape}_{sizes}_{}", pages_name(self.pages))
    }
}

/// Every case: maps and arrays of either size on either page, and a list.
pub(super) fn cases() -> impl Iterator<Item = Case> {
    let case = |shape, sizes, pages| Case {
        shape,
        sizes,
        pages,
    };
    let both = [Sizes::Fixed, Sizes::LogUniform];
    let packed = [Shape::Map, Shape::Refs]
        .into_iter()
        .flat_map(move |shape| {
            both.into_iter().flat_map(move |sizes| {
                let pages = [PageSize::Huge, PageSize::Small].into_iter();
                pages.map(move |pages| case(shape, sizes, pages))
            })
        });
    packed.chain([case(Shape::List, Sizes::Fixed, PageSize::Huge)])
}

/// Measures the selected cases.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let cases: Vec<Case> = cases()
        .filter(|case| options.wants(super::SECTION, &case.name()))
        .collect();
    let passes = options.blocks.min(MOST_PASSES);
    let mut all: Vec<Vec<Pass>> = cases.iter().map(|_| Vec::new()).collect();
    progress.begin("packing pools", Some((passes * cases.len()) as u64));
    for _ in 0..passes {
        for (case, taken) in cases.iter().zip(&mut all) {
            taken.push(pass(options, case)?);
            progress.advance(1);
        }
    }
    progress.end();
    let figures = cases.iter().zip(&all);
    Ok(figures
        .map(|(case, passes)| figure(options, case, passes))
        .collect())
}

fn pass(options: &Options, case: &Case) -> Result<Pass, BenchError> {
    let pool = pools::growing(&options.memory_dir, options.domain, HugePages::Ask)?;
    let n = options.entries;
    let mut population = Population::filled(&pool, case.shape, case.sizes, n)?;
    population.remove(&shuffled(n, SEED).0)?;
    let backed_bytes = || pool.medium().backed_bytes().map_err(firn_heap::Error::from);
    let before = backed_bytes()?;
    let footprint = |occupancy: &Occupancy| match case.pages {
        PageSize::Small => occupancy.footprint_4k_bytes as f64,
        PageSize::Huge => occupancy.footprint_2m_bytes as f64,
    };
    let occupancy = pool.occupancy()?;
    let footprint_before = footprint(&occupancy);
    pools::warm(occupancy.live_bytes)?;
    let options = CollectOptions {
        target: TARGET,
        pages: case.pages,
        ..CollectOptions::default()
    };
    let start = Moment::now();
    let collected = pool.collect(&options)?;
    let moved = collected.planned.max(1) as f64;
    let times = start.elapsed() / moved;
    pool.release_free_space()?;
    let compaction = Compaction {
        footprint_ratio: Some(footprint_before / footprint(&pool.occupancy()?)),
        blocks_ratio: Some(before as f64 / backed_bytes()? as f64),
        ns_cpu_per_moved: Some(times.cpu_ns),
        ..Compaction::of(&pool, options.scheme, &collected)?
    };
    Ok(Pass { times, compaction })
}

fn figure(options: &Options, case: &Case, passes: &[Pass]) -> Figure {
    let subject = Subject {
        system: SYSTEM,
        structure: case.shape.name(),
        operation: &case.name(),
        n: options.entries,
        threads: 1,
        how: HOW,
    };
    let times: Vec<Times> = passes.iter().map(|pass| pass.times).collect();
    Figure {
        compaction: Compaction::median(passes.iter().map(|pass| &pass.compaction)),
        ..Figure::of(subject, &times)
    }
}
