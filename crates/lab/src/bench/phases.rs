//! FFCCD's phases: everything is inserted, then four of five objects are deleted, inserted again and deleted again, at
//! random, one operation a transaction (its section 6).
//!
//! The pool is sampled at regular intervals, after equal numbers of operations with and without a collector.

use firn_heap::collector::scheme::NONE;
use firn_heap::collector::{
    BackgroundCollector, CollectOptions, Collected, CollectorOptions, PageSize,
};
use firn_heap::{Error, Pool, Statistics};
use firn_mapped::{HugePages, Mapped};
use firn_media::Space;
use firn_workloads::{Population, SEED, Shape, Sizes, VALUE_BYTES, shuffled};

use super::clock::{Moment, Times};
use super::figure::Compaction;
use super::{BenchError, Options, pools};

/// Phases after everything was inserted.
pub(super) const PHASES: usize = 3;
/// Samples of the pool in a phase.
const SAMPLES: usize = 200;
/// Gets at most.
const MOST_GETS: usize = 200_000;
/// Gets under one guard.
const MANY: usize = 100;
/// More bytes than all caches hold.
const CACHES_BYTES: u64 = 128 << 20;
/// Ratio at which a pool is packed before the last gets.
const PACKED: f64 = 1.05;
/// Bytes of a key.
const KEY_BYTES: u64 = 8;

/// When a collector begins and ends; no collector if there are no ratios.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Its name in figures.
    pub(super) name: &'static str,
    /// Trigger and target ratio.
    pub(super) ratios: Option<(f64, f64)>,
    /// The pool's pages.
    pub(super) huge_pages: HugePages,
}

/// No collector.
pub(super) const WITHOUT: Setting = Setting {
    name: "none",
    ratios: None,
    huge_pages: HugePages::Ask,
};
/// No collector, and a pool in pages of 4 KiB, as the rivals' are.
pub(super) const SMALL_PAGES: Setting = Setting {
    name: "4k",
    ratios: None,
    huge_pages: HugePages::Refuse,
};
/// FFCCD's normal parameters.
pub(super) const NORMAL: Setting = Setting {
    name: "normal",
    ratios: Some((1.5, 1.25)),
    huge_pages: HugePages::Ask,
};
/// Parameters that keep a file small, at the price of more collections.
pub(super) const DENSE: Setting = Setting {
    name: "dense",
    ratios: Some((1.2, 1.1)),
    huge_pages: HugePages::Ask,
};
/// FFCCD's relaxed parameters.
pub(super) const RELAXED: Setting = Setting {
    name: "relaxed",
    ratios: Some((1.7, 1.5)),
    huge_pages: HugePages::Ask,
};

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

/// Mean bytes of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footprint {
    pub(super) pages: f64,
    pub(super) live: f64,
}

/// The result of one run. Times are of the program's thread, per operation.
pub(super) struct Run {
    /// Everything inserted.
    pub(super) filled: Times,
    /// Deleted, inserted, deleted.
    pub(super) phases: [Times; PHASES],
    pub(super) footprints: [Footprint; PHASES],
    /// The ratio on pages of 2 MiB, the mean over all samples.
    pub(super) ratio_mean: f64,
    /// Blocks of the file over keys and values left, while the collector was at work.
    pub(super) file_over_payload: f64,
    pub(super) seen: Compaction,
    /// Finding objects while all are there, and after few are left and the pool was packed, if it had a collector.
    pub(super) gets: Option<[Got; 2]>,
}

/// The time to find an object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Got {
    /// Under a guard of its own.
    pub(super) alone: Times,
    /// Under a guard of many, one after the other.
    pub(super) many: Times,
    /// As many, all requested at once.
    pub(super) each: Times,
}

/// The gets that a run includes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gets {
    None,
    FullAndAfter,
}

impl Run {
    /// Runs the phases on a pool of its own.
    pub(super) fn new(
        options: &Options,
        shape: Shape,
        setting: &Setting,
        gets: Gets,
    ) -> Result<Self, BenchError> {
        let pool = pools::growing(&options.memory_dir, options.domain, setting.huge_pages)?;
        let n = options.entries;
        let mut population = Population::new(&pool, shape, Sizes::Fixed, n)?;
        population.take_one_a_transaction();
        let all: Vec<u32> = (0..n as u32).collect();
        let how = setting.options();
        let collector = how.map(|how| pool.start_collector(&how)).transpose()?;
        let (filled, _) = change(&mut population, Population::add, &all, None)?;
        let [first, second] = [SEED, SEED + 1].map(|seed| shuffled(n, seed));
        let find = |population: &mut Population<Mapped>, numbers: &[u32]| match gets {
            Gets::None => Ok(None),
            Gets::FullAndAfter => got(population, numbers).map(Some),
        };
        let full = find(&mut population, &first.0)?;
        let mut watch = Watch::new(&pool, how);
        let phases: [(Change, &[u32]); PHASES] = [
            (Population::remove, &first.0),
            (Population::add, &first.0),
            (Population::remove, &second.0),
        ];
        let mut times = [Times::default(); PHASES];
        let mut footprints = [Footprint::default(); PHASES];
        for (phase, (way, numbers)) in phases.into_iter().enumerate() {
            (times[phase], footprints[phase]) =
                change(&mut population, way, numbers, Some(&mut watch))?;
        }
        let (highest, peak, ratio_mean) = (watch.highest, watch.peak, watch.mean());
        let collected = collector.map(BackgroundCollector::stop).transpose()?;
        let backed = pool.medium().backed_bytes().map_err(Error::from)?;
        let payload = second.1.len() as u64 * (KEY_BYTES + VALUE_BYTES as u64);
        let collected = collected.map_or_else(Collected::default, |done| done.collected);
        let scheme = how.map_or(&NONE, |how| how.collect.scheme);
        let seen = Compaction {
            ratio_max: Some(highest),
            ratio_peak: Some(peak),
            ..Compaction::of(&pool, scheme, &collected)?
        };
        if how.is_some() && gets == Gets::FullAndAfter {
            pool.collect(&CollectOptions {
                target: PACKED,
                ..CollectOptions::default()
            })?;
        }
        let after = find(&mut population, &second.1)?;
        Ok(Self {
            filled,
            phases: times,
            footprints,
            ratio_mean,
            file_over_payload: backed as f64 / payload.max(1) as f64,
            seen,
            gets: full.zip(after).map(|(full, after)| [full, after]),
        })
    }
}

type Change = fn(&mut Population<Mapped>, &[u32]) -> Result<(), Error>;

/// Changes a population in steps, between which the pool is sampled.
fn change(
    population: &mut Population<Mapped>,
    change: Change,
    numbers: &[u32],
    mut watch: Option<&mut Watch<'_>>,
) -> Result<(Times, Footprint), BenchError> {
    let (mut times, mut footprint) = (Times::default(), Footprint::default());
    let step = numbers.len().div_ceil(SAMPLES).max(1);
    let steps = numbers.len().div_ceil(step).max(1) as f64;
    for some in numbers.chunks(step) {
        let start = Moment::now();
        change(population, some)?;
        times += start.elapsed();
        population.session().publish_statistics();
        if let Some(watch) = &mut watch {
            let seen = watch.look()?;
            footprint.pages += seen.pages / steps;
            footprint.live += seen.live / steps;
        }
    }
    Ok((times / numbers.len().max(1) as f64, footprint))
}

/// Finds objects that are there.
fn got(population: &mut Population<Mapped>, numbers: &[u32]) -> Result<Got, BenchError> {
    let numbers = &numbers[..numbers.len().min(MOST_GETS)];
    let (mut value, mut caches) = (Vec::new(), Caches::new());
    let mut got = |get: Get, batch: usize| {
        caches.empty();
        let start = Moment::now();
        let mut batches = numbers.chunks(batch);
        batches.try_for_each(|some| get(population, some, &mut value))?;
        Ok::<_, Error>(start.elapsed() / numbers.len().max(1) as f64)
    };
    Ok(Got {
        alone: got(Population::get, 1)?,
        many: got(Population::get, MANY)?,
        each: got(Population::get_each, MANY)?,
    })
}

type Get = fn(&mut Population<Mapped>, &[u32], &mut Vec<u8>) -> Result<(), Error>;

/// Empties the processor's caches before gets. Ours are repeated on one set of objects, while the rivals, which empty
/// the caches likewise, get each object once.
struct Caches(Vec<u64>);

impl Caches {
    fn new() -> Self {
        Self((0..CACHES_BYTES / 8).collect())
    }

    fn empty(&mut self) {
        self.0.iter_mut().for_each(|word| *word += 1);
        std::hint::black_box(&self.0);
    }
}

/// Samples a pool from time to time.
struct Watch<'p> {
    pool: &'p Pool<Mapped>,
    how: Option<CollectorOptions>,
    /// The highest ratio outside a collection, and at any time.
    highest: f64,
    peak: f64,
    /// The sum of all ratios, and their number.
    sum: f64,
    looks: u64,
}

impl<'p> Watch<'p> {
    fn new(pool: &'p Pool<Mapped>, how: Option<CollectorOptions>) -> Self {
        Self {
            pool,
            how,
            highest: 0.0,
            peak: 0.0,
            sum: 0.0,
            looks: 0,
        }
    }

    fn look(&mut self) -> Result<Footprint, Error> {
        let ratio = self.pool.ratio(PageSize::Huge);
        self.peak = self.peak.max(ratio);
        self.sum += ratio;
        self.looks += 1;
        if ratio > self.highest && !self.is_collecting(ratio)? {
            self.highest = ratio;
        }
        let statistics = Statistics::read(self.pool.medium())?;
        Ok(Footprint {
            pages: statistics.footprint_2m_bytes as f64,
            live: statistics.live_bytes as f64,
        })
    }

    fn mean(&self) -> f64 {
        self.sum / self.looks.max(1) as f64
    }

    /// Whether a collection is under way. Below the trigger it does not matter, so the pool is not asked.
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
