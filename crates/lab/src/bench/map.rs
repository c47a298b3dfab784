//! The ordered map: inserting, finding, removing.

use firn_heap::{Error, Handle, Obj, Pool, PoolKind, Session, Tx, View};
use firn_media::Medium;
use firn_structures::Map;
use firn_structures::map::MapRoot;
use firn_tools::Progress;
use firn_workloads::key;

use super::clock::{Moment, Times};
use super::figure::{Figure, Subject};
use super::rival::Counted;
use super::{BenchError, Options, pools};

/// The name of this part of the bench, and of the subject of its figures.
pub(super) const SECTION: &str = "map";
/// Further passes over this many operations add nothing.
const MOST_PASSES: usize = 3;
const VALUE_BYTES: usize = 128;
/// Pool bytes for an entry, and for an empty pool: more than are used.
const POOL_BYTES_PER_ENTRY: u64 = 512;
const POOL_BYTES: u64 = 64 << 20;
/// Entries of the map on which fences and lines are counted.
const COUNTED: usize = 4000;
const BATCH: usize = 100;
const SEED: u64 = 1;

/// The steps, in this order on one map, except for the batches, which fill another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Insert { batch: usize },
    Get,
    Remove,
}

const STEPS: [(&str, Step, &str); 4] = [
    (
        "map_insert_batch",
        Step::Insert { batch: BATCH },
        "inserted in random order, 100 a transaction",
    ),
    (
        "map_insert",
        Step::Insert { batch: 1 },
        "inserted in random order, one a transaction",
    ),
    (
        "map_get",
        Step::Get,
        "found and copied in random order, a guard each",
    ),
    (
        "map_remove",
        Step::Remove,
        "80 % removed in random order, one a transaction",
    ),
];

/// One thread's map on any medium.
struct Rig<M: Medium> {
    session: Session<M>,
    map: Handle<MapRoot, M>,
    buffer: Vec<u8>,
}

/// Names of all steps.
pub(super) fn names() -> impl Iterator<Item = String> {
    STEPS.iter().map(|(name, ..)| (*name).to_owned())
}

/// Measures the map, if any of its operations was selected.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    if !names().any(|name| options.wants(SECTION, &name)) {
        return Ok(Vec::new());
    }
    let entries = options.entries as usize;
    let passes = options.blocks.min(MOST_PASSES);
    let mut blocks: [Vec<Times>; STEPS.len()] = Default::default();
    progress.begin("map", Some((passes * STEPS.len()) as u64));
    for _ in 0..passes {
        let bytes = POOL_BYTES + options.entries * POOL_BYTES_PER_ENTRY;
        let dir = &options.memory_dir;
        let mut pool = pools::mapped(dir, bytes, options.domain, PoolKind::Traced)?;
        let mut rig = Rig::new(&pool)?;
        for ((_, step, _), blocks) in STEPS.iter().zip(&mut blocks) {
            if *step == (Step::Insert { batch: 1 }) {
                // A new pool: the batches' map would be in the way.
                drop(rig);
                pool = pools::mapped(dir, bytes, options.domain, PoolKind::Traced)?;
                rig = Rig::new(&pool)?;
            }
            let order = order(*step, entries);
            let start = Moment::now();
            rig.run(*step, &order)?;
            blocks.push(start.elapsed() / order.len().max(1) as f64);
            progress.advance(1);
        }
    }
    progress.end();
    let all = STEPS.iter().zip(&blocks);
    all.map(|((name, step, what), blocks)| figure(options, (name, *step, what), blocks))
        .collect()
}

fn figure(
    options: &Options,
    (name, step, what): (&str, Step, &str),
    blocks: &[Times],
) -> Result<Figure, BenchError> {
    let how = format!(
        "{what}; keys of 8 bytes, values of {VALUE_BYTES}; fences and lines counted on the crash \
         medium, the same code on {COUNTED} entries"
    );
    let subject = Subject {
        system: "firn",
        structure: SECTION,
        operation: name,
        n: options.entries,
        threads: 1,
        how: &how,
    };
    let mut figure = Figure::of(subject, blocks);
    let counted = counted(options, step)?;
    figure.fences_per_op = Some(counted.fences_per_op);
    figure.lines_per_op = Some(counted.lines_per_op);
    Ok(figure)
}

/// Counts what a step does, on memory that can lose power; insertions start with a map half as large.
fn counted(options: &Options, step: Step) -> Result<Counted, BenchError> {
    let (crash, pool) = pools::counted(options.domain, PoolKind::Traced)?;
    let mut rig = Rig::new(&pool)?;
    let mut order = order(step, COUNTED);
    let filled = match step {
        Step::Insert { .. } => COUNTED / 2,
        Step::Get | Step::Remove => COUNTED,
    };
    let fill: Vec<u32> = (0..filled as u32).collect();
    rig.run(Step::Insert { batch: 1 }, &fill)?;
    if let Step::Insert { .. } = step {
        order.retain(|&number| number as usize >= filled);
    }
    crash.reset_counts();
    rig.run(step, &order)?;
    let counts = crash.counts();
    Ok(Counted {
        fences_per_op: counts.fences as f64 / order.len() as f64,
        lines_per_op: counts.write_backs as f64 / order.len() as f64,
    })
}

/// The numbers of the keys that a step uses, of `entries` in all.
fn order(step: Step, entries: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..entries as u32).collect();
    if let Step::Get | Step::Remove = step {
        fastrand::Rng::with_seed(SEED).shuffle(&mut order);
    }
    if step == Step::Remove {
        order.truncate(entries / 5 * 4);
    }
    order
}

impl<M: Medium> Rig<M> {
    fn new(pool: &Pool<M>) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let map = session.transaction(|tx| Map::new(tx).map(|map| pool.handle(map.object())))?;
        Ok(Self {
            session,
            map,
            buffer: Vec::new(),
        })
    }

    fn run(&mut self, step: Step, numbers: &[u32]) -> Result<(), Error> {
        let map = &self.map;
        match step {
            Step::Insert { batch } => numbers.chunks(batch).try_for_each(|some| {
                self.session.transaction(|tx| {
                    let mut map = Map::at(deref(tx, map)?);
                    some.iter().try_for_each(|&number| {
                        let value = [number as u8; VALUE_BYTES];
                        map.insert(&key(number), &value).map(|_| ())
                    })
                })
            }),
            Step::Get => numbers
                .iter()
                .try_for_each(|&number| get(&mut self.session, map, number, &mut self.buffer)),
            Step::Remove => numbers.iter().try_for_each(|&number| {
                self.session
                    .transaction(|tx| Map::at(deref(tx, map)?).remove(&key(number)).map(|_| ()))
            }),
        }
    }
}

/// A handle of the map of this root.
pub(super) fn handle<'g, V: View<'g>>(
    pool: &Pool<V::Medium>,
    view: V,
    root: &str,
) -> Result<Handle<MapRoot, V::Medium>, Error> {
    Map::open(view, root).map(|map| pool.handle(map.object()))
}

/// Finds an entry and copies its value, in a guard of its own.
pub(super) fn get<M: Medium>(
    session: &mut Session<M>,
    map: &Handle<MapRoot, M>,
    number: u32,
    value: &mut Vec<u8>,
) -> Result<(), Error> {
    get_in(session.guard().view(), map, number, value)
}

/// Gets an entry under this view's guard.
#[inline]
pub(super) fn get_in<'g, V: View<'g>>(
    view: V,
    map: &Handle<MapRoot, V::Medium>,
    number: u32,
    value: &mut Vec<u8>,
) -> Result<(), Error> {
    let root = view.deref(map).ok_or(GONE)?;
    value.clear();
    let found = Map::at(root).get_into(&key(number), value)?;
    assert!(found, "every key that is looked for was inserted");
    Ok(())
}

const GONE: Error = Error::NotAllocated { at: 0 };

fn deref<'t, M: Medium>(
    tx: Tx<'t, M>,
    map: &Handle<MapRoot, M>,
) -> Result<Obj<'t, MapRoot, Tx<'t, M>>, Error> {
    tx.deref(map).ok_or(GONE)
}
