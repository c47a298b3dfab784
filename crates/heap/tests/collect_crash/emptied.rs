//! The next plan reuses a run from which everything was freed, for objects of another length.

use core::ops::Range;

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Schedule};
use firn_heap::collector::scheme::PIGGYBACK;
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Refs, Tx, View};
use firn_media::Step;
use firn_units::VirtAddr;

use crate::program::{check, collect, options};

/// Objects that are all freed, and objects that move to their places: count and length.
const FREED: (usize, usize) = (2 * RUN, 3000);
const MOVED: (usize, usize) = (8, 1900);
/// How many of the former fit into a run.
const RUN: usize = 4;
/// References in an object that is too large to be moved off its page.
const REFERENCES: usize = 2000;
/// One of this many stays.
const EACH: usize = 2;
const ROOT: &str = "kept";

fn pool_options() -> PoolOptions {
    options(PoolKind::Explicit, 1)
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &pool_options()).unwrap();
    let mut session = pool.session().unwrap();
    let fill = |tx: Tx<'_, Crash>| {
        let all = tx.alloc_refs::<Bytes>(REFERENCES)?;
        for i in 0..FREED.0 + MOVED.0 {
            let len = if i < FREED.0 { FREED.1 } else { MOVED.1 };
            all.set(i, Some(tx.alloc_bytes(&vec![1 + i as u8; len])?))?;
        }
        tx.set_root(ROOT, all)
    };
    session.transaction(fill).unwrap();
    for i in (FREED.0..FREED.0 + MOVED.0).filter(|i| i % EACH != 0) {
        session.transaction(|tx| free(tx, i)).unwrap();
    }
    drop(session);
    pool.close().unwrap();
}

fn free(tx: Tx<'_, Crash>, i: usize) -> Result<(), Error> {
    let all = tx.root::<Refs<Bytes>>(ROOT)?;
    if let Some(object) = all.get(i) {
        all.set(i, None)?;
        // SAFETY: the only reference to it is replaced.
        unsafe { tx.free(object)? };
    }
    Ok(())
}

/// Frees all of the first objects, run by run, and collects, so that others move to their places.
fn workload(crash: &Crash) {
    let pool = Pool::open(crash.clone(), &pool_options()).unwrap();
    let job = move || {
        let freed = places(&pool, 0..FREED.0);
        let mut session = pool.session().unwrap();
        for i in 0..FREED.0 {
            session.transaction(|tx| free(tx, i)).unwrap();
        }
        drop(session);
        let mut collection = pool.collection(&collect(&PIGGYBACK)).unwrap();
        assert!(collection.begin().unwrap());
        let moved = places(&pool, FREED.0..FREED.0 + MOVED.0);
        assert!(moved.iter().any(|at| freed.contains(at)), "{moved:?}");
        drop(collection);
        pool.clone().abandon();
    };
    let run = crash.run(vec![Box::new(job)], Schedule::Sequential);
    run.finished().unwrap();
}

/// The addresses of these objects.
fn places(pool: &Pool<Crash>, which: Range<usize>) -> Vec<VirtAddr> {
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let all = view.root::<Refs<Bytes>>(ROOT).unwrap();
        which.filter_map(|i| Some(all.get(i)?.address())).collect()
    })
}

/// Bytes of slots in use, once no cycle is open, and how many of the first objects are still referenced.
fn in_use(crash: Crash) -> Result<(u64, u64), String> {
    let failed = |e: Error| e.to_string();
    let pool = Pool::open(crash, &pool_options()).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    check(&pool).map_err(|e| format!("after opening: {e}"))?;
    pool.collect(&collect(&PIGGYBACK)).map_err(failed)?;
    check(&pool).map_err(|e| format!("after a collection: {e}"))?;
    let mut session = pool.session().map_err(failed)?;
    let first = session.read(|view| {
        let all = view.root::<Refs<Bytes>>(ROOT)?;
        let mut first = 0;
        for i in 0..FREED.0 + MOVED.0 {
            if let Some(object) = all.get(i) {
                assert!(object.to_vec()?.iter().all(|&byte| byte == 1 + i as u8));
                first += u64::from(i < FREED.0);
            }
        }
        Ok::<_, Error>(first)
    });
    let first = first.map_err(failed)?;
    drop(session);
    let occupancy = pool.occupancy().map_err(failed)?;
    pool.abandon();
    let bytes = occupancy
        .frames
        .iter()
        .filter_map(|frame| frame.content.live_bytes());
    Ok((bytes.sum(), first))
}

/// An explorer that crashes it everywhere, with a step left out or none.
pub fn explorer(leave_out: Option<&'static Step>, max_findings: usize) -> Explorer<'static> {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    setup(&crash);
    let image = crash.cache_image();
    let whole = |image: &_| Crash::from_image(image, CrashOptions::default());
    let before = in_use(whole(&image)).unwrap();
    let end = whole(&image);
    workload(&end);
    let after = in_use(whole(&end.cache_image())).unwrap();
    assert_eq!((before.1, after.1), (FREED.0 as u64, 0));
    let options = ExploreOptions {
        max_findings,
        recovery_depth: 0,
        medium: CrashOptions {
            leave_out,
            ..CrashOptions::default()
        },
        ..ExploreOptions::default()
    };
    let verify = move |crash, _: &CrashState| {
        let (bytes, first) = in_use(crash)?;
        let expected = after.0 + first * ((before.0 - after.0) / FREED.0 as u64);
        match bytes == expected {
            true => Ok(()),
            false => Err(format!("{bytes} bytes are in use, not {expected}")),
        }
    };
    Explorer::from_image(options, &image, workload, verify)
}
