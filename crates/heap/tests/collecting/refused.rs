//! The remains of a collection that could not go on, and actions that exclude a collection: nothing is lost, and
//! everything that it reserved is available again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer};
use firn_heap::collector::{CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Ref, Refs, Session, Stored, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Medium};

#[derive(Stored)]
#[repr(C)]
struct Counter {
    a: u64,
    b: u64,
}

#[derive(Stored)]
#[repr(C)]
struct Node {
    data: Ref<Bytes>,
    n: u64,
}

fn options(kind: PoolKind, max_bytes: Option<u64>) -> PoolOptions {
    PoolOptions {
        kind,
        max_bytes,
        lanes: 3,
        publish_every: 1,
        ..PoolOptions::new("refused")
    }
}

fn dense(pages: PageSize) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages,
        ..CollectOptions::default()
    }
}

/// A pool in a file of its own.
fn mapped(kind: PoolKind, max_bytes: Option<u64>) -> (tempfile::TempDir, Pool<Mapped>) {
    let dir = tempfile::tempdir().unwrap();
    let medium = Mapped::create(
        dir.path().join("pool"),
        16 << 20,
        &MappedOptions::default().domain(Domain::Process),
    );
    let pool = Pool::create(medium.unwrap(), &options(kind, max_bytes)).unwrap();
    (dir, pool)
}

fn root<M: Medium>(session: &mut Session<M>, len: usize) {
    session
        .transaction(|tx| tx.set_root("all", tx.alloc_refs::<Bytes>(len)?))
        .unwrap();
}

/// Puts an object, or nothing, into a place, and frees the old one.
fn put<M: Medium>(
    session: &mut Session<M>,
    place: usize,
    bytes: Option<&[u8]>,
) -> Result<(), Error> {
    session.transaction(|tx| {
        let all = tx.root::<Refs<Bytes>>("all")?;
        if let Some(old) = all.get(place) {
            // SAFETY: the place is the only one that refers to it.
            unsafe { tx.free(old)? };
        }
        let new = bytes.map(|bytes| tx.alloc_bytes(bytes)).transpose()?;
        all.set(place, new)
    })
}

fn assert_sound<M: Medium>(pool: &Pool<M>) {
    let findings = pool.check().unwrap();
    assert!(findings.is_empty(), "{} {:?}", findings.len(), findings[0]);
}

/// Runs `during` while a collection waits for a guard, that is with its sources closed.
fn while_sources_are_closed(pool: &Pool<Mapped>, during: impl FnOnce()) -> Result<u64, Error> {
    let (end, ended) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let hold = scope.spawn(move || {
            let mut session = pool.session().unwrap();
            let _guard = session.guard();
            enter.send(()).unwrap();
            ended.recv().unwrap();
        });
        entered.recv().unwrap();
        let collecting = scope.spawn(|| pool.collect(&dense(PageSize::Huge)));
        thread::sleep(Duration::from_millis(100));
        during();
        end.send(()).unwrap();
        hold.join().unwrap();
        collecting.join().unwrap().map(|done| done.cycles)
    })
}

#[test]
fn what_was_freed_before_a_plan_came_to_nothing_is_not_freed_again() {
    let (_dir, pool) = mapped(PoolKind::Explicit, Some(40 << 20));
    let mut session = pool.session().unwrap();
    let places = 120_000;
    root(&mut session, places);
    let count = (0..places)
        .take_while(|&i| put(&mut session, i, Some(&[1; 180])).is_ok())
        .count();
    for i in (0..count).step_by(2) {
        put(&mut session, i, None).unwrap();
    }
    let freed: Vec<usize> = (1..count).filter(|i| i % 10 == 1).collect();
    while_sources_are_closed(&pool, || {
        for &i in &freed {
            put(&mut session, i, None).unwrap();
        }
    })
    .unwrap();
    for i in (0..count).step_by(2).chain(freed) {
        if put(&mut session, i, Some(&[2; 180])).is_err() {
            break;
        }
    }
    let at: Vec<(usize, u64)> = session.read(|view| {
        let all = view.root::<Refs<Bytes>>("all").unwrap();
        let there = (0..count).filter_map(|i| Some((i, all.get(i)?.address().0)));
        there.collect()
    });
    let last = at.iter().map(|(_, at)| at >> 21).max().unwrap();
    for (i, at) in at {
        if at >> 21 >= last - 2 || ![1, 3, 9].contains(&(i % 10)) {
            put(&mut session, i, None).unwrap();
        }
    }
    let some = CollectOptions {
        max_source_bytes: 6 << 20,
        ..dense(PageSize::Huge)
    };
    assert!(pool.collect(&some).unwrap().moved > 0);
    assert_sound(&pool);
}

#[test]
fn large_objects_that_were_left_out_give_their_frames_back() {
    let (_dir, pool) = mapped(PoolKind::Explicit, None);
    let mut session = pool.session().unwrap();
    let count = 300;
    root(&mut session, count);
    let empty = pool.occupancy().unwrap().footprint_4k_bytes;
    for i in 0..count {
        put(&mut session, i, Some(&[1; 40_000])).unwrap();
    }
    for i in (0..count).filter(|i| i % 4 != 0) {
        put(&mut session, i, None).unwrap();
    }
    let cycles = while_sources_are_closed(&pool, || {
        for i in (0..count).step_by(8) {
            put(&mut session, i, None).unwrap();
        }
    });
    assert!(cycles.unwrap() > 0);
    for i in 0..count {
        put(&mut session, i, None).unwrap();
    }
    assert_sound(&pool);
    assert!(pool.occupancy().unwrap().footprint_4k_bytes <= empty);
}

#[test]
fn a_stop_that_is_not_granted_leaves_no_page_closed() {
    let medium = Crash::new(32 << 20, CrashOptions::with_domain(Domain::Adr));
    let pool = Pool::create(medium, &options(PoolKind::Explicit, None)).unwrap();
    let mut session = pool.session().unwrap();
    let count = 2000;
    root(&mut session, count);
    let make = |tx: firn_heap::Tx<'_, Crash>| tx.set_root("nodes", tx.alloc_refs::<Node>(count)?);
    session.transaction(make).unwrap();
    for i in 0..count {
        let fill = |tx: firn_heap::Tx<'_, Crash>| {
            let (data, n) = (Ref::NULL, i as u64);
            let node = tx.alloc(Node { data, n })?;
            node.link(Node::DATA, Some(tx.alloc_bytes(&[i as u8; 100])?));
            tx.root::<Refs<Node>>("nodes")?.set(i, Some(node))
        };
        session.transaction(fill).unwrap();
        put(&mut session, i, Some(&[7; 100])).unwrap();
    }
    for i in (0..count).filter(|i| i % 5 != 0) {
        let clear = |tx: firn_heap::Tx<'_, Crash>| {
            let nodes = tx.root::<Refs<Node>>("nodes")?;
            let node = nodes.get(i).ok_or(Error::ReadOnly)?;
            // SAFETY: the place is the only one that refers to it.
            unsafe { tx.free(node)? };
            nodes.set(i, None)
        };
        session.transaction(clear).unwrap();
    }
    {
        let mut other = pool.session().unwrap();
        let _guard = other.guard();
        let refused = pool.collect(&dense(PageSize::Small));
        assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    }
    for i in 0..count {
        put(&mut session, i, None).unwrap();
    }
    assert!(pool.collect(&dense(PageSize::Small)).unwrap().moved > 0);
    for _ in 0..3000 {
        session
            .transaction(|tx| tx.alloc_bytes(&[0xee; 100]).map(|_| ()))
            .unwrap();
    }
    assert_sound(&pool);
    session.read(|view| {
        let nodes = view.root::<Refs<Node>>("nodes").unwrap();
        for i in (0..count).step_by(5) {
            let data = nodes.get(i).unwrap().follow(Node::DATA).unwrap();
            assert_eq!(data.to_vec().unwrap(), vec![i as u8; 100]);
        }
    });
}

#[test]
fn no_collection_outlives_the_pool() {
    let (dir, pool) = mapped(PoolKind::Traced, None);
    let mut session = pool.session().unwrap();
    let count = 20_000;
    root(&mut session, count);
    for i in 0..count {
        put(&mut session, i, Some(&[i as u8; 100])).unwrap();
    }
    for i in (0..count).filter(|i| i % 6 != 0) {
        put(&mut session, i, None).unwrap();
    }
    drop(session);
    let under_way = pool.collection(&dense(PageSize::Small)).unwrap();
    assert!(matches!(pool.clone().close(), Err(Error::Collecting)));
    assert!(matches!(pool.trace(), Err(Error::Collecting)));
    drop(under_way);
    let watch = CollectorOptions {
        trigger: 1.01,
        least_bytes: 0,
        interval: Duration::from_millis(1),
        collect: dense(PageSize::Small),
        ..CollectorOptions::default()
    };
    let collector = pool.start_collector(&watch).unwrap();
    let mut attempts = 0;
    while let Err(error) = pool.clone().close() {
        assert!(matches!(error, Error::Collecting), "{error}");
        attempts += 1;
        thread::yield_now();
    }
    println!("closed after {attempts} attempts");
    assert!(matches!(
        pool.collect(&dense(PageSize::Small)),
        Err(Error::Closed)
    ));
    // It ended before the pool was closed, or was refused.
    if let Err(error) = collector.stop() {
        assert!(matches!(error, Error::Closed), "{error}");
    }
    drop(pool);
    let medium = Mapped::open(dir.path().join("pool"), &MappedOptions::default()).unwrap();
    let pool = Pool::open(medium, &options(PoolKind::Traced, None)).unwrap();
    assert_sound(&pool);
}

#[test]
fn traces_keep_collections_away() {
    let (_dir, pool) = mapped(PoolKind::Traced, None);
    let count = 5000;
    root(&mut pool.session().unwrap(), count);
    let stop = AtomicBool::new(false);
    let refused = |error: &Error| matches!(error, Error::Collecting | Error::Busy { .. });
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = pool.session().unwrap();
            for round in 0..12 {
                for i in (0..count).filter(|i| (i + round) % 6 == 0) {
                    put(&mut session, i, Some(&[i as u8; 100])).unwrap();
                }
                for i in (0..count).filter(|i| (i + round) % 6 == 3) {
                    put(&mut session, i, None).unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if let Err(error) = pool.collect(&dense(PageSize::Small)) {
                    assert!(refused(&error), "{error}");
                }
            }
        });
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = pool.trace() {
                assert!(refused(&error), "{error}");
            }
        }
    });
    assert_sound(&pool);
    pool.session().unwrap().read(|view| {
        let all = view.root::<Refs<Bytes>>("all").unwrap();
        for i in 0..count {
            if let Some(bytes) = all.get(i) {
                assert_eq!(bytes.to_vec().unwrap(), [i as u8; 100]);
            }
        }
    });
}

#[test]
fn a_type_may_be_registered_while_marking_waits() {
    let (_dir, pool) = mapped(PoolKind::Traced, None);
    let mut session = pool.session().unwrap();
    thread::scope(|scope| {
        let collecting = session
            .transaction(|tx| {
                let collecting = scope.spawn(|| pool.collect(&dense(PageSize::Small)));
                thread::sleep(Duration::from_millis(50));
                tx.set_root("late", tx.alloc(Counter { a: 1, b: 2 })?)?;
                Ok::<_, Error>(collecting)
            })
            .unwrap();
        collecting.join().unwrap().unwrap();
    });
    assert_sound(&pool);
}

const BEFORE: usize = 300;
const KEPT: [usize; 3] = [3, 160, 290];

/// Keeps three of many counters, far apart, one of them with two references.
fn counters(medium: &Crash, kind: PoolKind) {
    let pool = Pool::create(medium.clone(), &options(kind, None)).unwrap();
    let mut session = pool.session().unwrap();
    let fill = |tx: firn_heap::Tx<'_, Crash>| {
        let all = tx.alloc_refs::<Counter>(BEFORE)?;
        for i in 0..BEFORE {
            let (a, b) = (10, i as u64);
            all.set(i, Some(tx.alloc(Counter { a, b })?))?;
        }
        tx.set_root("all", all)
    };
    session.transaction(fill).unwrap();
    let thin = |tx: firn_heap::Tx<'_, Crash>| {
        let all = tx.root::<Refs<Counter>>("all")?;
        let spine = tx.alloc_refs::<Counter>(KEPT.len())?;
        for i in 0..BEFORE {
            let counter = all.get(i).ok_or(Error::ReadOnly)?;
            match KEPT.iter().position(|&kept| kept == i) {
                Some(place) => spine.set(place, Some(counter))?,
                // SAFETY: its only reference goes with the array.
                None => unsafe { tx.free(counter)? },
            }
        }
        tx.set_root("twin", all.get(KEPT[0]).ok_or(Error::ReadOnly)?)?;
        tx.set_root("spine", spine)?;
        tx.remove_root("all")?;
        // SAFETY: its root is gone.
        unsafe { tx.free(all) }
    };
    session.transaction(thin).unwrap();
    drop(session);
    pool.close().unwrap();
}

#[test]
fn a_copy_of_a_pool_with_an_open_cycle_is_whole() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let medium = Crash::new(16 << 20, CrashOptions::default());
        counters(&medium, kind);
        let pool = Pool::open(medium, &options(kind, None)).unwrap();
        let mut collection = pool.collection(&dense(PageSize::Small)).unwrap();
        assert!(collection.begin().unwrap());
        let change = |tx: firn_heap::Tx<'_, Crash>| {
            let counter = tx.root::<Refs<Counter>>("spine")?.get(0);
            counter.ok_or(Error::ReadOnly)?.store(Counter::A, 77);
            Ok::<_, Error>(())
        };
        pool.session().unwrap().transaction(change).unwrap();
        drop(collection);
        assert!(pool.has_open_cycle());
        let target = Crash::new(16 << 20, CrashOptions::default());
        let copy = pool
            .copy_into(target, firn_heap::CopyIdentity::New, &mut |_| {})
            .unwrap();
        assert_sound(&copy);
        copy.session().unwrap().read(|view| {
            let spine = view.root::<Refs<Counter>>("spine").unwrap();
            let twin = view.root::<Counter>("twin").unwrap();
            assert_eq!(spine.get(0).unwrap().address(), twin.address());
            let found = [0, 1, 2].map(|i| spine.get(i).unwrap().load(Counter::A));
            assert_eq!((found, twin.load(Counter::A)), ([77, 10, 10], 77));
        });
    }
}

#[test]
fn what_was_exchanged_before_a_move_is_persisted_after_it() {
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 0,
            medium: CrashOptions::with_domain(Domain::Adr),
            ..ExploreOptions::default()
        },
        16 << 20,
        |medium| counters(medium, PoolKind::Traced),
        |medium| {
            let pool = Pool::open(medium.clone(), &options(PoolKind::Traced, None)).unwrap();
            let mut session = pool.session().unwrap();
            {
                let guard = session.guard();
                let spine = guard.root::<Refs<Counter>>("spine").unwrap();
                let exchanged = spine.get(0).unwrap().compare_exchange(Counter::A, 10, 11);
                assert_eq!(exchanged.unwrap(), Ok(10));
            }
            let mut collection = pool.collection(&dense(PageSize::Small)).unwrap();
            assert!(collection.begin().unwrap());
            {
                let guard = session.guard();
                let spine = guard.root::<Refs<Counter>>("spine").unwrap();
                spine.get(0).unwrap().persist(Counter::A).unwrap();
            }
            medium.note(1);
            drop(collection);
            drop(session);
            pool.abandon();
        },
        |medium, state: &CrashState| {
            let text = |error: Error| error.to_string();
            let pool = Pool::open(medium, &options(PoolKind::Traced, None));
            let pool = pool.map_err(|error| error.to_string())?;
            let mut session = pool.session().map_err(text)?;
            let found = session.read(|view| {
                let spine = view.root::<Refs<Counter>>("spine").map_err(text)?;
                let counter = spine.get(0).ok_or("no counter")?;
                Ok::<_, String>(counter.load(Counter::A))
            });
            drop(session);
            pool.abandon();
            match found? {
                found if state.note(0) == 1 && found != 11 => Err(format!("found {found}")),
                _ => Ok(()),
            }
        },
    );
    explorer.explore().expect_clean();
}
