//! Does a list of an explicit pool's objects have each of them once while they move?

mod collect_support;

use collect_support::{collect, options};
use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, Schedule, SwarmOptions};
use firn_heap::collector::PageSize;
use firn_heap::{Pool, PoolKind, Stored, View};

#[derive(Stored)]
#[repr(C)]
struct Numbered {
    number: u64,
    more: [u64; 5],
}

const COUNT: u64 = 9;

/// Nine objects on three pages, and nothing that refers to them.
fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let mut others = Vec::new();
            for i in 0..COUNT * 20 {
                let (number, more) = (i / 20, [i; 5]);
                let new = tx.alloc(Numbered { number, more })?;
                if i % 20 != 0 {
                    others.push(new);
                }
            }
            // SAFETY: nothing refers to them.
            others
                .into_iter()
                .try_for_each(|other| unsafe { tx.free(other) })
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

fn list(pool: &Pool<Crash>, times: usize) {
    let mut session = pool.session().unwrap();
    for _ in 0..times {
        let mut found: Vec<u64> = session.read(|view| {
            let objects = view.objects::<Numbered>().unwrap();
            objects
                .into_iter()
                .map(|o| o.load(Numbered::NUMBER))
                .collect()
        });
        found.sort_unstable();
        assert_eq!(found, Vec::from_iter(0..COUNT));
    }
    std::mem::forget(session);
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
                Box::new(move || list(&lister, 60)),
                Box::new(move || {
                    let collected = collector.collect(&collect(PageSize::Small)).unwrap();
                    assert_eq!(collected.moved, COUNT);
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
