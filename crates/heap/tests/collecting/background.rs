//! Does a pool that a thread keeps compact lose nothing, and does that thread obey its options?

#[path = "../collect_races/program.rs"]
mod program;

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::collect_support::{KINDS, MIXED, Objects, Spine, collect, options};
use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Schedule, SwarmOptions,
};
use firn_heap::collector::{BackgroundCollector, CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, Refs, Statistics, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Memory, Runtime, Space};
use firn_units::CHUNK_BYTES;

use program::{Log, Program, THREADS};

const SEEDS: core::ops::Range<u64> = 0..20;

/// Checks all the time, and collects whenever anything can be won.
fn eager() -> CollectorOptions {
    CollectorOptions {
        trigger: 1.01,
        interval: Duration::from_nanos(500),
        least_bytes: 0,
        release_blocks: true,
        collect: collect(PageSize::Small),
    }
}

fn crash() -> Crash {
    Crash::new(32 << 20, CrashOptions::default())
}

/// Lets other threads run until something holds.
fn wait_until(crash: &Crash, holds: impl Fn() -> bool) {
    for _ in 0..1_000_000 {
        if holds() {
            return;
        }
        crash.pause(0);
    }
    panic!("it never held");
}

/// Lets other threads run for a while.
fn wait(crash: &Crash) {
    (0..2000).for_each(|_| crash.pause(0));
}

#[test]
fn two_threads_on_a_mapped_pool_lose_nothing() {
    const STEPS: u64 = 3000;
    for kind in KINDS {
        let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
        let pool = Pool::create(medium, &options(kind)).unwrap();
        program::setup(&pool, 64);
        let collector = pool.start_collector(&eager()).unwrap();
        let log = Arc::new(Mutex::new(Log::default()));
        log.lock().unwrap().begin(7);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (pool, log) = (&pool, &log);
                scope.spawn(move || {
                    let mut program = Program::new(pool, thread, log);
                    for n in 0..STEPS {
                        program.step();
                        if n % 16 == 1 {
                            program.verify();
                        }
                    }
                });
            }
        });
        let done = collector.stop().unwrap();
        assert!(done.collections > 0 && done.collected.moved > 0, "{done:?}");
        assert!(!pool.has_open_cycle());
        let mut session = pool.session().unwrap();
        for thread in 0..THREADS {
            let expected = log.lock().unwrap().model(thread, STEPS).region;
            assert_eq!(program::read(&mut session, thread).unwrap(), expected);
        }
        drop(session);
        assert_eq!(pool.check().unwrap(), []);
    }
}

/// Two threads of the program, and one that starts a collector and stops it when they are done. Returns the number of
/// collections.
fn workload(crash: &Crash, kind: PoolKind, steps: u64, log: &Arc<Mutex<Log>>) -> u64 {
    log.lock().unwrap().begin(crash.random_u64());
    let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
    let finished = Arc::new(AtomicUsize::new(0));
    let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for thread in 0..THREADS {
        let (pool, crash, log) = (pool.clone(), crash.clone(), Arc::clone(log));
        let finished = Arc::clone(&finished);
        jobs.push(Box::new(move || {
            let mut program = Program::new(&pool, thread, &log);
            for _ in 0..steps {
                let step = program.step();
                crash.note(step);
            }
            finished.fetch_add(1, Ordering::Relaxed);
        }));
    }
    let (watched, medium) = (pool.clone(), crash.clone());
    let collections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&collections);
    jobs.push(Box::new(move || {
        let collector = watched.start_collector(&eager()).unwrap();
        let mut attempt = 0;
        while finished.load(Ordering::Relaxed) < THREADS {
            medium.pause(attempt);
            attempt += 1;
        }
        let done = collector.stop().unwrap().collections;
        counted.store(done, Ordering::Relaxed);
        assert!(!watched.has_open_cycle());
    }));
    crash.run(jobs, Schedule::Inherited).finished().unwrap();
    judge(&pool, &log.lock().unwrap(), [steps; THREADS]).unwrap();
    pool.abandon();
    collections.load(Ordering::Relaxed)
}

fn judge(pool: &Pool<Crash>, log: &Log, least: [u64; THREADS]) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let mut session = pool.session().map_err(text)?;
    let steps = program::steps_done(&mut session).map_err(text)?;
    for thread in 0..THREADS {
        let (done, found) = (least[thread], steps[thread]);
        let region = program::read(&mut session, thread).map_err(text)?;
        let expected = log.model(thread, found).region;
        if !(done..=done + 1).contains(&found) || region != expected {
            return Err(format!("thread {thread} after {done}: {found}, {region:?}"));
        }
    }
    drop(session);
    let findings = pool.check().map_err(text)?;
    findings.first().map_or(Ok(()), |f| Err(f.to_string()))
}

#[test]
fn a_crash_beside_the_thread_loses_nothing() {
    for kind in KINDS {
        let log = Arc::new(Mutex::new(Log::default()));
        let collections = Cell::new(0);
        let explorer = Explorer::new(
            ExploreOptions::default(),
            16 << 20,
            |crash| {
                let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
                program::setup(&pool, 64);
                pool.close().unwrap();
            },
            |crash| collections.set(collections.get() + workload(crash, kind, 15, &log)),
            |crash, state: &CrashState| {
                let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
                pool.medium().end_of_recovery();
                let (log, done) = (log.lock().unwrap(), [state.note(1), state.note(2)]);
                judge(&pool, &log, done)?;
                // The collector's thread resumes the interrupted cycle.
                let collector = pool.start_collector(&eager()).map_err(|e| e.to_string())?;
                collector.stop().map_err(|e| e.to_string())?;
                pool.collect(&eager().collect).map_err(|e| e.to_string())?;
                judge(&pool, &log, done).map_err(|e| format!("collected: {e}"))?;
                pool.abandon();
                Ok(())
            },
        );
        let report = explorer.swarm(&SwarmOptions {
            seeds: SEEDS,
            crashes: 6,
            images: 3,
            crashes_in_recovery: 1,
        });
        println!("{kind:?}: {report}");
        report.expect_clean();
        // In some schedules it does not run before the others have ended.
        assert!(collections.get() >= SEEDS.end / 2, "{collections:?}");
    }
}

#[test]
fn it_waits_for_the_trigger() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    let ratio = pool.ratio(PageSize::Small);
    let waiting = [
        CollectorOptions {
            trigger: ratio + 0.01,
            ..eager()
        },
        CollectorOptions {
            least_bytes: 1 << 30,
            ..eager()
        },
    ];
    for options in waiting {
        let collector = pool.start_collector(&options).unwrap();
        wait(pool.medium());
        assert_eq!(collector.stop().unwrap().collections, 0);
    }
    let due = CollectorOptions {
        trigger: ratio - 0.01,
        ..eager()
    };
    let collector = pool.start_collector(&due).unwrap();
    wait_until(pool.medium(), || collector.progress().collections > 0);
    let done = collector.stop().unwrap();
    assert!(done.collected.moved > 0 && pool.ratio(PageSize::Small) < ratio);
    MIXED.assert_in(&pool, "collected");
}

#[test]
fn what_it_cannot_mend_it_lets_be() {
    // One huge page, most of it free: the ratio is high, and nothing can be won.
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    let eager = CollectorOptions {
        collect: collect(PageSize::Huge),
        ..eager()
    };
    let collector = pool.start_collector(&eager).unwrap();
    wait_until(pool.medium(), || collector.progress().collections > 0);
    wait(pool.medium());
    // Nothing has changed, so it is not tried again.
    assert_eq!(collector.progress().collections, 1);
    // Now the pool has changed, and it is tried, but for a small part of the time.
    pool.session()
        .unwrap()
        .transaction(|_| Ok::<_, Error>(()))
        .unwrap();
    let begin = pool.medium().now_ns();
    wait(pool.medium());
    let waited = pool.medium().now_ns() - begin;
    let done = collector.stop().unwrap();
    let collected = done.collected;
    let busy = collected.mark_ns + collected.summary_ns;
    assert!(done.collections < 3 || busy < waited / 8, "{done:?}");
}

/// How often the collector's thread has given up its processor.
fn wake_ups() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let files = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")));
    let mut texts = files.filter_map(Result::ok);
    let status = texts
        .find(|text| text.starts_with("Name:\tfirn-collector\n"))
        .unwrap();
    let switches = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    switches.unwrap().trim().parse().unwrap()
}

/// Whatever the obstacle: nothing can be won, or an operation stays open.
#[test]
fn an_idle_program_has_an_idle_collector() {
    const SECOND: Duration = Duration::from_secs(1);
    for stays_open in [false, true] {
        let medium = Mapped::anonymous(64 << 20, &MappedOptions::default()).unwrap();
        let pool = MIXED.pool(medium, PoolKind::Traced);
        let mut session = pool.session().unwrap();
        let guard = stays_open.then(|| session.guard());
        let pages = match stays_open {
            true => PageSize::Small,
            false => PageSize::Huge,
        };
        let options = CollectorOptions {
            interval: Duration::from_millis(10),
            collect: collect(pages),
            ..eager()
        };
        let collector = pool.start_collector(&options).unwrap();
        std::thread::sleep(SECOND);
        let before = wake_ups();
        std::thread::sleep(SECOND);
        let woken = wake_ups() - before;
        drop(guard);
        collector.stop().unwrap();
        // It was twenty thousand with a check every 50 us.
        assert!(woken <= 100, "{woken} times, {stays_open}");
    }
}

/// Bytes that a collector gave back in a pool of several chunks in `folder` that is sparse everywhere.
fn given_back(folder: &Path, pages: PageSize) -> u64 {
    const THIN: Objects = Objects {
        count: 11_300,
        len: |_| 1000,
        stays: |i| i % 5 == 0,
    };
    let file = tempfile::tempdir_in(folder).unwrap();
    let path = file.path().join("pool");
    let medium =
        Mapped::create(path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let pool = THIN.pool(medium, PoolKind::Traced);
    let before = pool.medium().backed_bytes().unwrap();
    let collector = pool
        .start_collector(&CollectorOptions {
            collect: collect(pages),
            ..eager()
        })
        .unwrap();
    while collector.progress().released_bytes == 0 {
        pool.medium().pause(0);
    }
    let done = collector.stop().unwrap();
    THIN.assert_in(&pool, "given back");
    assert!(pool.medium().backed_bytes().unwrap() < before);
    done.released_bytes
}

/// On a disk small pages are given back whole, too: a file has all blocks of an aligned 2 MiB, or none.
#[test]
fn huge_pages_are_given_back_whole() {
    let (disk, memory) = (std::env::temp_dir(), Path::new("/dev/shm"));
    for (folder, pages) in [
        (memory, PageSize::Huge),
        (disk.as_path(), PageSize::Huge),
        (disk.as_path(), PageSize::Small),
    ] {
        let given = given_back(folder, pages);
        assert!(given > 0 && given.is_multiple_of(CHUNK_BYTES), "{given}");
    }
    let small = given_back(memory, PageSize::Small);
    assert!(!small.is_multiple_of(CHUNK_BYTES), "{small}");
}

#[test]
fn it_begins_ahead_where_the_ratio_rises() {
    let thin = MIXED.pool(crash(), PoolKind::Traced).ratio(PageSize::Small);
    let pool = Pool::create(crash(), &options(PoolKind::Traced)).unwrap();
    MIXED.make(&pool).unwrap();
    // The ratio comes near the trigger and never reaches it.
    let collector = pool
        .start_collector(&CollectorOptions {
            trigger: thin + 0.01,
            ..eager()
        })
        .unwrap();
    wait(pool.medium());
    assert_eq!(collector.progress().collections, 0);
    MIXED.thin(&pool).unwrap();
    wait_until(pool.medium(), || collector.progress().collections > 0);
    collector.stop().unwrap();
    MIXED.assert_in(&pool, "collected");
}

#[test]
fn a_trigger_that_is_no_higher_than_the_target_is_refused() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    for trigger in [1.0, 0.5, f64::NAN] {
        let options = CollectorOptions { trigger, ..eager() };
        let refused = pool.start_collector(&options).map(drop);
        assert!(matches!(refused, Err(Error::Trigger { .. })), "{trigger}");
    }
}

/// A collector in the middle of a cycle.
fn caught(pool: &Pool<Crash>) -> BackgroundCollector<Crash> {
    let slow = CollectorOptions {
        collect: CollectOptions {
            bytes_per_second: Some(1 << 20),
            ..eager().collect
        },
        ..eager()
    };
    let collector = pool.start_collector(&slow).unwrap();
    wait_until(pool.medium(), || pool.has_open_cycle());
    collector
}

#[test]
fn stopping_it_ends_the_cycle() {
    for kind in KINDS {
        let pool = MIXED.pool(crash(), kind);
        let collector = caught(&pool);
        let told = || Statistics::read(pool.medium()).unwrap().cycle_open;
        wait_until(pool.medium(), told);
        let done = collector.stop().unwrap();
        assert!(!pool.has_open_cycle() && !told());
        assert!(done.collections == 1 && done.collected.moved > 0);
        MIXED.assert_in(&pool, "stopped");
        let medium = pool.medium().clone();
        pool.close().unwrap();
        MIXED.assert_in(&Pool::open(medium, &options(kind)).unwrap(), "reopened");
    }
}

#[test]
fn dropping_it_ends_the_cycle() {
    for kind in KINDS {
        let pool = MIXED.pool(crash(), kind);
        drop(caught(&pool));
        assert!(!pool.has_open_cycle());
        MIXED.assert_in(&pool, "dropped");
    }
}

#[test]
fn a_pool_is_not_closed_under_it() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    let collector = caught(&pool);
    let closed = pool.clone().close();
    assert!(matches!(closed, Err(Error::Collecting)), "{closed:?}");
    collector.stop().unwrap();
    MIXED.assert_in(&pool, "stopped");
    pool.close().unwrap();
}

#[test]
fn what_made_it_give_up_is_told() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    // Damage: a reference to another pool.
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let pair = tx.alloc_refs::<Bytes>(1)?;
            pair.set(0, tx.root::<Spine>("spine")?.get(0))?;
            tx.set_root("pair", pair)
        })
        .unwrap();
    let field = session.read(|view| view.root::<Refs<Bytes>>("pair").unwrap().address()) + 16;
    let word = pool.medium().load_u64(field);
    pool.medium().store_u64(field, word ^ 1 << 63);
    let collector = pool.start_collector(&eager()).unwrap();
    wait(pool.medium());
    let told = collector.stop();
    assert!(matches!(told, Err(Error::Damaged { .. })), "{told:?}");
    // The pool works on without a collector, and with one when it is sound again.
    pool.medium().store_u64(field, word);
    session
        .transaction(|tx| tx.alloc_bytes(&[1; 100]).map(drop))
        .unwrap();
    drop(session);
    let collector = pool.start_collector(&eager()).unwrap();
    wait_until(pool.medium(), || collector.progress().collections > 0);
    collector.stop().unwrap();
    MIXED.assert_in(&pool, "sound again");
}
