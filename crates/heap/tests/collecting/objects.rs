//! Does a list of an explicit pool's objects contain each of them once while they move?

use crate::collect_support::{collect, options};
use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, Schedule, SwarmOptions};
use firn_heap::collector::PageSize;
use firn_heap::{Bytes, Pool, PoolKind, Reading, Stored, View};

#[derive(Stored)]
#[repr(C)]
struct Numbered {
    number: u64,
    more: [u64; 5],
}

const COUNT: u64 = 9;
/// Removed objects per listed one, and after the last.
const OTHERS: u64 = 20;
const GONE: u64 = 2000;
/// The number of the removed ones.
const NONE: u64 = u64::MAX;

/// Nine objects on three pages, without references to them. The free pages held others; a large object keeps their
/// chunk in use, so that the nine move there.
fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            tx.alloc_bytes(&[1; 40_000])?;
            (0..COUNT * OTHERS + GONE).try_for_each(|i| {
                let stays = i % OTHERS == 0 && i < COUNT * OTHERS;
                let (number, more) = (if stays { i / OTHERS } else { NONE }, [i; 5]);
                tx.alloc(Numbered { number, more }).map(|_| ())
            })
        })
        .unwrap();
    session
        .transaction(|tx| {
            let all = tx.objects::<Numbered>()?.into_iter();
            // SAFETY: nothing refers to them.
            all.filter(|one| one.load(Numbered::NUMBER) == NONE)
                .try_for_each(|one| unsafe { tx.free(one) })
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Lists the objects twice in each operation: the world cannot stop in between.
fn list(pool: &Pool<Crash>, times: usize) {
    let mut session = pool.session().unwrap();
    let numbers = |view: Reading<'_, Crash>| {
        let objects = view.objects::<Numbered>().unwrap().into_iter();
        let mut numbers: Vec<u64> = objects.map(|o| o.load(Numbered::NUMBER)).collect();
        numbers.sort_unstable();
        numbers
    };
    for _ in 0..times {
        let found = session.read(|view| [numbers(view), numbers(view)]);
        assert_eq!(found, [(); 2].map(|()| Vec::from_iter(0..COUNT)));
    }
    std::mem::forget(session);
}

type Job = Box<dyn FnOnce() + Send>;

/// Lists objects beside another activity; threads with changing priorities interrupt each other for long.
fn list_beside(seeds: core::ops::Range<u64>, other: impl Fn(&Pool<Crash>) + Copy + Send + 'static) {
    for seed in seeds {
        let crash = Crash::new(16 << 20, CrashOptions::default());
        setup(&crash);
        let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
        let (lister, beside) = (pool.clone(), pool.clone());
        let jobs: [Job; 2] = [
            Box::new(move || list(&lister, 8)),
            Box::new(move || other(&beside)),
        ];
        let schedule = Schedule::Priorities { seed, changes: 30 };
        let run = crash.run(jobs.into(), schedule);
        run.finished()
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        pool.abandon();
    }
}

#[test]
fn what_is_planned_or_released_is_listed_once() {
    list_beside(0..80, |pool| {
        let collected = pool.collect(&collect(PageSize::Small)).unwrap();
        assert_eq!(collected.planned, COUNT);
    });
}

/// The frames of a run come and go one by one.
#[test]
fn runs_that_come_and_go_are_no_damage() {
    list_beside(0..50, |pool| {
        let mut session = pool.session().unwrap();
        for _ in 0..10 {
            session
                .transaction(|tx| tx.set_root("large", tx.alloc_bytes(&[1; 20_000])?))
                .unwrap();
            session
                .transaction(|tx| {
                    let large = tx.root::<Bytes>("large")?;
                    tx.remove_root("large")?;
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(large) }
                })
                .unwrap();
        }
        std::mem::forget(session);
    });
}

#[test]
fn each_object_is_listed_once() {
    let explorer = Explorer::new(
        ExploreOptions {
            medium: CrashOptions::default(),
            ..ExploreOptions::default()
        },
        16 << 20,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
            let (lister, collector) = (pool.clone(), pool.clone());
            let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
                Box::new(move || list(&lister, 30)),
                Box::new(move || {
                    let collected = collector.collect(&collect(PageSize::Small)).unwrap();
                    assert_eq!(collected.planned, COUNT);
                }),
            ];
            crash.run(jobs, Schedule::Inherited).finished().unwrap();
            pool.abandon();
        },
        |crash, _| {
            let pool =
                Pool::open(crash, &options(PoolKind::Explicit)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            list(&pool, 1);
            pool.collect(&collect(PageSize::Small))
                .map_err(|e| e.to_string())?;
            list(&pool, 1);
            pool.abandon();
            Ok(())
        },
    );
    let report = explorer.swarm(&SwarmOptions {
        seeds: 0..100,
        crashes: 2,
        images: 2,
        crashes_in_recovery: 1,
    });
    println!("{report}");
    report.expect_clean();
}
