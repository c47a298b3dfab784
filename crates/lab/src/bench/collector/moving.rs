//! The total cost of moving an object: the collector's CPU time, and the slow-down that it causes in a program that
//! reads the whole map meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::collector::{CollectOptions, Collected, PageSize};
use firn_heap::{Error, Pool, PoolKind};
use firn_mapped::{HugePages, Mapped};
use firn_tools::Progress;
use firn_workloads::{MAP, Population, SEED, Shape, Sizes, shuffled};

use super::super::clock::{Moment, Times};
use super::super::figure::{Compaction, Figure, Subject};
use super::super::rival::{Counted, Defragmented, Rival};
use super::super::{BenchError, Options, map, pools};
use super::density::TARGET;
use super::{MOST_PASSES, SYSTEM, beside};

/// Objects of which four fifths are deleted, where fences and lines are counted.
const COUNTED: u64 = 5000;
/// Gets between two checks whether the collection is over.
const GETS_AT_ONCE: usize = 256;

/// Every scheme that keeps what was committed.
fn schemes() -> impl Iterator<Item = &'static Scheme> {
    SCHEMES
        .into_iter()
        .filter(|s| s.moves && s.is_for_stock_hardware())
}

/// The cost of a page that objects are moved to.
pub(super) const FRESH_PAGE: &str = "fresh_page";

/// The structure that a rival packs, in its words and ours, and the figure's name: objects of a tree, as here.
const RIVALS_TREE: &str = "avl";
pub(super) const DEFRAG: &str = "defrag_avl";

/// The name of a figure.
pub(super) fn name(scheme: &Scheme) -> String {
    format!("move_map_{}", scheme.name)
}

/// Names of its figures.
pub(super) fn names() -> impl Iterator<Item = String> {
    schemes().map(name).chain([FRESH_PAGE.to_owned()])
}

/// Measures the selected schemes, in turns with each other and with the rival.
pub(super) fn measure(
    options: &Options,
    mut rival: Option<&mut Rival>,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let schemes: Vec<&'static Scheme> = schemes()
        .filter(|scheme| options.wants(super::SECTION, &name(scheme)))
        .collect();
    // However few blocks there are: in some passes the host has to find memory first, and these must not be the median.
    let passes = MOST_PASSES;
    let (mut pages, mut rivals) = (Vec::new(), Vec::new());
    let mut all: Vec<Vec<(Times, Compaction)>> = schemes.iter().map(|_| Vec::new()).collect();
    progress.begin("moving objects", Some((passes * schemes.len()) as u64));
    let wants_page = options.wants(super::SECTION, FRESH_PAGE);
    for _ in 0..passes {
        if wants_page {
            pages.push(pools::fresh_page(&options.memory_dir, options.domain)?);
        }
        for (scheme, taken) in schemes.iter().zip(&mut all) {
            taken.push(pass(options, scheme)?);
            progress.advance(1);
        }
        if let Some(rival) = rival.as_deref_mut().filter(|_| !schemes.is_empty()) {
            pools::warm(options.entries * std::mem::size_of::<[u64; 64]>() as u64)?;
            rivals.push(rival.defrag(RIVALS_TREE, options.entries, SEED)?);
        }
    }
    progress.end();
    let figures = schemes.iter().zip(&all);
    let mut figures: Vec<Figure> = figures
        .map(|(scheme, passes)| figure(options, scheme, passes))
        .collect::<Result<_, _>>()?;
    if let Some((rival, first)) = rival.zip(rivals.first()) {
        let theirs = of_rival(options, rival, first, &rivals);
        for figure in &mut figures {
            figure.ratio_to_rival = Some(theirs.ns_cpu_per_op / figure.ns_cpu_per_op);
        }
        figures.push(theirs);
    }
    if !pages.is_empty() {
        let subject = Subject {
            system: SYSTEM,
            structure: FRESH_PAGE,
            operation: FRESH_PAGE,
            n: 1,
            threads: 1,
            how: "a page of 4 KiB that the file has no block for: reserved by 2 MiB, then mapped for \
                  stores; all of it the kernel's work",
        };
        figures.push(Figure::of(subject, &pages));
    }
    Ok(figures)
}

fn of_rival(
    options: &Options,
    rival: &Rival,
    first: &Defragmented,
    passes: &[Defragmented],
) -> Figure {
    let subject = Subject {
        system: &rival.name,
        structure: RIVALS_TREE,
        operation: DEFRAG,
        n: options.entries,
        threads: 1,
        how: &first.how,
    };
    let times: Vec<Times> = passes
        .iter()
        .map(|pass| Times {
            cpu_ns: pass.ns_cpu_per_moved,
            wall_ns: pass.ns_wall_per_moved,
        })
        .collect();
    Figure {
        // Equal seeds make equal objects, so every pass moves as many.
        compaction: Compaction {
            moved: Some(first.moved),
            ratio_2m: first.ratio_2m,
            ratio_4k: first.ratio_4k,
            ..Compaction::default()
        },
        ..Figure::of(subject, &times)
    }
}

fn how(scheme: &'static Scheme, pages: PageSize) -> CollectOptions {
    CollectOptions {
        target: TARGET,
        pages,
        scheme,
        ..CollectOptions::default()
    }
}

/// A pool of which four fifths were deleted, and the entries left in it.
struct Sparse {
    pool: Pool<Mapped>,
    stay: Vec<u32>,
}

impl Sparse {
    fn new(options: &Options) -> Result<Self, BenchError> {
        let pool = pools::growing(&options.memory_dir, options.domain, HugePages::Ask)?;
        let mut population = Population::filled(&pool, Shape::Map, Sizes::Fixed, options.entries)?;
        let (gone, stay) = shuffled(options.entries, SEED);
        population.remove(&gone)?;
        Ok(Self { pool, stay })
    }

    /// Packs `other` while a thread gets entries of this pool.
    fn read_beside(
        &self,
        other: &Pool<Mapped>,
        scheme: &'static Scheme,
    ) -> Result<Beside, BenchError> {
        let (stay, count) = (&self.stay, self.stay.len());
        let mut reader = Reader::new(&self.pool, stay)?;
        reader.get(count)?;
        let before = reader.get(count)?;
        pools::warm(other.occupancy()?.live_bytes)?;
        let read = Mutex::new(Read::default());
        let read_until = |stop: &AtomicBool| {
            let sum = Reader::new(&self.pool, stay)?.until(stop)?;
            if let Ok(mut read) = read.lock() {
                *read = sum;
            }
            Ok(())
        };
        let (collected, collector) = beside([&read_until], || {
            let start = Moment::now();
            let collected = other.collect(&how(scheme, PageSize::Huge))?;
            Ok((collected, start.elapsed()))
        })?;
        let after = reader.get(count)?;
        let read = read.into_inner().unwrap_or_default();
        // Packed objects are found faster, so the undisturbed time is between those before and after.
        let undisturbed_ns = (before.each_ns() + after.each_ns()) / 2.0;
        Ok(Beside {
            collected,
            collector,
            gets: read.gets as f64,
            longer_ns: read.each_ns() - undisturbed_ns,
        })
    }
}

/// A collection with gets beside it.
struct Beside {
    collected: Collected,
    collector: Times,
    gets: f64,
    /// The slow-down of a get.
    longer_ns: f64,
}

/// Packs a pool while another of equal content is read, then packs it while it is read itself. The slow-down of the
/// first gets is due to memory, which all cores share; the further slow-down of the second is the program's share of
/// moving.
fn pass(options: &Options, scheme: &'static Scheme) -> Result<(Times, Compaction), BenchError> {
    let (other, own) = (Sparse::new(options)?, Sparse::new(options)?);
    let shared = own.read_beside(&other.pool, scheme)?;
    drop(other);
    let Beside {
        collected,
        collector,
        gets,
        longer_ns,
    } = own.read_beside(&own.pool, scheme)?;
    let moved = collected.planned.max(1) as f64;
    let program_ns = (longer_ns - shared.longer_ns.max(0.0)).max(0.0) * gets / moved;
    let times = Times {
        cpu_ns: collector.cpu_ns / moved + program_ns,
        wall_ns: collector.wall_ns / moved,
    };
    let compaction = Compaction {
        ns_cpu_per_moved: Some(times.cpu_ns),
        ns_program_per_moved: Some(program_ns),
        ns_memory_per_moved: Some(shared.longer_ns.max(0.0) * gets / moved),
        ..Compaction::of(&own.pool, scheme, &collected)?
    };
    Ok((times, compaction))
}

/// The time of gets.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    gets: usize,
    cpu_ns: f64,
}

impl Read {
    fn each_ns(self) -> f64 {
        self.cpu_ns / self.gets.max(1) as f64
    }
}

/// A thread of the program that gets one entry after the other, over and over.
struct Reader<'n> {
    session: firn_heap::Session<Mapped>,
    map: firn_heap::Handle<firn_structures::map::MapRoot, Mapped>,
    numbers: core::iter::Cycle<core::slice::Iter<'n, u32>>,
    value: Vec<u8>,
}

impl<'n> Reader<'n> {
    fn new(pool: &Pool<Mapped>, numbers: &'n [u32]) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let map = session.read(|view| map::handle(pool, view, MAP))?;
        Ok(Self {
            session,
            map,
            numbers: numbers.iter().cycle(),
            value: Vec::new(),
        })
    }

    fn get(&mut self, gets: usize) -> Result<Read, Error> {
        let start = Moment::now();
        for &number in self.numbers.by_ref().take(gets) {
            map::get(&mut self.session, &self.map, number, &mut self.value)?;
        }
        let cpu_ns = start.elapsed().cpu_ns;
        Ok(Read { gets, cpu_ns })
    }

    fn until(&mut self, stop: &AtomicBool) -> Result<Read, Error> {
        let mut sum = Read::default();
        while !stop.load(Ordering::Relaxed) {
            let read = self.get(GETS_AT_ONCE)?;
            sum.gets += read.gets;
            sum.cpu_ns += read.cpu_ns;
        }
        Ok(sum)
    }
}

fn figure(
    options: &Options,
    scheme: &'static Scheme,
    passes: &[(Times, Compaction)],
) -> Result<Figure, BenchError> {
    let (counted, cycle_fences) = counted(options, scheme)?;
    let how = format!(
        "target 1.05 after four of five entries were deleted, beside a thread that gets the others; \
         an operation is an object moved: CPU time of the collector, and what the gets took longer \
         than before and after, less what gets from a second such pool took longer beside a collection \
         of the first; fences and lines of the moving counted on the crash medium, where a \
         cycle of {} objects has {cycle_fences} fences in all",
        COUNTED / 5
    );
    let subject = Subject {
        system: SYSTEM,
        structure: Shape::Map.name(),
        operation: &name(scheme),
        n: options.entries,
        threads: 2,
        how: &how,
    };
    let times: Vec<Times> = passes.iter().map(|(times, _)| *times).collect();
    Ok(Figure {
        fences_per_op: Some(counted.fences_per_op),
        lines_per_op: Some(counted.lines_per_op),
        compaction: Compaction::median(passes.iter().map(|(_, compaction)| compaction)),
        ..Figure::of(subject, &times)
    })
}

/// Fences and lines per object moved, on memory that can lose power, and the fences of the whole cycle.
fn counted(options: &Options, scheme: &'static Scheme) -> Result<(Counted, u64), BenchError> {
    let (crash, pool) = pools::counted(options.domain, PoolKind::Traced)?;
    let mut population = Population::filled(&pool, Shape::Map, Sizes::Fixed, COUNTED)?;
    population.remove(&shuffled(COUNTED, SEED).0)?;
    let mut collection = pool.collection(&how(scheme, PageSize::Small))?;
    crash.reset_counts();
    collection.begin()?;
    let begun = crash.counts();
    collection.compact(u64::MAX)?;
    let compacted = crash.counts();
    collection.finish()?;
    let fences = crash.counts().fences;
    let moved = collection.collected().planned.max(1) as f64;
    let counted = Counted {
        fences_per_op: (compacted.fences - begun.fences) as f64 / moved,
        lines_per_op: (compacted.write_backs - begun.write_backs) as f64 / moved,
    };
    Ok((counted, fences))
}
