//! Roots that one thread changes while another looks them up.

use firn_crash::{Crash, CrashState, Explorer, Job, Report, Schedule, SwarmOptions};
use firn_heap::{Bytes, Error, Obj, Pool, PoolOptions, RootHandle, Session, View};

use crate::pools::{self, LEN, Missing, explore, open};

const NOW: &str = "now";
const SPARE: &str = "spare";
/// Two names whose search in the index begins at one place: the second lies behind the first, and moves up when the
/// first is removed.
const FIRST: &str = "name 15";
const BEHIND: &str = "name 17";
/// The initial content of the object of `NOW`.
const START: u64 = 10;
const ROUNDS: u64 = 3;
/// Executions of an exploration with two preemptions.
const EXECUTIONS: u64 = 4_000;

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("roots")
    }
}

fn number<'g, V: View<'g>>(object: Obj<'g, Bytes, V>) -> Result<u64, Error> {
    let bytes = object.to_vec()?;
    Ok(u64::from_le_bytes(
        bytes.first_chunk().copied().unwrap_or_default(),
    ))
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            for name in [FIRST, BEHIND, SPARE] {
                tx.set_root(name, tx.alloc_bytes(&[0; 8])?)?;
            }
            tx.set_root(NOW, tx.alloc_bytes(&START.to_le_bytes())?)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Exchanges the objects of two roots, and stores the result of `next` for the old object's number in the new one.
fn exchange(session: &mut Session<Crash>, next: impl Fn(u64) -> u64) {
    let exchanged = session.transaction(|tx| {
        let (old, new) = (tx.root::<Bytes>(NOW)?, tx.root::<Bytes>(SPARE)?);
        tx.set_root(NOW, new)?;
        tx.set_root(SPARE, old)?;
        new.overwrite(0, &next(number(old)?).to_le_bytes())
    });
    exchanged.unwrap();
}

/// Counts in the object that the root names, without a lock of its own.
fn count(session: &mut Session<Crash>, now: &RootHandle<Bytes>) {
    let counted = session.transaction(|tx| {
        let object = tx.root(now)?;
        object.overwrite(0, &(number(object)? + 1).to_le_bytes())
    });
    counted.unwrap();
}

fn explorer<'a>(
    missing: Missing,
    threads: [fn(&Pool<Crash>, &Crash); 2],
    check: impl Fn(u64, u64) -> bool + Sync + Send + 'a,
) -> Explorer<'a> {
    Explorer::new(
        explore(missing, 0),
        LEN,
        setup,
        move |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let jobs = threads.map(|thread| {
                let (pool, crash) = (pool.clone(), crash.clone());
                Box::new(move || thread(&pool, &crash)) as Job
            });
            crash
                .run(jobs.into(), Schedule::Inherited)
                .finished()
                .unwrap();
            pool.abandon();
        },
        move |crash, state: &CrashState| {
            let pool = open(crash, &options())?;
            let mut session = pool.session().map_err(|e| e.to_string())?;
            let found = session.read(|view| number(view.root(NOW)?));
            let found = found.map_err(|e: Error| e.to_string())?;
            drop(session);
            match check(found, state.note(2)) {
                true => pools::check(pool),
                false => Err(format!("{found} after {} were noted", state.note(2))),
            }
        },
    )
}

fn swarm() -> SwarmOptions {
    SwarmOptions {
        seeds: 0..400,
        ..SwarmOptions::default()
    }
}

/// One thread replaces the root's object by a copy, the other counts in it: no count is lost.
pub fn counted(missing: Missing) -> Report {
    let copies = |pool: &Pool<Crash>, _: &Crash| {
        let mut session = pool.session().unwrap();
        (0..ROUNDS).for_each(|_| exchange(&mut session, |number| number));
        std::mem::forget(session);
    };
    let counts = |pool: &Pool<Crash>, crash: &Crash| {
        let mut session = pool.session().unwrap();
        let now = RootHandle::new(NOW).unwrap();
        for n in 1..=ROUNDS {
            count(&mut session, &now);
            crash.note(n);
        }
        std::mem::forget(session);
    };
    let all = |found: u64, noted: u64| (noted..=noted + 1).contains(&(found - START));
    explorer(missing, [copies, counts], all).swarm(&swarm())
}

/// A guard reads a root while a transaction changes it, and finds the complete new object.
pub fn read(missing: Missing) -> Report {
    let changes = |pool: &Pool<Crash>, _: &Crash| {
        let mut session = pool.session().unwrap();
        (0..ROUNDS).for_each(|_| exchange(&mut session, |number| number + 1));
        std::mem::forget(session);
    };
    let reads = |pool: &Pool<Crash>, _: &Crash| {
        let mut session = pool.session().unwrap();
        let now = RootHandle::new(NOW).unwrap();
        let mut least = START;
        for _ in 0..2 * ROUNDS {
            let found = session.read(|view| number(view.root(&now)?)).unwrap();
            assert!(found >= least, "{found} after {least}");
            least = found;
        }
        std::mem::forget(session);
    };
    explorer(missing, [changes, reads], |found, _| found >= START).swarm(&swarm())
}

/// A guard looks for a name while another name that it probes first is removed.
pub fn looked_for(missing: Missing) -> Report {
    let removes = |pool: &Pool<Crash>, _: &Crash| {
        let mut session = pool.session().unwrap();
        session.transaction(|tx| tx.remove_root(FIRST)).unwrap();
        std::mem::forget(session);
    };
    let looks = |pool: &Pool<Crash>, _: &Crash| {
        let mut session = pool.session().unwrap();
        for _ in 0..2 {
            session
                .read(|view| view.root::<Bytes>(BEHIND).map(drop))
                .unwrap();
        }
        std::mem::forget(session);
    };
    explorer(missing, [removes, looks], |found, _| found == START)
        .explore_interleavings(2, EXECUTIONS)
}
