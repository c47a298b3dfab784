//! The cost of the read barrier while nothing moves: gets from a map with an idle collector, in turns with and without
//! the barrier.

use firn_heap::collector::CollectorOptions;
use firn_heap::{Error, Handle, Pool, Session, Unbarriered};
use firn_mapped::{HugePages, Mapped};
use firn_structures::map::MapRoot;
use firn_tools::Progress;
use firn_workloads::{MAP, Population, Shape, Sizes};

use super::super::clock::{Moment, Times};
use super::super::figure::{Figure, Subject, over};
use super::super::{BenchError, Options, map, pools};
use super::SYSTEM;

/// The names of its figures.
pub(super) const WITH: &str = "get_idle";
pub(super) const WITHOUT: &str = "get_unbarriered";
/// Blocks are cheap here, and the differences are small.
const BLOCKS: usize = 10;
const HOW: &str = "found and copied in random order, a guard each, beside an idle collector in the \
                   background; blocks with and without the read barrier alternate";

/// A thread that gets entries.
struct Rig {
    session: Session<Mapped>,
    map: Handle<MapRoot, Mapped>,
    still: Unbarriered<Mapped>,
    value: Vec<u8>,
}

/// Measures the barrier, if it was selected.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wants = |name| options.wants(super::SECTION, name);
    if !wants(WITH) && !wants(WITHOUT) {
        return Ok(Vec::new());
    }
    let pool = pools::growing(&options.memory_dir, options.domain, HugePages::Ask)?;
    drop(Population::filled(
        &pool,
        Shape::Map,
        Sizes::Fixed,
        options.entries,
    )?);
    let collector = pool.start_collector(&CollectorOptions::default())?;
    let mut rig = Rig::new(&pool)?;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut draw = || -> Vec<u32> {
        let one = |_| rng.u32(0..options.entries as u32);
        (0..options.n).map(one).collect()
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let blocks = options.blocks * BLOCKS;
    progress.begin("reading beside an idle collector", Some(blocks as u64));
    for block in 0..blocks {
        // The order alternates, so that the first's cache misses do not always help the same side.
        let (first, second) = (draw(), draw());
        if block % 2 == 0 {
            with.push(rig.get(&first)?);
            without.push(rig.get_unbarriered(&second)?);
        } else {
            without.push(rig.get_unbarriered(&first)?);
            with.push(rig.get(&second)?);
        }
        progress.advance(1);
    }
    progress.end();
    drop(rig);
    collector.stop()?;
    let figure = |operation, blocks: &[Times]| {
        let subject = Subject {
            system: SYSTEM,
            structure: Shape::Map.name(),
            operation,
            n: options.entries,
            threads: 1,
            how: HOW,
        };
        Figure::of(subject, blocks)
    };
    let barriered = Figure {
        over_control: Some(over(&with, &without)),
        ..figure(WITH, &with)
    };
    Ok(vec![barriered, figure(WITHOUT, &without)])
}

impl Rig {
    fn new(pool: &Pool<Mapped>) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let map = session.read(|view| map::handle(pool, view, MAP))?;
        Ok(Self {
            session,
            map,
            still: pool.unbarriered()?,
            value: Vec::new(),
        })
    }

    fn get(&mut self, numbers: &[u32]) -> Result<Times, Error> {
        let start = Moment::now();
        for &number in numbers {
            let guard = self.session.guard();
            map::get_in(guard.view(), &self.map, number, &mut self.value)?;
        }
        Ok(start.elapsed() / numbers.len() as f64)
    }

    fn get_unbarriered(&mut self, numbers: &[u32]) -> Result<Times, Error> {
        let start = Moment::now();
        for &number in numbers {
            let guard = self.still.guard(&mut self.session);
            map::get_in(guard.view(), &self.map, number, &mut self.value)?;
        }
        Ok(start.elapsed() / numbers.len() as f64)
    }
}
