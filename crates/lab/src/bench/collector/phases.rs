//! FFCCD's phases under a collector in the background: everything is inserted, then four of five
//! objects are deleted, inserted again and deleted again, at random (its section 6).
//!
//! The pool is looked at after every so many operations, the same ones with and without a collector.

use firn_heap::collector::scheme::NONE;
use firn_heap::collector::{
    BackgroundCollector, CollectOptions, Collected, CollectorOptions, PageSize,
};
use firn_heap::{Error, Pool, Statistics};
use firn_mapped::Mapped;

use super::super::clock::{Moment, Times};
use super::super::figure::{Compaction, Figure, Subject};
use super::super::{BenchError, Options, pools};
use super::population::{Population, Shape, Sizes, shuffled};
use super::{MOST_PASSES, SYSTEM};
use crate::Progress;

const PHASES: usize = 3;
/// Looks at the pool in a phase.
const SAMPLES: usize = 200;
const HOW: &str = "after inserting all: 80 % deleted, inserted, deleted, at random, one a transaction, \
                   one thread of the program; an operation is one of these; the footprint is looked \
                   at 200 times a phase, the ratio_max where no collection is under way";

/// When a collector begins and where it ends; none at all where nothing is named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// What its figures are called.
    pub(super) name: &'static str,
    /// Trigger and target ratio.
    ratios: Option<(f64, f64)>,
}

/// The baseline first, then FFCCD's normal and relaxed parameters.
pub(super) const SETTINGS: [Setting; 3] = [
    Setting {
        name: "none",
        ratios: None,
    },
    Setting {
        name: "normal",
        ratios: Some((1.5, 1.25)),
    },
    Setting {
        name: "relaxed",
        ratios: Some((1.7, 1.5)),
    },
];
pub(super) const SHAPES: [Shape; 2] = [Shape::Map, Shape::Refs];

impl Setting {
    fn options(&self) -> Option<CollectorOptions> {
        self.ratios.map(|(trigger, target)| CollectorOptions {
            trigger,
            // However small the bench is, the ratio counts.
            least_bytes: 0,
            collect: CollectOptions {
                target,
                ..CollectOptions::default()
            },
            ..CollectorOptions::default()
        })
    }
}

/// The name of a figure.
pub(super) fn name(shape: Shape, setting: &Setting) -> String {
    format!("phases_{}_{}", shape.name(), setting.name)
}

/// Names of all figures.
pub(super) fn names() -> impl Iterator<Item = String> {
    let named = |shape| SETTINGS.iter().map(move |setting| name(shape, setting));
    SHAPES.into_iter().flat_map(named)
}

/// Measures the phases of the shapes that were asked for, all settings in turns: without the baseline
/// there is no reduction.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wanted = |shape: Shape| {
        let mut names = SETTINGS.iter().map(|setting| name(shape, setting));
        names.any(|name| options.wants(super::SECTION, &name))
    };
    let shapes: Vec<Shape> = SHAPES.into_iter().filter(|shape| wanted(*shape)).collect();
    let passes = options.blocks.min(MOST_PASSES);
    let mut figures = Vec::new();
    let steps = passes * shapes.len() * SETTINGS.len();
    progress.begin("phases with a collector", Some(steps as u64));
    for shape in shapes {
        let mut runs: [Vec<(Times, Compaction)>; SETTINGS.len()] = Default::default();
        for _ in 0..passes {
            let mut baseline = None;
            for (setting, runs) in SETTINGS.iter().zip(&mut runs) {
                let run = Run::new(options, shape, setting)?;
                let baseline = baseline.get_or_insert(run.footprints);
                runs.push((run.times, run.compaction(baseline)));
                progress.advance(1);
            }
        }
        let all = SETTINGS.iter().zip(&runs);
        figures.extend(all.map(|(setting, runs)| figure(options, shape, setting, runs)));
    }
    progress.end();
    Ok(figures)
}

/// Mean bytes of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Footprint {
    pages: f64,
    live: f64,
}

/// What one run gave.
struct Run {
    /// Of the program's thread, an operation of the phases.
    times: Times,
    footprints: [Footprint; PHASES],
    seen: Compaction,
}

impl Run {
    fn new(options: &Options, shape: Shape, setting: &Setting) -> Result<Self, BenchError> {
        let pool = pools::growing(&options.memory_dir, options.domain)?;
        let n = options.entries;
        let mut population = Population::filled(&pool, shape, Sizes::Fixed, n)?;
        population.take_one_a_transaction();
        let how = setting.options();
        let collector = how.map(|how| pool.start_collector(&how)).transpose()?;
        let mut watch = Watch::new(&pool, how);
        let [first, second] = [1, 2].map(|seed| shuffled(n, seed).0);
        let mut footprints = [Footprint::default(); PHASES];
        let mut times = Times::default();
        type Change = fn(&mut Population<Mapped>, &[u32]) -> Result<(), Error>;
        let phases: [(Change, &[u32]); PHASES] = [
            (Population::remove, &first),
            (Population::add, &first),
            (Population::remove, &second),
        ];
        for ((change, numbers), footprint) in phases.into_iter().zip(&mut footprints) {
            let step = numbers.len().div_ceil(SAMPLES).max(1);
            for some in numbers.chunks(step) {
                let start = Moment::now();
                change(&mut population, some)?;
                times += start.elapsed();
                population.session().publish_statistics();
                let seen = watch.look()?;
                footprint.pages += seen.pages / numbers.len().div_ceil(step) as f64;
                footprint.live += seen.live / numbers.len().div_ceil(step) as f64;
            }
        }
        let collected = collector.map(BackgroundCollector::stop).transpose()?;
        let collected = collected.map_or_else(Collected::default, |done| done.collected);
        let scheme = how.map_or(&NONE, |how| how.collect.scheme);
        Ok(Self {
            times: times / (first.len() * PHASES).max(1) as f64,
            footprints,
            seen: Compaction {
                ratio_max: Some(watch.highest),
                ratio_peak: Some(watch.peak),
                ..Compaction::of(&pool, scheme, &collected)?
            },
        })
    }

    /// What was seen, with the reduction against a run without a collector.
    fn compaction(self, baseline: &[Footprint; PHASES]) -> Compaction {
        let phases = self.footprints.iter().zip(baseline);
        // FFCCD's equation 1, phase by phase.
        let reductions = phases.map(|(with, without)| {
            (without.pages - with.pages) / (without.pages - without.live).max(1.0)
        });
        Compaction {
            reduction: Some(reductions.sum::<f64>() / PHASES as f64),
            ..self.seen
        }
    }
}

/// Looks at a pool from time to time.
struct Watch<'p> {
    pool: &'p Pool<Mapped>,
    how: Option<CollectorOptions>,
    /// The highest ratio outside a collection, and at any time.
    highest: f64,
    peak: f64,
}

impl<'p> Watch<'p> {
    fn new(pool: &'p Pool<Mapped>, how: Option<CollectorOptions>) -> Self {
        Self {
            pool,
            how,
            highest: 0.0,
            peak: 0.0,
        }
    }

    fn look(&mut self) -> Result<Footprint, Error> {
        let ratio = self.pool.ratio(PageSize::Huge);
        self.peak = self.peak.max(ratio);
        if ratio > self.highest && !self.is_collecting(ratio)? {
            self.highest = ratio;
        }
        let statistics = Statistics::read(self.pool.medium())?;
        Ok(Footprint {
            pages: statistics.footprint_2m_bytes as f64,
            live: statistics.live_bytes as f64,
        })
    }

    /// Whether a collection is under way. Below the trigger it does not matter, and nobody is asked.
    fn is_collecting(&self, ratio: f64) -> Result<bool, Error> {
        match &self.how {
            Some(how) if ratio > how.trigger => match self.pool.collection(&how.collect) {
                Ok(_) => Ok(false),
                Err(Error::Busy { .. } | Error::Collecting) => Ok(true),
                Err(error) => Err(error),
            },
            _ => Ok(false),
        }
    }
}

fn figure(
    options: &Options,
    shape: Shape,
    setting: &Setting,
    runs: &[(Times, Compaction)],
) -> Figure {
    let how = match setting.ratios {
        Some((trigger, target)) => format!("trigger {trigger}, target {target}; {HOW}"),
        None => format!("without a collector; {HOW}"),
    };
    let subject = Subject {
        system: SYSTEM,
        structure: shape.name(),
        operation: &name(shape, setting),
        n: options.entries,
        threads: 1,
        how: &how,
    };
    let times: Vec<Times> = runs.iter().map(|(times, _)| *times).collect();
    Figure {
        compaction: Compaction::median(runs.iter().map(|(_, compaction)| compaction)),
        ..Figure::of(subject, &times)
    }
}
