//! Do the counters of the statistics page equal the findings of a walk over the pool?

use crate::collect_support::{KINDS, collect};
use firn_crash::{Crash, CrashOptions, Schedule};
use firn_heap::collector::PageSize;
use firn_heap::{
    Bytes, Error, Pool, PoolKind, PoolOptions, Refs, Session, Statistics, Stored, View,
};

type Spine = Refs<Bytes>;

const SLOTS: usize = 48;
const STEPS: usize = 60;
const SEEDS: u64 = 20;
/// From one that fits a slot of 16 bytes to one of several pages; 3000 bytes share pages.
const LENGTHS: [usize; 6] = [5, 100, 490, 1500, 3000, 20_000];
/// A large object that delays a walk before it reaches the objects behind.
const BEFORE: usize = 600_000;
/// A session that publishes only at its end.
const NEVER: u32 = u32::MAX;

#[derive(Stored)]
#[repr(C)]
struct Pair {
    one: u64,
    two: u64,
}

/// The counts of objects and pages.
#[derive(PartialEq, Eq, Debug)]
struct Counters {
    objects: u64,
    bytes: [u64; 3],
    classes: Vec<(Option<u64>, u64)>,
    types: Vec<(String, u64, u64)>,
}

fn counters(medium: &Crash) -> Counters {
    let found = Statistics::read(medium).unwrap();
    let (small, huge) = (found.footprint_4k_bytes, found.footprint_2m_bytes);
    let classes = found.classes.iter().map(|c| (c.slot_bytes, c.objects));
    let types = found.types.into_iter();
    Counters {
        objects: found.objects,
        bytes: [found.live_bytes, small, huge],
        classes: classes.collect(),
        types: types.map(|t| (t.name, t.objects, t.live_bytes)).collect(),
    }
}

fn options(kind: PoolKind, publish_every: u32) -> PoolOptions {
    PoolOptions {
        publish_every,
        ..crate::collect_support::options(kind)
    }
}

fn new_pool(kind: PoolKind, publish_every: u32) -> Pool<Crash> {
    let medium = Crash::new(32 << 20, CrashOptions::default());
    let pool = Pool::create(medium, &options(kind, publish_every)).unwrap();
    let make = |tx: firn_heap::Tx<'_, Crash>| {
        tx.set_root("pair", tx.alloc(Pair { one: 1, two: 2 })?)?;
        tx.set_root("spine", tx.alloc_refs::<Bytes>(SLOTS)?)
    };
    pool.session().unwrap().transaction(make).unwrap();
    pool
}

/// Replaces the object of a slot of the spine, and fails if `fails`.
fn set(session: &mut Session<Crash>, slot: usize, len: Option<usize>, fails: bool) {
    let result = session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        if let Some(old) = spine.get(slot) {
            // SAFETY: the only reference is replaced.
            unsafe { tx.free(old)? };
        }
        let new = len.map(|len| tx.alloc_bytes(&vec![7; len])).transpose()?;
        spine.set(slot, new)?;
        if fails { Err(Error::ReadOnly) } else { Ok(()) }
    });
    assert_eq!(result.is_err(), fails, "{result:?}");
}

fn fill(session: &mut Session<Crash>) {
    (0..SLOTS).for_each(|slot| set(session, slot, Some(LENGTHS[slot % 6]), false));
}

/// The pool after a power failure, with the stores that had reached media.
fn crashed(pool: Pool<Crash>, seed: u64, publish_every: u32) -> Pool<Crash> {
    let (medium, kind) = (pool.medium().clone(), pool.kind());
    pool.abandon();
    let medium = Crash::from_image(&medium.random_image(seed), CrashOptions::default());
    Pool::open(medium, &options(kind, publish_every)).unwrap()
}

/// Traces, and asserts that the trace corrects no counter.
fn assert_exact(pool: &Pool<Crash>, when: &str) {
    let before = counters(pool.medium());
    pool.trace().unwrap();
    assert_eq!(before, counters(pool.medium()), "{when}");
}

#[test]
fn a_crash_leaves_no_claim_to_exact_counters() {
    for kind in KINDS {
        let pool = new_pool(kind, NEVER);
        let mut session = pool.session().unwrap();
        fill(&mut session);
        session.publish_statistics();
        let whole = counters(pool.medium());
        let pool = new_pool(kind, NEVER);
        let mut session = pool.session().unwrap();
        fill(&mut session);
        let pool = crashed(pool, 1, NEVER);
        assert!(pool.needs_trace() && !pool.occupancy().unwrap().exact);
        let medium = pool.medium().clone();
        pool.close().unwrap();
        let found = Statistics::read(&medium).unwrap();
        assert!(!found.exact && !found.open, "{kind:?}: nobody has counted");
        let read_only = Pool::open_read_only(medium.clone(), "collect").unwrap();
        assert!(read_only.needs_trace());
        drop(read_only);
        let pool = Pool::open(medium.clone(), &options(kind, NEVER)).unwrap();
        assert!(pool.needs_trace());
        pool.trace().unwrap();
        assert!(!pool.needs_trace() && pool.occupancy().unwrap().exact);
        assert_eq!(counters(&medium), whole, "{kind:?}");
        pool.close().unwrap();
        assert!(Statistics::read(&medium).unwrap().exact);
    }
}

/// Counts that a session has not published are included in the recount.
#[test]
fn what_is_published_after_a_recount_is_not_counted_twice() {
    for kind in KINDS {
        for recount in ["trace", "collect"] {
            let pool = crashed(new_pool(kind, NEVER), 1, NEVER);
            let mut session = pool.session().unwrap();
            (0..20).for_each(|slot| set(&mut session, slot, Some(3000), false));
            match recount {
                "trace" => pool.trace().map(|_| ()).unwrap(),
                _ => pool.collect(&collect(PageSize::Small)).map(|_| ()).unwrap(),
            }
            (10..30).for_each(|slot| set(&mut session, slot, Some(40), false));
            session.publish_statistics();
            assert_exact(&pool, &format!("{kind:?}, {recount}"));
        }
    }
}

#[test]
fn a_recount_beside_a_writer_misses_nothing() {
    for seed in 0..12 {
        for kind in KINDS {
            let pool = new_pool(kind, 5);
            let mut session = pool.session().unwrap();
            set(&mut session, 0, Some(BEFORE), false);
            (1..SLOTS).for_each(|slot| set(&mut session, slot, Some(490), false));
            let pool = crashed(pool, seed, 5);
            let (writer, collector) = (pool.clone(), pool.clone());
            let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
                Box::new(move || {
                    let mut session = writer.session().unwrap();
                    for i in 0..SLOTS {
                        let len = (i % 3 > 0).then_some(490);
                        set(&mut session, i * 7 % SLOTS, len, i % 8 == 0);
                    }
                }),
                Box::new(move || {
                    collector.collect(&collect(PageSize::Small)).unwrap();
                }),
            ];
            let schedule = Schedule::Random { seed };
            let run = pool.medium().run(jobs, schedule);
            run.finished().unwrap();
            assert!(!pool.needs_trace());
            assert_exact(&pool, &format!("seed {seed}, {kind:?}"));
        }
    }
}

/// Numbers drawn from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }
}

fn collect_some(pool: &Pool<Crash>, draw: &mut Draw) {
    let pages = [PageSize::Small, PageSize::Huge][draw.below(2)];
    let mut collection = pool.collection(&collect(pages)).unwrap();
    if collection.begin().unwrap() {
        collection.compact(draw.below(30) as u64).unwrap();
        if draw.below(2) == 0 {
            collection.finish().unwrap();
        }
    }
}

#[test]
fn counters_are_what_a_walk_finds_whatever_happens() {
    for seed in 1..=SEEDS {
        for kind in KINDS {
            run(seed, kind);
        }
    }
}

fn run(seed: u64, kind: PoolKind) {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let publish_every = [1, 3, NEVER][draw.below(3)];
    let mut pool = new_pool(kind, publish_every);
    let mut session = pool.session().unwrap();
    for step in 0..STEPS {
        match draw.below(24) {
            0 => {
                std::mem::forget(session);
                pool = crashed(pool, seed + step as u64, publish_every);
                session = pool.session().unwrap();
            }
            1 => {
                drop(session);
                let medium = pool.medium().clone();
                pool.close().unwrap();
                pool = Pool::open(medium, &options(kind, publish_every)).unwrap();
                session = pool.session().unwrap();
            }
            2 => {
                pool.trace().unwrap();
            }
            3..6 => collect_some(&pool, &mut draw),
            6..8 => set(&mut session, draw.below(SLOTS), Some(100), true),
            8..14 => set(&mut session, draw.below(SLOTS), None, false),
            _ => {
                let len = LENGTHS[draw.below(LENGTHS.len())];
                set(&mut session, draw.below(SLOTS), Some(len), false);
            }
        }
        if draw.below(6) == 0 && !pool.needs_trace() {
            session.publish_statistics();
            if pool.has_open_cycle() {
                pool.collection(&collect(PageSize::Small))
                    .unwrap()
                    .finish()
                    .unwrap();
            }
            assert_exact(&pool, &format!("seed {seed}, {kind:?}, step {step}"));
            let named = session.read(|view| {
                let spine = view.root::<Spine>("spine").unwrap();
                (0..SLOTS).filter(|&slot| spine.get(slot).is_some()).count() as u64
            });
            assert_eq!(counters(pool.medium()).objects, named + 2, "seed {seed}");
        }
    }
}
