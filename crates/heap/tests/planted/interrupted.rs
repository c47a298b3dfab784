//! A whole transaction of one thread interrupts one of another, at each of its points.

use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, Job, Report, Schedule, Turn};
use firn_heap::{Bytes, Error, Obj, Pool, PoolKind, PoolOptions, Refs, Tx, View};
use firn_media::{Domain, Runtime};

use crate::pools::{self, LEN, Missing, explore, medium, open};

type Spine = Refs<Bytes>;

/// The transaction of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Changes the thread's own object.
    Own,
    /// Counts in the object that both share, under its lock.
    Shared,
    /// Frees the thread's own object.
    Free,
    /// Makes a new object of the same class.
    Alloc,
}

/// The pool's kind, and the transactions of the two threads.
#[derive(Clone, Copy)]
pub struct Pair {
    pub kind: PoolKind,
    pub ops: [Op; 2],
    pub domain: Domain,
    /// Whether the objects' frame has no free slot.
    pub is_full: bool,
}

const LOCK: u64 = 5;
/// Places of the spine: the shared object, one object per thread, and a new one.
const SHARED: usize = 0;
const OWN: usize = 1;
const NEW: usize = 3;
const PLACES: usize = 4;
/// Bytes of an object, and how many of them fill a frame.
const BYTES: usize = 40;
const FRAME_FULL: usize = 64;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("interrupted")
    }
}

/// The places' objects lie in one frame.
fn setup(crash: &Crash, kind: PoolKind, is_full: bool) {
    let objects = if is_full { FRAME_FULL } else { FRAME_FULL / 2 };
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let fillers = tx.alloc_refs::<Bytes>(objects)?;
            for i in 0..objects {
                fillers.set(i, Some(tx.alloc_bytes(&[0; BYTES])?))?;
            }
            let spine = tx.alloc_refs::<Bytes>(PLACES)?;
            for place in SHARED..NEW {
                spine.set(place, fillers.get(place))?;
                fillers.set(place, None)?;
            }
            tx.set_root("fillers", fillers)?;
            tx.set_root("spine", spine)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

fn count<'g, V: View<'g>>(spine: Obj<'g, Spine, V>, place: usize) -> Result<Option<u64>, Error> {
    let Some(object) = spine.get(place) else {
        return Ok(None);
    };
    let word = object.to_vec()?.first_chunk().copied();
    Ok(word.map(u64::from_le_bytes))
}

fn act(tx: Tx<'_, Crash>, thread: usize, op: Op) -> Result<(), Error> {
    let spine = tx.root::<Spine>("spine")?;
    let own = spine.get(OWN + thread).ok_or(Error::ReadOnly)?;
    match op {
        Op::Own => own.overwrite(0, &1u64.to_le_bytes()),
        Op::Shared => {
            tx.lock_exclusive(LOCK)?;
            let counted = count(spine, SHARED)?.unwrap_or(0) + 1;
            let shared = spine.get(SHARED).ok_or(Error::ReadOnly)?;
            shared.overwrite(0, &counted.to_le_bytes())?;
            own.overwrite(0, &1u64.to_le_bytes())
        }
        Op::Free => {
            // SAFETY: the only reference is removed.
            unsafe { tx.free(own)? };
            spine.set(OWN + thread, None)
        }
        Op::Alloc => {
            spine.set(NEW, Some(tx.alloc_bytes(&[1; BYTES])?))?;
            own.overwrite(0, &1u64.to_le_bytes())
        }
    }
}

fn run(pool: &Pool<Crash>, thread: usize, op: Op) {
    let mut session = pool.session().unwrap();
    // The thread that runs first lets the other begin.
    pool.medium().pause(0);
    session.transaction(|tx| act(tx, thread, op)).unwrap();
    pool.medium().note(1);
    // The end of a session is no part of the run.
    pool.clone().abandon();
}

impl Pair {
    fn workload(&self, crash: &Crash) {
        let pool = Pool::open(crash.clone(), &options(self.kind)).unwrap();
        let jobs = [0, 1].map(|thread| -> Job {
            let (pool, op) = (pool.clone(), self.ops[thread]);
            Box::new(move || run(&pool, thread, op))
        });
        let run = crash.run(jobs.into(), Schedule::Inherited);
        run.finished().unwrap();
        pools::check(pool).unwrap();
    }

    fn verify(&self, crash: Crash, done: [bool; 2]) -> Result<(), String> {
        let pool = open(crash, &options(self.kind))?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let places = session.read(|view| {
            let spine = view.root::<Spine>("spine")?;
            let places = (0..PLACES).map(|place| count(spine, place));
            places.collect::<Result<Vec<_>, Error>>()
        });
        let places = places.map_err(|e| e.to_string())?;
        drop(session);
        let is_there = |thread: usize| match self.ops[thread] {
            Op::Free => places[OWN + thread].is_none(),
            _ => places[OWN + thread] == Some(1),
        };
        let counted = (0..2).filter(|&thread| self.ops[thread] == Op::Shared && is_there(thread));
        let sound = (0..2).all(|thread| is_there(thread) || !done[thread])
            && places[SHARED] == Some(counted.count() as u64);
        match sound {
            true => pools::check(pool),
            false => Err(format!("after {done:?}: {places:?}")),
        }
    }

    /// Crashes everywhere, in every run.
    pub fn explore(&self, missing: Missing) -> Report {
        let explorer = Explorer::new(
            ExploreOptions {
                medium: CrashOptions {
                    domain: self.domain,
                    ..medium(missing)
                },
                ..explore(missing, 0)
            },
            LEN,
            |crash| setup(crash, self.kind, self.is_full),
            |crash| self.workload(crash),
            |crash, state| self.verify(crash, [1, 2].map(|thread| state.note(thread) == 1)),
        );
        let mut after = 0;
        explorer.explore_each(|last| {
            after += 1;
            let over = last.is_some_and(|run| after > run.steps);
            (!over).then(|| Schedule::Turns(vec![Turn { after, thread: 2 }]))
        })
    }
}
