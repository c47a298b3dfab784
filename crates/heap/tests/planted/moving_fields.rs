//! Fields that are exchanged and persisted in an object while a cycle moves it, crashed everywhere.

use firn_crash::{Crash, Explorer, Report};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool, PoolOptions, Session, Stored, View};

use crate::pools::{self, LEN, Missing, explore, open};

#[derive(Stored)]
#[repr(C)]
struct Counters {
    exchanged: u64,
    /// Puts the neighbouring fields into different lines.
    between: [u64; 8],
    far: u64,
}

/// Objects on each of two pages; one stays on each.
const COUNT: usize = 42;
/// The number of acts, one after the other.
const ACTS: u64 = 3;

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("moving fields")
    }
}

fn collect() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Counters>(2 * COUNT)?;
            for i in 0..2 * COUNT {
                let (exchanged, between, far) = (0, [7; 8], 0);
                let counters = Counters {
                    exchanged,
                    between,
                    far,
                };
                all.set(i, Some(tx.alloc(counters)?))?;
            }
            tx.set_root("first", all.get(COUNT / 2).unwrap())?;
            tx.set_root("second", all.get(COUNT + COUNT / 2).unwrap())
        })
        .unwrap();
    drop(session);
    pool.trace().unwrap();
    pool.close().unwrap();
}

/// Exchanges one field before the cycle, and persists it during the cycle; then the other.
fn workload(crash: &Crash) {
    let pool = Pool::open(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    add(&mut session, false);
    let mut collection = pool.collection(&collect()).unwrap();
    assert!(collection.begin().unwrap());
    let guard = session.guard();
    let counters = guard.root::<Counters>("first").unwrap();
    counters.persist(Counters::EXCHANGED).unwrap();
    crash.note(1);
    drop(guard);
    for n in 2..=ACTS {
        add(&mut session, true);
        crash.note(n);
    }
    collection.finish().unwrap();
    drop(collection);
    pool.abandon();
}

fn add(session: &mut Session<Crash>, is_far: bool) {
    let field = match is_far {
        true => Counters::FAR,
        false => Counters::EXCHANGED,
    };
    let guard = session.guard();
    let counters = guard.root::<Counters>("first").unwrap();
    let held = counters.load(field);
    let exchanged = counters.compare_exchange(field, held, held + 1);
    assert_eq!(exchanged.unwrap(), Ok(held));
    if is_far {
        counters.persist(field).unwrap();
    }
}

fn verify(crash: Crash, done: u64) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let pool = open(crash, &options())?;
    let mut session = pool.session().map_err(text)?;
    let mut read = || {
        session.read(|view| {
            let counters = view.root::<Counters>("first")?;
            let fields = [Counters::EXCHANGED, Counters::FAR].map(|f| counters.load(f));
            Ok((fields, counters.load(Counters::BETWEEN)))
        })
    };
    let before = read().map_err(text)?;
    pool.collect(&collect()).map_err(text)?;
    let after = read().map_err(text)?;
    drop(session);
    let ([exchanged, far], between) = before;
    let legal = (done.min(1)..=1).contains(&exchanged)
        && (done.saturating_sub(1)..=done).contains(&far)
        && between == [7; 8];
    match legal && after == before {
        true => pools::check(pool),
        false => Err(format!("after {done}: {before:?}, then {after:?}")),
    }
}

/// Crashes everywhere.
pub fn explore_all(missing: Missing) -> Report {
    let explorer = Explorer::new(explore(missing, 1), LEN, setup, workload, |crash, state| {
        verify(crash, state.note(0))
    });
    explorer.explore()
}
