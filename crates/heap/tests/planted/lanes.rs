//! Two sessions of one thread: one rarely commits, the other goes around its ring meanwhile.

use firn_crash::{Crash, Explorer, Job, Report, Schedule};
use firn_heap::{Bytes, Error, Pool, PoolOptions, Refs, Session, View};

use crate::pools::{self, LEN, Missing, explore, open};

type Spine = Refs<Bytes>;

/// Objects that are changed one after the other: more than a ring has slots.
const OBJECTS: u64 = 10;
/// One round in this many is the rare session's.
const SELDOM: u64 = 23;
const ROUNDS: u64 = 26;

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("lanes")
    }
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.alloc_refs::<Bytes>(OBJECTS as usize)?;
            for object in 0..OBJECTS as usize {
                spine.set(object, Some(tx.alloc_bytes(&[0; 100])?))?;
            }
            tx.set_root("spine", spine)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

fn round(session: &mut Session<Crash>, n: u64) {
    session
        .transaction(|tx| {
            let spine = tx.root::<Spine>("spine")?;
            match spine.get((n % OBJECTS) as usize) {
                Some(object) => object.overwrite(0, &n.to_le_bytes()),
                None => Ok(()),
            }
        })
        .unwrap();
}

/// The content of the objects after this many rounds.
fn expected(rounds: u64) -> Vec<u64> {
    let last = |object| (1..=rounds).rev().find(|n| n % OBJECTS == object);
    (0..OBJECTS).map(|o| last(o).unwrap_or(0)).collect()
}

fn read(session: &mut Session<Crash>) -> Result<Vec<u64>, Error> {
    session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        let number = |object: u64| {
            let bytes = spine.get(object as usize).map(|b| b.to_vec());
            let bytes = bytes.transpose()?.unwrap_or_default();
            let word = bytes.first_chunk().copied();
            Ok(u64::from_le_bytes(word.unwrap_or_default()))
        };
        (0..OBJECTS).map(number).collect()
    })
}

/// Crashes everywhere.
pub fn explore_all(missing: Missing) -> Report {
    let explorer = Explorer::new(
        explore(missing, 0),
        LEN,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let noting = crash.clone();
            let job: Job = Box::new(move || {
                let mut often = pool.session().unwrap();
                let mut seldom = pool.session().unwrap();
                for n in 1..=ROUNDS {
                    match n % SELDOM {
                        1 => round(&mut seldom, n),
                        _ => round(&mut often, n),
                    }
                    noting.note(n);
                }
                pool.abandon();
            });
            crash
                .run(vec![job], Schedule::Sequential)
                .finished()
                .unwrap();
        },
        |crash, state| {
            let pool = open(crash, &options())?;
            let mut session = pool.session().map_err(|e| e.to_string())?;
            let found = read(&mut session).map_err(|e| e.to_string())?;
            drop(session);
            let done = state.note(1);
            match [done, done + 1].map(expected).contains(&found) {
                true => pools::check(pool),
                false => Err(format!("after {done} rounds: {found:?}")),
            }
        },
    );
    explorer.explore()
}
